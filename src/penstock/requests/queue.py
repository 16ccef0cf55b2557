"""Requests that keep their order although one of them has to wait for something."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager


class Queue:
    """Has requests do something one after another, in the order in which they asked for it.

    One that comes while others are `waiting` has to wait behind them.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._turn = asyncio.Lock()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Join the queue now; what this returns is entered when it is one's turn."""
        self.waiting += 1
        return self._taken()

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[None]:
        try:
            async with self._turn:
                yield
        finally:
            self.waiting -= 1
