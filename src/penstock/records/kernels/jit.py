"""Compiled functions: their annotations say for which types, so nothing is compiled in mid-run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, get_type_hints

import numba
from numba import extending

from penstock.records.kernels.arguments import compiled_type
from penstock.records.kernels.cache import cache_directory

intrinsic: Any = extending.intrinsic
"""Makes a function of what generates the compiler's own code; its type is that of its name."""

_config: Any = numba.config
_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile for exactly the annotated types at once, or take the result of an earlier run.

    A kernel releases the GIL while it runs. It makes no arrays of its own, so it need not count
    references: at every helper that would be two steps an array, each of which takes longer than
    most helpers do.
    """
    return _compiled(function, allocates=False)


def allocating_kernel(function: _Function) -> _Function:
    """Compile a kernel that makes arrays of its own."""
    return _compiled(function, allocates=True)


def helper(function: _Function) -> _Function:
    """Let kernels call `function`, which becomes part of them.

    It is inlined whatever its size: a call would pass each array in seven arguments or more.
    """
    registered: _Function = extending.register_jitable(forceinline=True)(function)
    return registered


def _compiled(function: _Function, *, allocates: bool) -> _Function:
    annotations = get_type_hints(function, include_extras=True)
    result, *arguments = map(compiled_type, [annotations.pop("return"), *annotations.values()])
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": allocates}
    configured = _config.CACHE_DIR
    _config.CACHE_DIR = str(cache_directory())
    try:
        return cast("_Function", numba.njit([result(*arguments)], **options)(function))
    finally:
        _config.CACHE_DIR = configured
