"""One budget for all memory that clients can make a node take.

Each purpose has an account. Whoever holds something for a client adds it to the account, and takes
it off when it is gone: two additions, for a request or a batch and never for a message. Before
something large is held, its holder asks whether it fits:

* Three quarters of the budget are for what is large. A holder may have twice as much of them as is
  left then, so that however many hold on to what they have, something is left for the next one.
* The last quarter is for holders of little.
* Who is alone may go over the budget: a request that is larger is carried out, one at a time.
* Before anybody waits, what is held is counted anew, and caches are emptied.
* What does not fit waits. So long, whoever holds something and does not get on with it is cut, the
  one that got stuck first before all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from penstock import limits

_LOOK_SECONDS: Final = 0.01
"""How often those who wait are looked at, and at most what is held counted anew."""


class Reclaimer(Protocol):
    """Somebody who can give memory back."""

    def recount(self) -> None:
        """Correct the accounts where something may be gone that nobody has said."""

    def cut(self, size: int) -> None:
        """Cut those who hold something and do not get on with it, until `size` bytes are free."""


class Account:
    """What is held for one purpose, in bytes."""

    __slots__ = ("_memory", "used")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.used = 0

    def take(self, size: int) -> None:
        """Add what is held now; less than 0 gives back."""
        self.used += size
        self._memory.used += size
        assert self.used >= 0, "no more is given back than was taken"


class Wanted:
    """What somebody waits for. `granted` is called once, in a turn of the event loop."""

    __slots__ = ("granted", "held", "since", "size")

    def __init__(self, size: int, held: int, granted: Callable[[], None], since: float) -> None:
        self.size = size
        self.held = held
        self.granted = granted
        self.since = since


class Memory:
    """The budget of one node, in bytes. All methods belong to the event loop's thread."""

    def __init__(self, budget: int = limits.MEMORY_BYTES_LEAST) -> None:
        self.budget = budget
        self.used = 0
        self.receiving = Account(self)
        """Requests that are not whole, and those that are not answered."""
        self.writes = Account(self)
        """Batches on their way to the disk."""
        self.reads = Account(self)
        """What is being read and converted for answers to come."""
        self.answers = Account(self)
        """Answers that their clients did not take yet."""
        self.caches = Account(self)
        self.groups = Account(self)
        """Members of consumer groups, and what they say of themselves."""
        self.ample = budget // 4
        """As long as less is used nobody need ask."""
        self._for_large = budget * 3 // 4
        self._caches: list[Callable[[], None]] = []
        self._reclaimer: Reclaimer | None = None
        self._waiting: list[Wanted] = []
        self._counted = float("-inf")

    def add_cache(self, empty: Callable[[], None]) -> None:
        """Have `empty` called when memory is short."""
        self._caches.append(empty)

    def set_reclaimer(self, reclaimer: Reclaimer) -> None:
        """Say who is asked when memory is short. There is one."""
        self._reclaimer = reclaimer

    def room(self, held: int = 0) -> int:
        """How much more a holder of `held` bytes may have; not above 0 where that is nothing."""
        little = min(limits.LITTLE_MEMORY_BYTES - held, self.budget - self.used)
        large = (2 * (self._for_large - self.used) - held) // 3
        return max(little, large)

    def fits(self, size: int, held: int = 0) -> bool:
        """Whether a holder of `held` bytes may have `size` more, after all that can be done."""
        if size <= self.room(held):
            return True
        self._make_room()
        return size <= self.room(held) or self._is_alone(held)

    def wait(self, size: int, held: int, granted: Callable[[], None]) -> Wanted:
        """Have `granted` called when what did not fit does."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_later(_LOOK_SECONDS, self._look)
        wanted = Wanted(size, held, granted, loop.time())
        self._waiting.append(wanted)
        return wanted

    def forget(self, wanted: Wanted) -> None:
        """Nobody waits for it any more."""
        if wanted in self._waiting:
            self._waiting.remove(wanted)

    @contextmanager
    def reading(self, wanted: int) -> Iterator[Reading]:
        """Count a read for one answer; what it holds is given back at the end."""
        reading = Reading(self, wanted)
        try:
            yield reading
        finally:
            reading.set(0)

    def _is_alone(self, held: int) -> bool:
        return self.used - held - self.caches.used <= self.budget // 16

    def _make_room(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._counted < _LOOK_SECONDS:
            return
        self._counted = now
        if self._reclaimer is not None:
            self._reclaimer.recount()
        if self.used >= self.ample:
            for empty in self._caches:
                empty()

    def _look(self) -> None:
        waiting, self._waiting = self._waiting, []
        for wanted in waiting:
            if self.fits(wanted.size, wanted.held):
                wanted.granted()
            else:
                self._waiting.append(wanted)
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        first = self._waiting[0]
        if self._reclaimer is not None and loop.time() - first.since > limits.SHORTAGE_SECONDS:
            self._reclaimer.cut(first.size)
        loop.call_later(_LOOK_SECONDS, self._look)


class Reading:
    """What one answer may hold while it is put together."""

    __slots__ = ("_memory", "held", "wanted")

    def __init__(self, memory: Memory, wanted: int) -> None:
        self._memory = memory
        self.wanted = wanted
        self.held = 0

    def set(self, size: int) -> None:
        """Say how much is held now."""
        self._memory.reads.take(size - self.held)
        self.held = size

    async def begin(self, least: int = limits.LITTLE_MEMORY_BYTES) -> int:
        """Return how much may be read, when that is all or `least`, and count it as held."""
        memory = self._memory
        if memory.room() < self.wanted:
            least = min(self.wanted, least)
            if not memory.fits(least):
                await self._wait(least)
        granted = max(min(self.wanted, memory.room()), min(self.wanted, least))
        self.set(granted)
        return granted

    async def _wait(self, size: int) -> None:
        ready = asyncio.Event()
        wanted = self._memory.wait(size, 0, ready.set)
        try:
            await ready.wait()
        finally:
            self._memory.forget(wanted)
