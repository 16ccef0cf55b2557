"""Which functions are compiled when the package is built, and what takes their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from penstock.records.kernels import library

_Function = TypeVar("_Function", bound=Callable[..., object])

KERNELS: Final[list[Callable[..., Any]]] = []
"""Every kernel, as it was written, of the modules that were imported."""
HELPERS: Final[list[Callable[..., Any]]] = []
_interpreted = False


def kernel(function: _Function) -> _Function:
    """Have the compiled function of the library in place of this one.

    It takes what its annotations say (`arguments`) and raises TypeError for all else. It releases
    the GIL while it runs where its arrays are long, checks no index and allocates nothing: what it
    writes to comes from its caller. It raises nothing either; its result says what is wrong.
    """
    KERNELS.append(function)
    return function if _interpreted else cast("_Function", library.compiled(name(function)))


def helper(function: _Function) -> _Function:
    """Let kernels call `function`, which becomes part of them."""
    HELPERS.append(function)
    return function


def name(function: Callable[..., object]) -> str:
    """Return what a kernel is called in the library."""
    return f"{function.__module__}.{function.__qualname__}"


def interpret() -> None:
    """Leave the kernels that are imported from now on to the interpreter, as the compiler needs."""
    global _interpreted  # noqa: PLW0603  # of the whole process
    _interpreted = True
