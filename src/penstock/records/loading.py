"""Having the conversions loaded before the first call, beside a running event loop."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from typing import Final

_LAST_LOADED: Final = "penstock.records.conversion"
_preparing = asyncio.Lock()
_loaded = threading.Event()


async def prepare() -> None:
    """Load the conversions, and numpy with them, without keeping the event loop from its work."""
    if is_loaded():
        return
    async with _preparing:
        await asyncio.to_thread(import_module, _LAST_LOADED)
        _loaded.set()


def is_loaded() -> bool:
    """Whether the first call of `convert` or `decode` starts at once."""
    return _loaded.is_set()
