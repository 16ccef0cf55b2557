"""Goal: what a compressed body inflates to is known before, and nothing inflates to more.

Method: bodies of many sizes by the libraries that clients use; frames whose sizes lie.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

import cramjam
import pytest

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.records.blocks import BLOCKS_WALKED
from penstock.records.bounds import gzip_bound, lz4_bound, snappy_bound, zstd_bound
from penstock.records.compression import inflate, zstd
from penstock.records.errors import MalformedBatchError
from penstock.records.kafka.compression import inflate_kafka
from stored_batches import GuardedMemory


def streamed(data: bytes) -> bytes:
    """Zstd as a stream writes it, which does not say its size."""
    compressor = cramjam.zstd.Compressor()
    compressor.compress(data)
    return bytes(compressor.finish())


def xerial(data: bytes) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(data))
    return b"\x82SNAPPY\x00" + bytes(8) + len(block).to_bytes(4, "big") + block


Compress = Callable[[bytes], bytes]
Bound = Callable[[memoryview], int]
CODECS: dict[str, tuple[int, Compress, Bound, int]] = {
    "gzip": (1, gzip.compress, gzip_bound, 0),
    "snappy": (2, cramjam.snappy.compress_raw, snappy_bound, 0),
    "xerial": (2, xerial, snappy_bound, 0),
    "lz4": (3, cramjam.lz4.compress, lz4_bound, 16 * 1024),
    "zstd": (4, cramjam.zstd.compress, zstd_bound, 0),
    "zstd stream": (4, streamed, zstd_bound, 128 * 1024),
}
"""Kafka's number, and how much too high the bound may be."""


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("size", [0, 1, 100, 5_000, 70_000, 1_000_000, 5_000_000])
def test_the_bound_is_near_and_never_too_low(name: str, size: int) -> None:
    codec, compress, bound, slack = CODECS[name]
    for data in (bytes(size), random.Random(size).randbytes(size)):
        body = memoryview(bytes(compress(data)))
        assert size <= bound(body) <= size + slack
        assert bytes(inflate_kafka(codec, body)) == data


def test_a_frame_that_holds_more_than_it_says_is_refused() -> None:
    honest = bytearray(cramjam.zstd.compress(bytes(100_000)))
    honest[5:9] = (10).to_bytes(4, "little")
    assert zstd_bound(memoryview(honest)) == 10
    with pytest.raises(MalformedBatchError):
        inflate({4: zstd}, 4, memoryview(honest), INFLATED_BATCH_BYTES)


@pytest.mark.parametrize("bound", [zstd_bound, lz4_bound, snappy_bound])
def test_what_makes_no_sense_counts_as_the_most_there_may_be(bound: Bound) -> None:
    for name in ("zstd", "lz4"):
        whole = bytes(CODECS[name][1](bytes(1_000_000)))
        for end in range(len(whole)):
            assert bound(memoryview(whole[:end])) <= INFLATED_BATCH_BYTES
    assert bound(memoryview(b"\xff" * 100)) == INFLATED_BATCH_BYTES


def test_blocks_without_end_are_not_walked() -> None:
    empty_runs = bytes(cramjam.zstd.compress(b""))[:4] + b"\x00\x58" + b"\x02\x00\x00x" * 200_000
    assert zstd_bound(memoryview(empty_runs)) == INFLATED_BATCH_BYTES


def of_small_blocks(count: int) -> bytes:
    """A frame of zstd whose blocks are empty, three bytes each."""
    return bytes.fromhex("28b52ffd0058") + bytes(3 * count) + b"\x01\x00\x00"


def test_blocks_are_walked_as_many_as_there_may_be_and_no_more() -> None:
    assert zstd_bound(memoryview(of_small_blocks(5_000))) == 0
    assert zstd_bound(memoryview(of_small_blocks(BLOCKS_WALKED))) == INFLATED_BATCH_BYTES


@pytest.mark.parametrize("name", CODECS)
def test_no_frame_that_is_cut_off_is_read_behind_its_end(name: str) -> None:
    _, compress, bound, _ = CODECS[name]
    memory, body = GuardedMemory(pages=2), bytes(compress(random.Random(7).randbytes(400)))
    for size in range(len(body)):
        assert 0 <= bound(memory.place(body[:size])) <= INFLATED_BATCH_BYTES
