"""Bounded decompression: the codecs that Kafka's and Pulsar's clients share.

Nothing inflates over the limit, whatever the compressed bytes declare or turn out to hold.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import cramjam
import numpy as np

from penstock.records.bounds import zstd_bound
from penstock.records.columns import Bytes
from penstock.records.errors import MalformedBatchError, OverLimitError

_FIRST_GUESS: Final = 64 * 1024
_TOO_SMALL: Final = "failed to write whole buffer"

Inflater: TypeAlias = Callable[[memoryview, int], Bytes]
"""Returns the bytes that were compressed; raises where they are more than the limit."""


def inflate(codecs: dict[int, Inflater], codec: int, compressed: memoryview, limit: int) -> Bytes:
    """Return the bytes that `codec` compressed.

    Raises MalformedBatchError, also for a codec that is not among `codecs`.
    """
    found = codecs.get(codec)
    if found is None:
        raise MalformedBatchError(f"compression codec {codec} is not known")
    try:
        return found(compressed, limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise MalformedBatchError(f"the compressed bytes make no sense: {error}") from error


def _too_much(stated: int, limit: int) -> MalformedBatchError:
    if stated < limit:
        return MalformedBatchError("the compressed bytes hold more than they say")
    return OverLimitError("the batch inflates to more bytes than it may")


def growing(
    decompress_into: Callable[[memoryview, memoryview], int], bound: Callable[[memoryview], int]
) -> Inflater:
    """Return an inflater for a codec that does not say how much comes out: it guesses upwards."""

    def inflate(compressed: memoryview, limit: int) -> Bytes:
        stated = bound(compressed)
        most = min(limit, stated)
        size = min(most, max(_FIRST_GUESS, 4 * len(compressed)))
        while True:
            out = np.empty(size, np.uint8)
            try:
                return out[: decompress_into(compressed, out.data)]
            except cramjam.DecompressionError as error:
                if _TOO_SMALL not in str(error):
                    raise
                if size == most:
                    raise _too_much(stated, limit) from error
            size = min(most, 4 * size)

    return inflate


def deflate(window_bits: int, bound: Callable[[memoryview], int] | None = None) -> Inflater:
    """Return an inflater for what zlib wrote with this size of window."""

    def inflate(compressed: memoryview, limit: int) -> Bytes:
        stated = limit if bound is None else bound(compressed)
        most = min(limit, stated)
        stream = zlib.decompressobj(window_bits)
        inflated = stream.decompress(compressed, most + 1)
        if len(inflated) > most:
            raise _too_much(stated, limit)
        if not stream.eof:
            raise MalformedBatchError("the compressed bytes end too early")
        return np.frombuffer(inflated, np.uint8)

    return inflate


def snappy(compressed: memoryview, limit: int) -> Bytes:
    """Inflater one raw block."""
    size = cramjam.snappy.decompress_raw_len(compressed)
    if size > limit:
        raise _too_much(size, limit)
    out = np.empty(size, np.uint8)
    return out[: cramjam.snappy.decompress_raw_into(compressed, out.data)]


zstd: Final = growing(cramjam.zstd.decompress_into, zstd_bound)
