"""Bounded decompression of everything that the clients compress with."""

from __future__ import annotations

import gzip
import random
import zlib
from types import SimpleNamespace

import cramjam
import pytest
from aiokafka.codec import snappy_encode

from penstock import records
from penstock.records import MalformedBatchError
from penstock.records.errors import OverLimitError
from penstock.records.kafka import compression
from penstock.records.kafka.compression import compress_kafka, inflate_kafka
from penstock.records.pulsar.compression import inflate_pulsar
from stored_batches import Record, kafka_batch, read

TEXT = b"some words that repeat " * 5_000
ZEROS = bytes(1_000_000)


def kafka_samples(text: bytes) -> dict[str, tuple[int, bytes]]:
    return {
        "gzip": (1, gzip.compress(text)),
        "snappy": (2, bytes(cramjam.snappy.compress_raw(text))),
        "xerial": (2, snappy_encode(text, xerial_compatible=True)),
        "lz4": (3, bytes(cramjam.lz4.compress(text))),
        "zstd": (4, bytes(cramjam.zstd.compress(text))),
    }


def pulsar_samples(text: bytes) -> dict[str, tuple[int, bytes]]:
    return {
        "lz4": (1, bytes(cramjam.lz4.compress_block(text, store_size=False))),
        "zlib": (2, zlib.compress(text)),
        "zstd": (3, bytes(cramjam.zstd.compress(text))),
        "snappy": (4, bytes(cramjam.snappy.compress_raw(text))),
        "framed snappy": (4, bytes(cramjam.snappy.compress(text))),
    }


@pytest.mark.parametrize("name", kafka_samples(b""))
@pytest.mark.parametrize("text", [TEXT, ZEROS, b"x", b""])
def test_kafkas_codecs(name: str, text: bytes) -> None:
    codec, compressed = kafka_samples(text)[name]
    assert inflate_kafka(codec, memoryview(compressed)).tobytes() == text


@pytest.mark.parametrize("name", pulsar_samples(b""))
@pytest.mark.parametrize("text", [TEXT, ZEROS, b"x", b""])
def test_pulsars_codecs(name: str, text: bytes) -> None:
    codec, compressed = pulsar_samples(text)[name]
    assert inflate_pulsar(codec, memoryview(compressed), len(text)).tobytes() == text


@pytest.mark.parametrize("name", kafka_samples(b""))
def test_nothing_inflates_over_the_limit(name: str) -> None:
    codec, compressed = kafka_samples(ZEROS)[name]
    assert len(inflate_kafka(codec, memoryview(compressed), len(ZEROS))) == len(ZEROS)
    with pytest.raises(MalformedBatchError, match="more bytes than it may"):
        inflate_kafka(codec, memoryview(compressed), len(ZEROS) - 1)


@pytest.mark.parametrize("name", pulsar_samples(b""))
@pytest.mark.parametrize("difference", [-1, 1])
def test_a_payload_is_of_the_declared_size(name: str, difference: int) -> None:
    codec, compressed = pulsar_samples(ZEROS)[name]
    with pytest.raises(MalformedBatchError):
        inflate_pulsar(codec, memoryview(compressed), len(ZEROS) + difference)


def test_a_declared_size_over_the_limit_is_refused_unseen() -> None:
    with pytest.raises(MalformedBatchError, match="over the limit"):
        inflate_pulsar(1, memoryview(b""), 1 << 32)


@pytest.mark.parametrize("name", kafka_samples(b""))
@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_damaged_kafka_bytes(name: str, damage: str) -> None:
    codec, compressed = kafka_samples(TEXT)[name]
    damaged = {"cut": compressed[:-5], "empty": b"", "noise": b"\xa5" * 40}[damage]
    with pytest.raises(MalformedBatchError):
        inflate_kafka(codec, memoryview(damaged))


@pytest.mark.parametrize("name", pulsar_samples(b""))
@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_damaged_pulsar_bytes(name: str, damage: str) -> None:
    codec, compressed = pulsar_samples(TEXT)[name]
    damaged = {"cut": compressed[:-5], "empty": b"", "noise": b"\xa5" * 40}[damage]
    with pytest.raises(MalformedBatchError):
        inflate_pulsar(codec, memoryview(damaged), len(TEXT))


def test_a_xerial_block_outside_of_the_batch() -> None:
    compressed = snappy_encode(TEXT, xerial_compatible=True)
    with pytest.raises(MalformedBatchError, match="xerial"):
        inflate_kafka(2, memoryview(compressed[:16] + b"\x7f\xff\xff\xff"))


def test_more_xerial_blocks_than_any_library_writes_are_refused() -> None:
    """Of a batch of 100 MiB that has nothing in it they would be twenty million arrays."""
    head, empty = snappy_encode(b"", xerial_compatible=True)[:16], b"\0\0\0\1\0"
    most = memoryview(head + empty * (1 << 17))
    assert len(inflate_kafka(2, most)) == 0
    with pytest.raises(MalformedBatchError, match="xerial"):
        inflate_kafka(2, memoryview(bytes(most) + empty))


