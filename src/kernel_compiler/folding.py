"""CRC-32's inner loop in the compiler's own language, where a lane is one vector."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from penstock.records.kernels.crc32_folding import BLOCK, LANE, LANES, NEXT_BLOCK, NEXT_LANE

_cgutils: Any = cgutils
_WORD: Final = ir.IntType(64)
_BYTE: Final = ir.IntType(8)
_LANE: Final = ir.VectorType(_WORD, 2)
_CAN_FOLD: Final = "can_fold"
_LOWER, _UPPER = _BYTE(0x00), _BYTE(0x11)
"""Which words of two lanes are multiplied."""


def defined(*, folds: bool) -> str:
    """Return what a level of processor that can fold or not adds to the kernels."""
    return f"@{_CAN_FOLD} = constant i64 {int(folds)}"


def emit_can_fold(builder: Any) -> Any:
    """Return what each level defines: what depends on it is decided when a level is compiled."""
    known = builder.module.globals.get(_CAN_FOLD)
    if known is None:
        known = ir.GlobalVariable(builder.module, _WORD, _CAN_FOLD)
        known.global_constant = True
        known.linkage, known.initializer = "weak", _WORD(0)  # That of a level takes its place.
    return builder.load(known)


def emit_fold(builder: Any, data: Any, start: Any, blocks: Any, state: Any) -> list[Any]:
    """Return two words, as `penstock.records.kernels.crc32_folding.fold` does."""

    def lane_at(position: Any, lane: int) -> Any:
        place = builder.add(position, _WORD(LANE * lane))
        pointer = builder.bitcast(builder.gep(data, [place]), _LANE.as_pointer())
        return builder.load(pointer, align=1)

    kind = ir.FunctionType(_LANE, (_LANE, _LANE, _BYTE))
    multiply = _cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")

    def moved(lane: Any, by: tuple[int, int]) -> Any:
        powers = ir.Constant(_LANE, by)
        lower = builder.call(multiply, [lane, powers, _LOWER])
        return builder.xor(lower, builder.call(multiply, [lane, powers, _UPPER]))

    first = [lane_at(start, lane) for lane in range(LANES)]
    begun = builder.insert_element(ir.Constant(_LANE, (0, 0)), state, _WORD(0))
    first[0] = builder.xor(first[0], begun)
    lanes = [_cgutils.alloca_once_value(builder, lane) for lane in first]
    with _cgutils.for_range(builder, builder.sub(blocks, _WORD(1))) as block:
        passed = builder.mul(builder.add(block.index, _WORD(1)), _WORD(BLOCK))
        position = builder.add(start, passed)
        for lane, place in enumerate(lanes):
            joined = builder.xor(moved(builder.load(place), NEXT_BLOCK), lane_at(position, lane))
            builder.store(joined, place)
    folded = builder.load(lanes[0])
    for place in lanes[1:]:
        folded = builder.xor(moved(folded, NEXT_LANE), builder.load(place))
    return [builder.extract_element(folded, _WORD(word)) for word in range(2)]
