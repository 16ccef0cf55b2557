"""Changes that many ask for at a time are made in groups, each of which shares its flushes."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.broker.errors import BrokerError
from penstock.limits import TOPICS_CHANGED_TOGETHER
from penstock.tasks import start_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

AskedT = TypeVar("AskedT")
DoneT = TypeVar("DoneT")

logger = logging.getLogger(__name__)


class Joined(Generic[AskedT, DoneT]):
    """One group at a time is done; what is asked for meanwhile joins the next one.

    `do` returns what has come of each, in their order: an exception where it failed. A group that
    has begun goes on to its end, even where those who asked are gone.
    """

    def __init__(
        self, do: Callable[[Sequence[AskedT]], Awaitable[Sequence[DoneT | Exception]]], name: str
    ) -> None:
        self._do = do
        self._name = name
        self._asked: deque[tuple[AskedT, asyncio.Future[DoneT]]] = deque()
        self._is_running = False

    def ask(self, asked: AskedT) -> asyncio.Future[DoneT]:
        """Done when it is done, or has failed."""
        outcome: asyncio.Future[DoneT] = asyncio.get_running_loop().create_future()
        self._asked.append((asked, outcome))
        if not self._is_running:
            self._is_running = True
            start_uninterrupted(self._do_all(), self._name)
        return outcome

    async def ask_all(self, asked: Sequence[AskedT]) -> list[DoneT | BaseException]:
        """Return what has come of each. Others have their turn between groups of them."""
        outcomes: list[DoneT | BaseException] = []
        for first in range(0, len(asked), TOPICS_CHANGED_TOGETHER):
            together = [self.ask(each) for each in asked[first : first + TOPICS_CHANGED_TOGETHER]]
            outcomes += await asyncio.gather(*together, return_exceptions=True)
        return outcomes

    async def _do_all(self) -> None:
        try:
            while group := self._next_group():
                await self._do_together(group)
        finally:
            self._is_running = False

    def _next_group(self) -> list[tuple[AskedT, asyncio.Future[DoneT]]]:
        group: list[tuple[AskedT, asyncio.Future[DoneT]]] = []
        while self._asked and len(group) < TOPICS_CHANGED_TOGETHER:
            asked, outcome = self._asked.popleft()
            if not outcome.cancelled():
                group.append((asked, outcome))
        return group

    async def _do_together(self, group: Sequence[tuple[AskedT, asyncio.Future[DoneT]]]) -> None:
        try:
            done = await self._do([asked for asked, _ in group])
        except Exception as error:  # Whatever it is, those who wait must hear of it.
            done = [error] * len(group)
        self._settle((outcome for _, outcome in group), done)

    def _settle(
        self, outcomes: Iterable[asyncio.Future[DoneT]], done: Sequence[DoneT | Exception]
    ) -> None:
        for outcome, each in zip(outcomes, done, strict=True):
            if outcome.cancelled():
                if isinstance(each, Exception) and not isinstance(each, BrokerError):
                    logger.error("%s failed", self._name, exc_info=each)
            elif isinstance(each, Exception):
                outcome.set_exception(each)
            else:
                outcome.set_result(each)
