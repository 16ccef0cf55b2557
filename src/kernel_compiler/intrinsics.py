"""The compiler's own code for what numba has no words for; `penstock.records` says what it does."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeAlias

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from kernel_compiler.folding import emit_can_fold, emit_fold
from kernel_compiler.lanes import emit_lane_sums
from penstock.records.kernels import (
    crc32,
    crc32_folding,
    keyed_hash,
    primitives,
    xxh3,
    xxh3_lanes,
)

_cgutils: Any = cgutils
_extending: Any = extending
_types: Any = types
_WORD = ir.IntType(64)
_Generator: TypeAlias = Callable[..., Any]


def register() -> None:
    """Have numba put this code wherever one of these functions is called."""
    _register(primitives.load_word, _types.uint64, _load_word)
    _register(primitives.load_half, _types.int64, _load_half)
    _register(primitives.store_word, _types.void, _store_word)
    _register(primitives.store_half, _types.void, _store_half)
    _register(primitives.copy_bytes, _types.void, _copy_bytes)
    _register(primitives.prefetch, _types.void, _prefetch)
    _register(xxh3.fold, _types.uint64, _fold)
    _register(keyed_hash.multiply, _types.uint64, _multiply)
    if crc32.HAS_INSTRUCTION:
        _register(crc32.crc32c_word, _types.int64, _crc32c_word)
        _register(crc32_folding.can_fold, _types.int64, emit_can_fold)
        _register(crc32_folding.fold, _types.UniTuple(_types.uint64, 2), emit_fold)
    lanes = _types.UniTuple(_types.uint64, xxh3_lanes.LANES)
    _register(xxh3_lanes.sum_lanes, lanes, _sum_lanes)


def _register(function: Callable[..., Any], result: Any, generate: _Generator) -> None:
    """Have `generate` called with the address of an array's first byte, and numbers of 64 bits."""

    def lower(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        plain = [
            context.make_array(kind)(context, builder, argument).data
            if isinstance(kind, types.Array)
            else context.cast(builder, argument, kind, _types.int64)
            for kind, argument in zip(call.args, arguments, strict=True)
        ]
        made = generate(builder, *plain)
        if isinstance(made, list):
            return context.make_tuple(builder, result, made)
        return context.get_dummy_value() if made is None else made

    def typed(*_arguments: Any) -> Any:
        return result

    typed.__signature__ = signature(function)  # type: ignore[attr-defined]  # numba asks for it
    _extending.type_callable(function)(lambda _context: typed)
    _extending.lower_builtin(function, _types.VarArg(_types.Any))(lower)


def _place(builder: Any, data: Any, position: Any, bits: int) -> Any:
    return builder.bitcast(builder.gep(data, [position]), ir.IntType(bits).as_pointer())


def _load_word(builder: Any, data: Any, position: Any) -> Any:
    return builder.load(_place(builder, data, position, 64), align=1)


def _load_half(builder: Any, data: Any, position: Any) -> Any:
    return builder.zext(builder.load(_place(builder, data, position, 32), align=1), _WORD)


def _store_word(builder: Any, out: Any, position: Any, number: Any) -> None:
    builder.store(number, _place(builder, out, position, 64), align=1)


def _store_half(builder: Any, out: Any, position: Any, number: Any) -> None:
    half = builder.trunc(number, ir.IntType(32))
    builder.store(half, _place(builder, out, position, 32), align=1)


def _copy_bytes(builder: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> None:
    into, taken = builder.gep(target, [at]), builder.gep(source, [start])
    _cgutils.raw_memmove(builder, into, taken, size, 1)


def _prefetch(builder: Any, data: Any, position: Any) -> None:
    number = ir.IntType(32)
    place = builder.bitcast(builder.gep(data, [position]), ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), (place.type, number, number, number))
    name = "llvm.prefetch.p0i8"
    instruction = _cgutils.get_or_insert_function(builder.module, kind, name)
    to_read, kept_close, of_data = number(0), number(3), number(1)
    builder.call(instruction, [place, to_read, kept_close, of_data])


def _fold(builder: Any, left: Any, right: Any) -> Any:
    product = _product(builder, left, right)
    upper = builder.trunc(builder.lshr(product, product.type(64)), _WORD)
    return builder.xor(upper, builder.trunc(product, _WORD))


def _multiply(builder: Any, left: Any, right: Any) -> Any:
    product = _product(builder, left, right)
    upper = builder.trunc(builder.lshr(product, product.type(61)), _WORD)
    lower = builder.and_(builder.trunc(product, _WORD), _WORD(keyed_hash.PRIME))
    return builder.add(upper, lower)


def _product(builder: Any, left: Any, right: Any) -> Any:
    wide = ir.IntType(128)
    return builder.mul(builder.zext(left, wide), builder.zext(right, wide))


def _crc32c_word(builder: Any, state: Any, word: Any) -> Any:
    kind = ir.FunctionType(_WORD, (_WORD, _WORD))
    name = "llvm.x86.sse42.crc32.64.64"
    instruction = _cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(instruction, [state, word])


def _sum_lanes(builder: Any, data: Any, start: Any, size: Any) -> Any:
    return emit_lane_sums(builder, data, start, size)
