"""The types of what kernels take and return, for mypy and for the compiler at once.

An annotation says to mypy which elements can be read and written, and to `jit.kernel` the type to
compile for. What ends with In is never written to; what ends with Out may also be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Protocol, TypeAlias, TypeVar, cast, get_args, get_origin

import numpy as np
from numba import types

_Element = TypeVar("_Element")
_Element_co = TypeVar("_Element_co", covariant=True)


class _ArrayIn(Protocol[_Element_co]):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> _Element_co: ...


class _ArrayOut(Protocol[_Element]):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> _Element: ...
    def __setitem__(self, index: int | slice, element: _Element, /) -> None: ...


class _TableIn(Protocol):
    def __len__(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, place: tuple[int, int], /) -> int: ...


class _TableOut(_TableIn, Protocol):
    def __setitem__(self, place: tuple[int, int], number: int, /) -> None: ...


BytesIn: TypeAlias = Annotated[_ArrayIn[int], types.Array(types.uint8, 1, "C", readonly=True)]
BytesOut: TypeAlias = Annotated[_ArrayOut[int], types.Array(types.uint8, 1, "C")]
NumbersIn: TypeAlias = Annotated[_ArrayIn[int], types.Array(types.int64, 1, "C", readonly=True)]
NumbersOut: TypeAlias = Annotated[_ArrayOut[int], types.Array(types.int64, 1, "C")]
MaskIn: TypeAlias = Annotated[_ArrayIn[bool], types.Array(types.boolean, 1, "C", readonly=True)]
MaskOut: TypeAlias = Annotated[_ArrayOut[bool], types.Array(types.boolean, 1, "C")]
TableIn: TypeAlias = Annotated[_TableIn, types.Array(types.int64, 2, "C", readonly=True)]
TableOut: TypeAlias = Annotated[_TableOut, types.Array(types.int64, 2, "C")]
Word: TypeAlias = Annotated[int, types.uint64]

int64: Callable[[int], int] = cast("Any", np.int64)
"""Of a number that the compiler would take for a narrower one."""
uint64: Callable[[int], int] = cast("Any", types.uint64)

_SCALARS: Final[dict[object, Any]] = {int: types.int64, type(None): types.void}


def compiled_type(annotation: object) -> Any:
    """Return what an argument or a result that is annotated so is compiled as."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[1]
    return _SCALARS[annotation]
