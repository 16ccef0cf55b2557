"""The one way to start a task: with a name, kept from the collector, its failure reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, TypeVar
from weakref import WeakSet

ResultT = TypeVar("ResultT")

_uninterrupted: Final[WeakSet[asyncio.Task[None]]] = WeakSet()

logger = logging.getLogger(__name__)


class Tasks:
    """The running tasks of one owner."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` beside the caller. An exception in it is logged with its traceback."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """Ask every running task to end."""
        for task in tuple(self._running):
            task.cancel()

    async def ended(self) -> None:
        """Return when no task is running."""
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the task %s failed", task.get_name(), exc_info=error)


async def uninterrupted(
    work: Coroutine[Any, Any, ResultT], name: str, *, refusals: type[Exception]
) -> ResultT:
    """Return what `work` returns, which goes on to its end even where the caller is cancelled.

    For what is done in steps of which none may be missing. Raises what `work` raises. Where nobody
    is left to hear that, it is logged, unless it is one of `refusals`, by which nothing was done.
    """
    outcome: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        try:
            result = await work
        except Exception as error:
            if not outcome.done():
                outcome.set_exception(error)
            elif not isinstance(error, refusals):
                raise
        else:
            if not outcome.done():
                outcome.set_result(result)

    _uninterrupted.add(Tasks().start(run(), name))
    return await outcome


async def all_uninterrupted() -> None:
    """Return when nothing is left of what goes on although its callers are gone."""
    loop = asyncio.get_running_loop()
    while left := [task for task in _uninterrupted if task.get_loop() is loop and not task.done()]:
        await asyncio.wait(left)
