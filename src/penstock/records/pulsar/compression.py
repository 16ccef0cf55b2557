"""Bounded decompression of Pulsar's payloads."""

from __future__ import annotations

import zlib
from typing import Final

import cramjam
import numpy as np

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.records.columns import Bytes
from penstock.records.compression import Inflater, deflate, inflate, snappy, zstd
from penstock.records.errors import MalformedBatchError, OverLimitError


def inflate_pulsar(
    codec: int, compressed: memoryview, size: int, limit: int = INFLATED_BATCH_BYTES
) -> Bytes:
    """Return a payload of `size` bytes, which is what its metadata declares.

    Raises MalformedBatchError, also where it is not of that size.
    """
    if limit < size <= INFLATED_BATCH_BYTES:
        raise OverLimitError(f"more than {limit} bytes of payloads at once")
    if size > limit:
        raise MalformedBatchError(f"the payload declares {size} bytes, over the limit of {limit}")
    inflated = inflate(_CODECS, codec, compressed, size)
    if len(inflated) != size:
        raise MalformedBatchError(f"the payload declares {size} bytes and has {len(inflated)}")
    return inflated


def compress_pulsar(codec: int, payload: memoryview) -> bytes:
    """Return a payload in the codec of a metadata's `compression`."""
    if codec == _NONE:
        return bytes(payload)
    if codec == _LZ4:
        return bytes(cramjam.lz4.compress_block(payload, store_size=False))
    if codec == _ZLIB:
        return zlib.compress(payload)
    if codec == _ZSTD:
        return bytes(cramjam.zstd.compress(payload))
    assert codec == _SNAPPY, "it was inflated before"
    return bytes(cramjam.snappy.compress_raw(payload))


def _lz4_block(compressed: memoryview, size: int) -> Bytes:
    out = np.empty(size, np.uint8)
    return out[: cramjam.lz4.decompress_block_into(compressed, out.data, output_len=size)]


def _snappy_or_framed(compressed: memoryview, size: int) -> Bytes:
    """Pulsar's client in Rust writes snappy's framing, all others one raw block.

    Of nothing there is no frame, but a block.
    """
    if len(compressed) and bytes(compressed[: len(_FRAMING)]) != _FRAMING:
        return snappy(compressed, size)
    out = np.empty(size, np.uint8)
    return out[: cramjam.snappy.decompress_into(compressed, out.data)]


_FRAMING: Final = b"\xff\x06\x00\x00sNaPpY"
_NONE, _LZ4, _ZLIB, _ZSTD, _SNAPPY = 0, 1, 2, 3, 4
_CODECS: Final[dict[int, Inflater]] = {
    _LZ4: _lz4_block,
    _ZLIB: deflate(zlib.MAX_WBITS),
    _ZSTD: zstd,
    _SNAPPY: _snappy_or_framed,
}
