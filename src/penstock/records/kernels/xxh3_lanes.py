"""XXH3's inner loop, over what is longer than 240 bytes: eight sums side by side.

It is written in the compiler's own language, where eight lanes are one vector that stays in the
processor's registers. Over an array they are loads and stores, and take five times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils

from penstock.records.kernels.arguments import BytesIn
from penstock.records.kernels.jit import intrinsic

_cgutils: Any = cgutils
_UniTuple: Any = types.UniTuple
SECRET_BYTES: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_PRIME32_1: Final = 0x9E3779B1
_FIRST_LANES: Final = (
    0xC2B2AE3D,
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x85EBCA77,
    0x27D4EB2F165667C5,
    _PRIME32_1,
)
_LANES: Final = len(_FIRST_LANES)
_STRIPE: Final = 8 * _LANES
_STRIPES_PER_BLOCK: Final = 16
_BLOCK: Final = _STRIPE * _STRIPES_PER_BLOCK
_SCRAMBLING_SECRET: Final = len(SECRET_BYTES) - _STRIPE
_LAST_SECRET: Final = _SCRAMBLING_SECRET - 7

_WORD: Final = ir.IntType(64)
_VECTOR: Final = ir.VectorType(_WORD, _LANES)
_NEIGHBOURS: Final = ir.Constant(
    ir.VectorType(ir.IntType(32), _LANES), [lane ^ 1 for lane in range(_LANES)]
)


def _everywhere(word: int) -> Any:
    return ir.Constant(_VECTOR, [word] * _LANES)


class _Sum:
    """The eight sums while the code that adds to them is written."""

    def __init__(self, builder: Any, data: Any) -> None:
        self._builder = builder
        self._data = data
        secret = _cgutils.make_bytearray(SECRET_BYTES)
        self._secret = _cgutils.global_constant(builder.module, "xxh3_secret", secret)
        self._sums = _cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, _FIRST_LANES))

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
        mixed = builder.xor(mixed, self._secret_at(_WORD(_SCRAMBLING_SECRET)))
        builder.store(builder.mul(mixed, _everywhere(_PRIME32_1)), self._sums)

    def lanes(self) -> list[Any]:
        """The sums one by one."""
        sums = self._builder.load(self._sums)
        return [self._builder.extract_element(sums, _WORD(lane)) for lane in range(_LANES)]

    def _secret_at(self, position: Any) -> Any:
        first = self._builder.gep(self._secret, [_WORD(0), _WORD(0)])
        return self._vector_at(first, position)

    def _vector_at(self, bytes_: Any, position: Any) -> Any:
        builder = self._builder
        pointer = builder.bitcast(builder.gep(bytes_, [position]), _VECTOR.as_pointer())
        return builder.load(pointer, align=1)


def _sum_lanes(_context: Any, data: Any, _start: Any, _size: Any) -> Any:
    result = _UniTuple(types.uint64, _LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        start, size = arguments[1:]
        sums = _Sum(builder, array.data)
        but_one = builder.sub(size, _WORD(1))
        blocks = builder.udiv(but_one, _WORD(_BLOCK))
        with _cgutils.for_range(builder, blocks) as block:
            position = builder.add(start, builder.mul(block.index, _WORD(_BLOCK)))
            for stripe in range(_STRIPES_PER_BLOCK):
                at = builder.add(position, _WORD(stripe * _STRIPE))
                sums.accumulate(at, _WORD(8 * stripe))
            sums.scramble()
        position = builder.add(start, builder.mul(blocks, _WORD(_BLOCK)))
        stripes = builder.udiv(builder.urem(but_one, _WORD(_BLOCK)), _WORD(_STRIPE))
        with _cgutils.for_range(builder, stripes) as stripe:
            at = builder.add(position, builder.mul(stripe.index, _WORD(_STRIPE)))
            sums.accumulate(at, builder.mul(stripe.index, _WORD(8)))
        last = builder.sub(builder.add(start, size), _WORD(_STRIPE))
        sums.accumulate(last, _WORD(_LAST_SECRET))
        return context.make_tuple(builder, result, sums.lanes())

    return result(data, types.int64, types.int64), generate


sum_lanes: Callable[[BytesIn, int, int], tuple[int, ...]] = intrinsic(_sum_lanes)
"""(data, start, size): return the eight sums over a range of more than 240 bytes of `data`."""
