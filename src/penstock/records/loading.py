"""Having the compiled functions ready before the first call, beside a running event loop."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from importlib import import_module
from typing import Final

from penstock.records.kernels import cache as kernel_cache

_LAST_LOADED: Final = "penstock.records.conversion"
_preparing = asyncio.Lock()
_loaded = threading.Event()


async def prepare() -> None:
    """Have the compiled functions ready without keeping the event loop from its work.

    What no run before this has compiled is compiled by a process of its own, which takes up to a
    minute once; then all are loaded beside the loop.
    """
    if is_loaded():
        return
    async with _preparing:
        if not kernel_cache.is_complete():
            command = (sys.executable, "-m", "penstock.records.kernels.compile")
            compiler = await asyncio.create_subprocess_exec(*command)
            try:
                await compiler.wait()
            finally:
                if compiler.returncode is None:  # The waiting task was cancelled: the broker stops.
                    compiler.kill()
        await asyncio.to_thread(_load)
        _loaded.set()


def is_loaded() -> bool:
    """Whether the first call of `convert` or `decode` starts at once."""
    return _loaded.is_set()


def _load() -> None:
    # A million objects that stay: a collection that walks through them holds the loop for 0.15 s.
    gc.disable()
    try:
        import_module(_LAST_LOADED)
        gc.freeze()
    finally:
        gc.enable()
