"""Those who wait until a log is written, or flushed, up to an offset."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.log.errors import LogError


class Waiters:
    """Each waits for one offset, mostly in their order; a waiter may have given up."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def join(self, offset: int, failure: LogError | None) -> asyncio.Future[None]:
        """Return what is done once `offset` is reached; where all has failed, it has too."""
        future = asyncio.get_running_loop().create_future()
        if failure is not None:
            future.set_exception(failure)
        else:
            self._waiting.append((offset, future))
        return future

    def reached(self, end_offset: int) -> None:
        """Everything below `end_offset` is so."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            offset, future = each
            if offset >= end_offset:
                self._waiting.append(each)
            elif not future.done():
                future.set_result(None)

    def fail(self, failure: LogError, from_offset: int = 0) -> None:
        """What lies at `from_offset` and above will not be so."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            offset, future = each
            if offset < from_offset:
                self._waiting.append(each)
            elif not future.done():
                future.set_exception(failure)
