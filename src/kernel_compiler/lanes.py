"""XXH3's inner loop in the compiler's own language, where its eight sums are one vector."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from penstock.records.kernels.xxh3_lanes import (
    BLOCK,
    FIRST_LANES,
    LANES,
    LAST_SECRET,
    PRIME32_1,
    SCRAMBLING_SECRET,
    SECRET_BYTES,
    STRIPE,
    STRIPES_PER_BLOCK,
)

_cgutils: Any = cgutils
_WORD: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(_WORD, LANES)
_NEIGHBOURS: Final = ir.Constant(
    ir.VectorType(ir.IntType(32), LANES), [lane ^ 1 for lane in range(LANES)]
)


def _everywhere(word: int) -> Any:
    return ir.Constant(_VECTOR, [word] * LANES)


class _Sum:
    """The eight sums while the code that adds to them is written."""

    def __init__(self, builder: Any, data: Any) -> None:
        self._builder = builder
        self._data = data
        secret = _cgutils.make_bytearray(SECRET_BYTES)
        self._secret = _cgutils.global_constant(builder.module, "xxh3_secret", secret)
        self._sums = _cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, FIRST_LANES))

    def accumulate(self, position: Any, secret: Any) -> None:
        """Add a stripe: each word to its neighbour, and the product of its keyed halves."""
        builder = self._builder
        words = self._vector_at(self._data, position)
        keyed = builder.xor(words, self._secret_at(secret))
        low = builder.and_(keyed, _everywhere(0xFFFFFFFF))
        product = builder.mul(low, builder.lshr(keyed, _everywhere(32)))
        neighbours = builder.shuffle_vector(words, words, _NEIGHBOURS)
        sums = builder.add(builder.load(self._sums), neighbours)
        builder.store(builder.add(sums, product), self._sums)

    def scramble(self) -> None:
        """Mix each sum with itself at the end of a block."""
        builder = self._builder
        sums = builder.load(self._sums)
        mixed = builder.xor(sums, builder.lshr(sums, _everywhere(47)))
        mixed = builder.xor(mixed, self._secret_at(_WORD(SCRAMBLING_SECRET)))
        builder.store(builder.mul(mixed, _everywhere(PRIME32_1)), self._sums)

    def lanes(self) -> list[Any]:
        """The sums one by one."""
        sums = self._builder.load(self._sums)
        return [self._builder.extract_element(sums, _WORD(lane)) for lane in range(LANES)]

    def _secret_at(self, position: Any) -> Any:
        first = self._builder.gep(self._secret, [_WORD(0), _WORD(0)])
        return self._vector_at(first, position)

    def _vector_at(self, bytes_: Any, position: Any) -> Any:
        builder = self._builder
        pointer = builder.bitcast(builder.gep(bytes_, [position]), _VECTOR.as_pointer())
        return builder.load(pointer, align=1)


def emit_lane_sums(builder: Any, data: Any, start: Any, size: Any) -> list[Any]:
    """Return the eight sums, as `penstock.records.kernels.xxh3_lanes.sum_lanes` does."""
    sums = _Sum(builder, data)
    but_one = builder.sub(size, _WORD(1))
    blocks = builder.udiv(but_one, _WORD(BLOCK))
    with _cgutils.for_range(builder, blocks) as block:
        position = builder.add(start, builder.mul(block.index, _WORD(BLOCK)))
        for stripe in range(STRIPES_PER_BLOCK):
            at = builder.add(position, _WORD(stripe * STRIPE))
            sums.accumulate(at, _WORD(8 * stripe))
        sums.scramble()
    position = builder.add(start, builder.mul(blocks, _WORD(BLOCK)))
    stripes = builder.udiv(builder.urem(but_one, _WORD(BLOCK)), _WORD(STRIPE))
    with _cgutils.for_range(builder, stripes) as stripe:
        at = builder.add(position, builder.mul(stripe.index, _WORD(STRIPE)))
        sums.accumulate(at, builder.mul(stripe.index, _WORD(8)))
    last = builder.sub(builder.add(start, size), _WORD(STRIPE))
    sums.accumulate(last, _WORD(LAST_SECRET))
    return sums.lanes()
