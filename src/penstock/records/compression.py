"""Bounded decompression: what Kafka and Pulsar clients compress with.

Nothing inflates over the limit, whatever the compressed bytes declare or turn out to hold.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import cramjam
import numpy as np

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.records.columns import Bytes
from penstock.records.errors import MalformedBatchError

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE: Final = 16
_FIRST_GUESS: Final = 64 * 1024
_TOO_SMALL: Final = "failed to write whole buffer"

Inflate = Callable[[memoryview, int], Bytes]


def inflate_kafka(codec: int, compressed: memoryview, limit: int = INFLATED_BATCH_BYTES) -> Bytes:
    """Return the records of a compressed batch; `codec` is the low bits of its attributes.

    Raises MalformedBatchError, also for a codec that Kafka has not defined.
    """
    return _inflate(_KAFKA_CODECS, codec, compressed, limit)


def inflate_pulsar(
    codec: int, compressed: memoryview, size: int, limit: int = INFLATED_BATCH_BYTES
) -> Bytes:
    """Return a payload of `size` bytes, which is what its metadata declares.

    Raises MalformedBatchError, also where it is not of that size.
    """
    if size > limit:
        raise MalformedBatchError(f"the payload declares {size} bytes, over the limit of {limit}")
    inflated = _inflate(_PULSAR_CODECS, codec, compressed, size)
    if len(inflated) != size:
        raise MalformedBatchError(f"the payload declares {size} bytes and has {len(inflated)}")
    return inflated


def _inflate(codecs: dict[int, Inflate], codec: int, compressed: memoryview, limit: int) -> Bytes:
    inflate = codecs.get(codec)
    if inflate is None:
        raise MalformedBatchError(f"compression codec {codec} is not known")
    try:
        return inflate(compressed, limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise MalformedBatchError(f"the compressed bytes make no sense: {error}") from error


def _over_limit() -> MalformedBatchError:
    return MalformedBatchError("the batch inflates to more bytes than it may")


def _growing(decompress_into: Callable[[memoryview, memoryview], int]) -> Inflate:
    """Return an inflater for a codec that does not say how much comes out: it guesses upwards."""

    def inflate(compressed: memoryview, limit: int) -> Bytes:
        size = min(limit, max(_FIRST_GUESS, 4 * len(compressed)))
        while True:
            out = np.empty(size, np.uint8)
            try:
                return out[: decompress_into(compressed, out.data)]
            except cramjam.DecompressionError as error:
                if _TOO_SMALL not in str(error):
                    raise
                if size == limit:
                    raise _over_limit() from error
            size = min(limit, 4 * size)

    return inflate


def _deflate(window_bits: int) -> Inflate:
    def inflate(compressed: memoryview, limit: int) -> Bytes:
        stream = zlib.decompressobj(window_bits)
        inflated = stream.decompress(compressed, limit + 1)
        if len(inflated) > limit:
            raise _over_limit()
        if not stream.eof:
            raise MalformedBatchError("the compressed bytes end too early")
        return np.frombuffer(inflated, np.uint8)

    return inflate


def _snappy(compressed: memoryview, limit: int) -> Bytes:
    size = cramjam.snappy.decompress_raw_len(compressed)
    if size > limit:
        raise _over_limit()
    out = np.empty(size, np.uint8)
    return out[: cramjam.snappy.decompress_raw_into(compressed, out.data)]


def _snappy_or_xerial(compressed: memoryview, limit: int) -> Bytes:
    """Java's producer frames snappy as the xerial library does, librdkafka sends one raw block."""
    if bytes(compressed[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _snappy(compressed, limit)
    position, left, parts = _XERIAL_HEADER_SIZE, limit, []
    while position < len(compressed):
        size = int.from_bytes(compressed[position : position + 4], "big")
        position += 4
        if size > len(compressed) - position:
            raise MalformedBatchError("a block of the xerial framing ends outside of the batch")
        parts.append(_snappy(compressed[position : position + size], left))
        left -= len(parts[-1])
        position += size
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)


def _lz4_block(compressed: memoryview, size: int) -> Bytes:
    out = np.empty(size, np.uint8)
    return out[: cramjam.lz4.decompress_block_into(compressed, out.data, output_len=size)]


_zstd: Final = _growing(cramjam.zstd.decompress_into)

_KAFKA_CODECS: Final[dict[int, Inflate]] = {
    1: _deflate(16 + zlib.MAX_WBITS),
    2: _snappy_or_xerial,
    3: _growing(cramjam.lz4.decompress_into),
    4: _zstd,
}
_PULSAR_CODECS: Final[dict[int, Inflate]] = {
    1: _lz4_block,
    2: _deflate(zlib.MAX_WBITS),
    3: _zstd,
    4: _snappy,
}
