"""Goal: the right record is found in every batch a client may send, and no batch breaks the search.

Method: batches of our own and of real clients' codecs, compared with a plain search over the times.
"""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.record_times import RecordTime, first_not_before
from penstock.limits import DECODED_ROWS
from penstock.records import MalformedBatchError

TIMES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=20)


def expected(times: list[int], timestamp: int, start: int = 0) -> RecordTime | None:
    for offset, time in enumerate(times):
        if time >= timestamp and offset >= start:
            return RecordTime(time, offset)
    return None


@given(TIMES, st.integers(0, 1 << 40))
def test_the_first_late_enough_record_is_found(times: list[int], timestamp: int) -> None:
    batch = encode_batch([Record(b"value", b"key", timestamp_ms=time) for time in times])
    for wanted in (timestamp, *times, max(times) + 1):
        assert first_not_before(batch, wanted) == expected(times, wanted)


@given(TIMES, st.integers(0, 1 << 40), st.integers(0, 20))
def test_records_below_the_start_are_not_found(
    times: list[int], timestamp: int, start: int
) -> None:
    batch = encode_batch([Record(b"value", b"key", timestamp_ms=time) for time in times])
    for wanted in (timestamp, *times):
        assert first_not_before(batch, wanted, start) == expected(times, wanted, start)


@pytest.mark.parametrize("codec", range(5))
def test_compressed_batches_are_looked_into(codec: int) -> None:
    times = [50, 20, 70, 60]
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, time in enumerate(times):
        builder.append(offset, timestamp=time, key=None, value=bytes(500), headers=[])
    batch = bytes(builder.build())
    for timestamp in (0, 50, 51, 70, 71):
        assert first_not_before(batch, timestamp) == expected(times, timestamp)


def test_log_append_time_is_the_time_of_all() -> None:
    batch = encode_batch([Record(b"v", timestamp_ms=5), Record(b"v", timestamp_ms=9)])
    struct.pack_into(">h", batch, 21, 0x08)
    assert first_not_before(batch, 9) == RecordTime(9, 0)
    assert first_not_before(batch, 10) is None
    assert first_not_before(batch, 9, 1) == RecordTime(9, 1)


@given(st.binary(max_size=60), st.integers(0, 4))
def test_records_that_make_no_sense_are_malformed(body: bytes, codec: int) -> None:
    batch = encode_batch([Record(b"v", timestamp_ms=5)])[:61] + body
    struct.pack_into(">i", batch, 8, 49 + len(body))
    struct.pack_into(">h", batch, 21, codec)
    try:
        found = first_not_before(batch, 6)
    except MalformedBatchError:
        return
    assert found is None or (found.offset == 0 and 6 <= found.timestamp < 1 << 63)


def test_more_records_than_may_be_looked_at_are_not() -> None:
    batch = encode_batch([Record(b"v", timestamp_ms=5), Record(b"v", timestamp_ms=9)])
    struct.pack_into(">i", batch, 57, DECODED_ROWS + 1)
    with pytest.raises(MalformedBatchError, match="records"):
        first_not_before(batch, 9)
