"""Batches that a real client built come back as it built them, and it reads them back."""

from __future__ import annotations

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from faulty_files import FaultyFileSystem
from log_batches import DIRECTORY, append, make_batch, open_log, read
from penstock.log import Flusher, LogConfig
from penstock.log.header import checksum_matches

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


def client_batch(compression: int, records: int) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=False,
        producer_id=77,
        producer_epoch=3,
        base_sequence=11,
        batch_size=1 << 20,
    )
    for number in range(records):
        key = None if number % 3 == 0 else b"key %d" % number
        value = None if number % 5 == 4 else b"value %d " % number * 9
        headers = [("name", b"value"), ("name", b"")]
        assert builder.append(number, 1_700_000_000_000 + number, key, value, headers) is not None
    return bytearray(builder.build())


@pytest.mark.parametrize("compression", [NONE, GZIP])
@pytest.mark.parametrize("records", [1, 100])
async def test_only_offset_and_epoch_differ(
    disk: FaultyFileSystem, flusher: Flusher, compression: int, records: int
) -> None:
    log = open_log(disk, flusher, LogConfig(), leader_epoch=4)
    append(log, make_batch(count=1_000))
    sent = client_batch(compression, records)
    as_sent = bytes(sent)
    base_offset = append(log, [sent])
    stored = bytes(await read(log, base_offset, 1 << 20))
    assert stored[:8] == base_offset.to_bytes(8)
    assert stored[8:12] == as_sent[8:12]
    assert stored[12:16] == (4).to_bytes(4)
    assert stored[16:] == as_sent[16:]
    log.close()


async def test_a_segment_of_kafka_batches_is_a_file_that_the_client_can_read(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    for records in (3, 1, 50):
        append(log, [client_batch(NONE, records)])
    await log.written(log.end_offset - 1)
    file = bytes(disk.content(DIRECTORY / f"{0:020d}.log").live)
    batches = MemoryRecords(file)
    offsets = []
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        offsets += [record.offset for record in batch]
    assert offsets == list(range(54))
    assert checksum_matches(await read(log, 3, 1))
    log.close()
