"""Bounded decompression of Pulsar's payloads."""

from __future__ import annotations

import zlib
from typing import Final

import cramjam
import numpy as np

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.records.columns import Bytes
from penstock.records.compression import Inflater, deflate, inflate, snappy, zstd
from penstock.records.errors import MalformedBatchError


def inflate_pulsar(
    codec: int, compressed: memoryview, size: int, limit: int = INFLATED_BATCH_BYTES
) -> Bytes:
    """Return a payload of `size` bytes, which is what its metadata declares.

    Raises MalformedBatchError, also where it is not of that size.
    """
    if size > limit:
        raise MalformedBatchError(f"the payload declares {size} bytes, over the limit of {limit}")
    inflated = inflate(_CODECS, codec, compressed, size)
    if len(inflated) != size:
        raise MalformedBatchError(f"the payload declares {size} bytes and has {len(inflated)}")
    return inflated


def _lz4_block(compressed: memoryview, size: int) -> Bytes:
    out = np.empty(size, np.uint8)
    return out[: cramjam.lz4.decompress_block_into(compressed, out.data, output_len=size)]


_CODECS: Final[dict[int, Inflater]] = {
    1: _lz4_block,
    2: deflate(zlib.MAX_WBITS),
    3: zstd,
    4: snappy,
}
