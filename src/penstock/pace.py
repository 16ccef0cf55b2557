"""Long work on the event loop goes in steps, between which all others have their turn.

    pace = Pace()
    for element in many:
        ...
        if pace.is_over():
            await pace.others()

Between two steps others change what all share, as at any other await.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from penstock import limits
from penstock.tasks import Tasks

ElementT = TypeVar("ElementT")
MadeT = TypeVar("MadeT")
SortedT = TypeVar("SortedT", str, int)

_STEP_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
_FIRST_UNTIMED: Final = 16
"""Elements before the first look at the clock: what has few never needs one."""
_ELEMENTS_UNTIMED: Final = 4
"""Between two looks at it."""
_SORTED_AT_ONCE: Final = 64
"""Elements of a run, of which several fit between two looks at the clock."""
_DROPPED_AT_ONCE: Final = 1_000

Steps: TypeAlias = deque[asyncio.Future[None]]
_waiting: Final = WeakKeyDictionary[asyncio.AbstractEventLoop, Steps]()
"""Of each event loop, the works that wait for their next step; one goes on in each pass."""


class Pace:
    """The steps of one work. What has few elements is one step, and never looks at the clock.

    `untimed`: before the first look at it, fewer where an element is a good part of a step.
    """

    __slots__ = ("_until", "_untimed")

    def __init__(self, untimed: int | None = None) -> None:
        self._untimed = untimed or _FIRST_UNTIMED
        self._until = perf_counter() + _STEP_SECONDS

    def is_over(self) -> bool:
        """Whether it is for others to go on; asked after each element."""
        self._untimed -= 1
        if self._untimed:
            return False
        self._untimed = _ELEMENTS_UNTIMED
        return perf_counter() >= self._until

    async def others(self) -> None:
        """Return when the next step may begin."""
        await _next_step()
        self._until = perf_counter() + _STEP_SECONDS

    async def each(
        self, elements: Iterable[ElementT], make: Callable[[ElementT], MadeT]
    ) -> list[MadeT]:
        """Return what is made of each element. No collection that others change, but a copy."""
        made = []
        for element in elements:
            made.append(make(element))
            if self.is_over():
                await self.others()
        return made

    async def each_awaited(
        self, elements: Iterable[ElementT], make: Callable[[ElementT], Awaitable[MadeT]]
    ) -> list[MadeT]:
        """As `each`, of elements that are made in steps themselves."""
        made = []
        for element in elements:
            made.append(await make(element))
            if self.is_over():
                await self.others()
        return made

    async def sorted(self, elements: Iterable[SortedT]) -> list[SortedT]:
        """Return the elements in order."""
        left = iter(elements)
        runs = []
        while run := sorted(islice(left, _SORTED_AT_ONCE)):
            runs.append(run)
            if self.is_over():
                await self.others()
        return await self.each(heapq.merge(*runs), _itself)

    async def through(self, steps: Iterable[None]) -> None:
        """Do all of a work that yields after each element."""
        for _ in steps:
            if self.is_over():
                await self.others()

    async def emptied(self, elements: list[Any]) -> None:
        """Drop all elements of a list: it takes a while to free many objects."""
        while elements:
            elements.pop()
            if self.is_over():
                await self.others()

    async def counted(self, elements: Iterable[ElementT]) -> Counter[ElementT]:
        """Return how many times there is each element."""
        counts = Counter[ElementT]()
        for element in elements:
            counts[element] += 1
            if self.is_over():
                await self.others()
        return counts


def _itself(element: ElementT) -> ElementT:
    return element


def drop(*collections: list[Any] | dict[Any, Any]) -> None:
    """Free what is in collections that nobody uses any more: in steps where it is much.

    The caller has others in their places by then.
    """
    for collection in collections:
        if len(collection) > _DROPPED_AT_ONCE:
            Tasks().start(Pace().through(_taken_out(collection)), "free what is not used any more")


def _taken_out(collection: list[Any] | dict[Any, Any]) -> Iterator[None]:
    take_out = collection.pop if isinstance(collection, list) else collection.popitem
    while collection:
        take_out()
        yield


async def _next_step() -> None:
    loop = asyncio.get_running_loop()
    waiting = _waiting.get(loop)
    if waiting is None:
        waiting = _waiting[loop] = deque()
    step: asyncio.Future[None] = loop.create_future()
    waiting.append(step)
    if len(waiting) == 1:
        loop.call_soon(_begin_next, loop, waiting)
    await step


def _begin_next(loop: asyncio.AbstractEventLoop, waiting: Steps) -> None:
    step = waiting.popleft()
    if not step.done():
        step.set_result(None)
    if waiting:
        loop.call_soon(_begin_next, loop, waiting)