def test_long_gzip_that_says_that_it_is_short_is_taken_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """zlib copies what it did not get to, and keeps the interpreter meanwhile."""
    given: list[int] = []
    make = zlib.decompressobj

    def watched(bits: int) -> SimpleNamespace:
        stream = make(bits)

        def decompress(data: bytes, most: int) -> bytes:
            given.append(len(data))
            return stream.decompress(data, most)

        return SimpleNamespace(decompress=decompress, eof=False, unconsumed_tail=b"")

    monkeypatch.setattr(zlib, "decompressobj", watched)
    compressed = gzip.compress(random.Random(1).randbytes(3 << 20))[:-4] + bytes(4)
    with pytest.raises(MalformedBatchError):
        inflate_kafka(1, memoryview(compressed))
    assert max(given) <= 64 << 10


@pytest.mark.parametrize("size", [256 << 10, (256 << 10) + 1, 3 << 20])
@pytest.mark.parametrize("kind", ["zeros", "noise"])
def test_gzip_inflates_in_pieces(size: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it does not keep the interpreter while it puts together what it returns."""
    asked: list[int] = []
    make = zlib.decompressobj

    def watched(bits: int) -> SimpleNamespace:
        stream = make(bits)

        class Stream:
            eof = property(lambda _: stream.eof)
            unconsumed_tail = property(lambda _: stream.unconsumed_tail)

            def decompress(self, data: bytes, most: int) -> bytes:
                asked.append(most)
                return stream.decompress(data, most)

        return Stream()  # type: ignore[return-value]  # as much of one as is used

    monkeypatch.setattr(zlib, "decompressobj", watched)
    text = bytes(size) if kind == "zeros" else random.Random(1).randbytes(size)
    compressed = memoryview(gzip.compress(text, 1))
    assert inflate_kafka(1, compressed).tobytes() == text
    assert max(asked) <= (256 << 10) + 1
    for damaged in (compressed[:-1], compressed[:-9], compressed[: len(compressed) // 2]):
        with pytest.raises(MalformedBatchError, match="too early"):
            inflate_kafka(1, damaged)
    with pytest.raises(OverLimitError):
        inflate_kafka(1, compressed, size - 1)
    assert inflate_kafka(1, memoryview(bytes(compressed) + b"behind it")).tobytes() == text


def test_unknown_codecs() -> None:
    with pytest.raises(MalformedBatchError, match="codec 5"):
        inflate_kafka(5, memoryview(b""))
    with pytest.raises(MalformedBatchError, match="codec 9"):
        inflate_pulsar(9, memoryview(b""), 0)


def test_a_run_that_inflates_to_too_much_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [Record(bytes(4_000)) for _ in range(10)]
    run = b"".join(kafka_batch(written, 10 * index, codec=4) for index in range(4))
    monkeypatch.setattr("penstock.records.decoding.INFLATED_BATCH_BYTES", 90_000)
    with pytest.raises(MalformedBatchError):
        records.decode(run)
    pieces = list(records.decode_run(run))
    assert [len(piece) for piece in pieces] == [20, 20]
    assert [record for piece in pieces for record in read(piece)] == 4 * written
    monkeypatch.setattr("penstock.records.decoding.INFLATED_BATCH_BYTES", 30_000)
    with pytest.raises(MalformedBatchError):
        list(records.decode_run(run))


def test_more_records_than_may_be_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = tuple((b"n", b"v") for _ in range(9))
    run = kafka_batch([Record(b"a", headers=headers)]) + kafka_batch([Record(b"b")], 1)
    monkeypatch.setattr("penstock.records.decoding.DECODED_ROWS", 9)
    assert [len(piece) for piece in records.decode_run(run)] == [2]
    monkeypatch.setattr("penstock.records.decoding.DECODED_ROWS", 8)
    with pytest.raises(MalformedBatchError, match="9 records or headers"):
        list(records.decode_run(run))


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("size", [0, 1, 16 << 10, 100_000])
def test_what_is_compressed_for_a_topic_is_inflated_again(codec: int, size: int) -> None:
    text = memoryview((TEXT * 2)[:size])
    for level in (None, 1, 9):
        made = memoryview(compress_kafka(codec, text, level))
        assert (bytes(inflate_kafka(codec, made)) if codec else made) == text


def test_lz4_which_keeps_the_interpreter_is_called_for_a_little_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []

    class Frame:
        def compress(self, piece: bytes) -> None:
            sizes.append(len(piece))

        def finish(self) -> bytes:
            return b""

    made = SimpleNamespace(Compressor=lambda **_: Frame())
    monkeypatch.setattr(compression, "cramjam", SimpleNamespace(lz4=made))
    compress_kafka(3, memoryview(bytes(1_000_000)), 17)
    assert sum(sizes) == 1_000_000
    assert max(sizes) <= 16 << 10
