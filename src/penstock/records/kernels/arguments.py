"""The types of what kernels take and return, for mypy and for the compiler at once.

An annotation says to mypy which elements can be read and written, and to the compiler how they lie
in memory. What ends with In is never written to; what ends with Out may also be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np

_Element = TypeVar("_Element")
_Element_co = TypeVar("_Element_co", covariant=True)


class Array(NamedTuple):
    """An array in C's order; `element` is a type's name in numpy."""

    element: str
    dimensions: int
    writable: bool


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


BytesIn: TypeAlias = Annotated[_ArrayIn[int], Array("uint8", 1, writable=False)]
BytesOut: TypeAlias = Annotated[_ArrayOut[int], Array("uint8", 1, writable=True)]
NumbersIn: TypeAlias = Annotated[_ArrayIn[int], Array("int64", 1, writable=False)]
NumbersOut: TypeAlias = Annotated[_ArrayOut[int], Array("int64", 1, writable=True)]
MaskIn: TypeAlias = Annotated[_ArrayIn[bool], Array("bool", 1, writable=False)]
MaskOut: TypeAlias = Annotated[_ArrayOut[bool], Array("bool", 1, writable=True)]
TableIn: TypeAlias = Annotated[_TableIn, Array("int64", 2, writable=False)]
TableOut: TypeAlias = Annotated[_TableOut, Array("int64", 2, writable=True)]
Word: TypeAlias = Annotated[int, "uint64"]

int64: Callable[[int], int] = cast("Any", np.int64)
"""Of a number that the compiler would take for a narrower one."""
uint64: Callable[[int], int] = cast("Any", np.uint64)
