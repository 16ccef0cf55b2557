"""Bounded decompression of Kafka's batches, and compression as its producers do it."""

from __future__ import annotations

import zlib
from typing import Final

import cramjam
import numpy as np

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.records.bounds import XERIAL_HEADER_SIZE, XERIAL_MAGIC, gzip_bound, lz4_bound
from penstock.records.columns import Bytes
from penstock.records.compression import Inflater, deflate, growing, inflate, snappy, zstd
from penstock.records.errors import MalformedBatchError

_LZ4_PIECE_BYTES: Final = 16 << 10
"""What is compressed in one call, which keeps the interpreter: other codecs' calls release it."""

_XERIAL_BLOCKS: Final = INFLATED_BATCH_BYTES >> 10
"""With as many of the smallest that Java's library writes, a batch inflates to the limit; there may
be one in every five bytes, and each is some Python to read.
"""


def inflate_kafka(codec: int, compressed: memoryview, limit: int = INFLATED_BATCH_BYTES) -> Bytes:
    """Return the records of a compressed batch; `codec` is the low bits of its attributes.

    Raises MalformedBatchError, also for a codec that Kafka has not defined.
    """
    return inflate(_CODECS, codec, compressed, limit)


def compress_kafka(codec: int, body: memoryview, level: int | None = None) -> bytes:
    """Return the records of a batch, compressed where `codec`, as in its attributes, says so.

    `level` is how hard gzip, lz4 or zstd try, None for what the codec itself has as the default.
    """
    if codec == _NONE:
        return bytes(body)
    if codec == _GZIP:
        stream = zlib.compressobj(-1 if level is None else level, wbits=16 + zlib.MAX_WBITS)
        return stream.compress(body) + stream.flush()
    if codec == _SNAPPY:
        return bytes(cramjam.snappy.compress_raw(body))
    if codec == _ZSTD:
        return bytes(cramjam.zstd.compress(body, level))
    # Java's client reads no frame whose blocks depend on one another.
    frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    for start in range(0, len(body), _LZ4_PIECE_BYTES):
        frame.compress(bytes(body[start : start + _LZ4_PIECE_BYTES]))
    return bytes(frame.finish())


def _snappy_or_xerial(compressed: memoryview, limit: int) -> Bytes:
    """Java's producer frames snappy as the xerial library does, librdkafka sends one raw block."""
    if bytes(compressed[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return snappy(compressed, limit)
    position, left = XERIAL_HEADER_SIZE, limit
    parts: list[Bytes] = []
    while position < len(compressed):
        size = int.from_bytes(compressed[position : position + 4], "big")
        position += 4
        if len(parts) == _XERIAL_BLOCKS:
            raise MalformedBatchError("the blocks of the xerial framing are smaller than a KiB")
        if size > len(compressed) - position:
            raise MalformedBatchError("a block of the xerial framing ends outside of the batch")
        parts.append(snappy(compressed[position : position + size], left))
        left -= len(parts[-1])
        position += size
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)


_NONE, _GZIP, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 3, 4
_CODECS: Final[dict[int, Inflater]] = {
    _GZIP: deflate(16 + zlib.MAX_WBITS, gzip_bound),
    _SNAPPY: _snappy_or_xerial,
    _LZ4: growing(cramjam.lz4.decompress_into, lz4_bound),
    _ZSTD: zstd,
}
