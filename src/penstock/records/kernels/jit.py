"""Compiled functions: signatures are explicit, so that nothing is compiled in mid-run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numba
from numba import types
from numba.extending import register_jitable

from penstock.records.kernels.cache import cache_directory

_config: Any = numba.config
Compiled: TypeAlias = Callable[..., Any]
"""numba checks what it is called with; of what is inside, mypy can't know the machine's types."""

INPUT: Final = types.Array(types.uint8, 1, "C", readonly=True)
OUTPUT: Final = types.Array(types.uint8, 1, "C")
NUMBERS: Final = types.Array(types.int64, 1, "C")
NUMBERS_INPUT: Final = types.Array(types.int64, 1, "C", readonly=True)
TABLE: Final = types.Array(types.int64, 2, "C")
TABLE_INPUT: Final = types.Array(types.int64, 2, "C", readonly=True)
MASK: Final = types.Array(types.boolean, 1, "C")
MASK_INPUT: Final = types.Array(types.boolean, 1, "C", readonly=True)
WORD: Final = types.uint64
INTEGER: Final = types.int64
NOTHING: Final = types.void


def kernel(result: Any, *arguments: Any, allocates: bool = False) -> Callable[[Compiled], Compiled]:
    """Compile for exactly these types at once, or take the result of an earlier compilation.

    A kernel lets go of the GIL while it runs. One that makes arrays of its own must say so, for
    the others don't count references: at every helper that would be two steps an array, each of
    which takes longer than most helpers do.
    """
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": allocates}

    def compile_now(function: Compiled) -> Compiled:
        configured = _config.CACHE_DIR
        _config.CACHE_DIR = str(cache_directory())
        try:
            compiled: Compiled = numba.njit([result(*arguments)], **options)(function)
        finally:
            _config.CACHE_DIR = configured
        return compiled

    return compile_now


def helper(function: Compiled) -> Compiled:
    """Let kernels call `function`, which becomes part of them.

    It is inlined whatever its size: a call would pass each array in seven arguments or more.
    """
    registered: Compiled = register_jitable(forceinline=True)(function)
    return registered
