"""Requests that keep their order although one of them has to wait for something."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class Queue:
    """Has requests do something one after another, in the order in which they asked for it.

    One that comes while others are `waiting` has to wait behind them.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self.lock = asyncio.Lock()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Join the queue now; what this returns is entered when it is one's turn."""
        self.waiting += 1
        return _Turn(self)


class _Turn:
    """A context manager by hand: a request may be forgotten while it waits, and an asynchronous
    generator could not be ended then.
    """

    __slots__ = ("_queue",)

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def __aenter__(self) -> None:
        try:
            await self._queue.lock.acquire()
        except BaseException:
            self._queue.waiting -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._queue.lock.release()
        self._queue.waiting -= 1
