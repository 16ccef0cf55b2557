"""Having the conversions loaded before the first call, beside a running event loop."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from typing import Final

_JUDGING: Final = "penstock.records.judging"
_LAST_LOADED: Final = "penstock.records.conversion"
_preparing = asyncio.Lock()
_loaded = threading.Event()


async def prepare() -> None:
    """Load the conversions, and numpy with them, without keeping the event loop from its work.

    Logs are read with them too then.
    """
    if is_loaded():
        return
    async with _preparing:
        judging = await asyncio.to_thread(import_module, _JUDGING)
        await asyncio.to_thread(import_module, _LAST_LOADED)
        judging.have_it_used()
        _loaded.set()


def is_loaded() -> bool:
    """Whether the first call of `convert` or `decode` starts at once."""
    return _loaded.is_set()
