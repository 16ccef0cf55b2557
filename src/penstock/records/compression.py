"""Bounded decompression: the codecs that Kafka's and Pulsar's clients share.

Nothing inflates over the limit, whatever the compressed bytes declare or turn out to hold.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import cramjam
import numpy as np

from penstock.records.bounds import zstd_bound
from penstock.records.columns import Bytes
from penstock.records.errors import MalformedBatchError, OverLimitError

if TYPE_CHECKING:
    from penstock.session import Buffer

_FIRST_GUESS: Final = 64 * 1024
_DEFLATED_PIECE_BYTES: Final = 256 * 1024
_COMPRESSED_PIECE_BYTES: Final = 64 * 1024
"""What is given to zlib at once: it copies what it did not get to."""
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
        if most <= _DEFLATED_PIECE_BYTES and len(compressed) <= _DEFLATED_PIECE_BYTES:
            inflated = np.frombuffer(stream.decompress(compressed, most + 1), np.uint8)
        else:
            inflated = _in_pieces(stream, compressed, most + 1)
        if len(inflated) > most:
            raise _too_much(stated, limit)
        if not stream.eof:
            raise MalformedBatchError("the compressed bytes end too early")
        return inflated

    return inflate


def _in_pieces(stream: zlib._Decompress, compressed: memoryview, most: int) -> Bytes:
    """Return up to so many bytes, inflated piece by piece: zlib keeps the interpreter while it puts
    together what it returns.
    """
    out = np.empty(most, np.uint8)
    size = 0
    for start in range(0, len(compressed), _COMPRESSED_PIECE_BYTES):
        left: Buffer = compressed[start : start + _COMPRESSED_PIECE_BYTES]
        while size < most and not stream.eof:
            piece = stream.decompress(left, min(_DEFLATED_PIECE_BYTES, most - size))
            out[size : size + len(piece)] = np.frombuffer(piece, np.uint8)
            size += len(piece)
            left = stream.unconsumed_tail
            if not left and len(piece) < _DEFLATED_PIECE_BYTES:
                break
    return out[:size]


def snappy(compressed: memoryview, limit: int) -> Bytes:
    """Inflater one raw block."""
    size = cramjam.snappy.decompress_raw_len(compressed)
    if size > limit:
        raise _too_much(size, limit)
    out = np.empty(size, np.uint8)
    return out[: cramjam.snappy.decompress_raw_into(compressed, out.data)]


zstd: Final = growing(cramjam.zstd.decompress_into, zstd_bound)
