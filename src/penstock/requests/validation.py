"""Looking into what producers send without keeping the event loop from its work."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from penstock import records
from penstock.broker.reading.conversion import reserve
from penstock.limits import VALIDATION_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.memory import Memory

_threads: Final = ThreadPoolExecutor(VALIDATION_THREADS, "validation")
_Result = TypeVar("_Result")


async def in_thread(
    memory: Memory, inflated_bytes: Callable[[], int], look: Callable[[], _Result]
) -> _Result:
    """Return what `look` returns, called in a thread once as many bytes as it takes are reserved.

    Raises what it raises.
    """
    await records.prepare()
    loop = asyncio.get_running_loop()
    with memory.reading() as held:
        await reserve(held, await loop.run_in_executor(_threads, inflated_bytes))
        return await loop.run_in_executor(_threads, look)
