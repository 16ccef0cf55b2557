"""Messages in chunks: what a chunk says of itself, and the message that all of them are."""

from __future__ import annotations

import cramjam
import pytest

from penstock import records
from penstock.log.header import checksum_matches
from penstock.records import MalformedBatchError
from penstock.records.pulsar.chunks import ChunkInfo, is_chunk, join_chunks
from stored_batches import Record, entry, kafka_batch, metadata, pulsar_batch, read

WHOLE = b"many words " * 500
COMPRESSED = bytes(cramjam.lz4.compress_block(WHOLE, store_size=False))


def chunks(count: int = 3, **changes: object) -> list[bytes]:
    size = -(-len(COMPRESSED) // count)
    batches = []
    for index in range(count):
        fields = {
            "uuid": "maker-5",
            "chunk_id": index,
            "num_chunks_from_msg": count,
            "total_chunk_msg_size": len(COMPRESSED),
            "partition_key": "k",
            "compression": 1,
            "uncompressed_size": len(WHOLE),
        }
        part = COMPRESSED[size * index : size * (index + 1)]
        batches.append(pulsar_batch(entry(metadata(**(fields | changes)), part), 10 + 2 * index))
    return batches


def test_a_chunk_says_what_it_is_a_part_of() -> None:
    assert is_chunk(chunks()[1]) == ChunkInfo("maker-5", 1, 3, len(COMPRESSED))
    assert is_chunk(chunks(1)[0]) is None
    assert is_chunk(kafka_batch([Record(b"v")])) is None


def test_all_chunks_are_one_message_at_the_last_ones_offset() -> None:
    joined = join_chunks(chunks())
    assert checksum_matches(joined)
    assert is_chunk(joined) is None
    columns = records.decode(joined)
    (record,) = read(columns)
    assert (record.value, record.key, columns.offsets.tolist()) == (WHOLE, b"k", [14])


@pytest.mark.parametrize(
    "batches",
    [
        chunks()[:2],
        chunks()[1:],
        chunks()[::-1],
        [*chunks()[:2], *chunks(3, uuid="other")[2:]],
        chunks(3, total_chunk_msg_size=7),
        chunks(1),
        [kafka_batch([Record(b"v")])],
    ],
)
def test_what_is_not_one_whole_message(batches: list[bytes]) -> None:
    with pytest.raises(MalformedBatchError):
        join_chunks(batches)


@pytest.mark.parametrize("body", [b"", b"\0\0\0\7abc", b"\0\0\0\2\x0a\5", b"\0\0\0\0"])
def test_entries_that_can_not_be_read(body: bytes) -> None:
    with pytest.raises(MalformedBatchError, match="batch at offset 7"):
        is_chunk(pulsar_batch(body, 7))
