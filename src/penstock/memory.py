"""One budget for all memory that clients can make a node take.

Each purpose has an account. Whoever holds something for a client adds it to the account, and takes
it off when it is gone: two additions, for a request or a batch and never for a message. Before
something large is held, its holder asks whether it fits:

* Three quarters of the budget are for what is large, and the last quarter is for holders of little.
  A holder may have twice as much of its share as is left then, so that however many hold on to what
  they have, something is left for the next one.
* Who holds next to nothing never waits, as its connection itself costs more. So a client that asks
  one small thing at a time does not notice how short memory is.
* Who is alone may go over the budget: a request that is larger is carried out, one at a time.
* What can't be done with less, as to inflate a batch, may go over it too, to 1.2 times of it: one
  at a time, first come, first served. Who has waited for long is refused, for readers that hold
  what they have read could wait for one another.
* Before anybody waits, what is held is counted anew, and caches are emptied.
* What does not fit waits. So long, whoever holds something and does not get on with it is cut, the
  one that got stuck first before all others, until there is room for all who wait.
* What lasts as long as clients want, and nobody can be cut for, has parts of the budget of its own:
  groups, subscriptions, producers, committed offsets, and what connections keep open. Where one is
  full, more is refused or waits.
* What no account knows is measured: what the process has beyond all accounts, less what it may have
  for itself, counts as held. Fragments of freed memory and libraries loaded late are such; for
  the latter something is kept from the beginning.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol, Self, TypeVar
from weakref import ref

from penstock import limits
from penstock.pace import Pace
from penstock.tasks import within

_LOOK_SECONDS: Final = 0.01
"""How often those who wait are looked at, and at most what is held counted anew."""
_LOOKED_AT_TOGETHER: Final = 256
"""Of those who wait, in one turn of the event loop."""
_EMPTYING_SECONDS: Final = limits.TURN_MICROSECONDS / 1_000_000
"""How long caches are emptied at a stretch: each reader of a subscription is one."""
_ASKED_TOGETHER: Final = 64
"""Holders of a shared account that are looked at when something of it is given back, or wanted."""
_FOLLOWED_BYTES: Final = 4 * limits.KIB
"""By how much a holding may be wrong that follows what changes all the time."""
_MEASURE_SECONDS: Final = 0.02
"""How often the process is measured at most."""
_Result = TypeVar("_Result")


class MemoryShortError(Exception):
    """There was no memory for it in time; to ask again later may help."""


class Reclaimer(Protocol):
    """Somebody who can give memory back."""

    def recount(self) -> None:
        """Correct the accounts where something may be gone that nobody has said."""

    def cut(self, size: int) -> None:
        """Cut those who hold something and do not get on with it, until `size` bytes are free.

        Where there are many it cuts some, and the next ones the next time.
        """


class Cache(Protocol):
    """Something that can be had anew."""

    def empty(self) -> None:
        """Give all of it back; called between two turns of the event loop."""


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


class SharedAccount(Account):
    """A part of the budget for what lasts as long as clients want, which others can't take back.

    Its holders are refused more than their share, or wait until some is given back.
    """

    __slots__ = ("_givers", "_waiting", "bound")

    def __init__(self, memory: Memory, bound: int) -> None:
        super().__init__(memory)
        self.bound = bound
        self._waiting: OrderedDict[Holding, Callable[[], None]] = OrderedDict()
        self._givers: OrderedDict[Holding, Callable[[], None]] = OrderedDict()

    def take(self, size: int) -> None:
        super().take(size)
        if size < 0 and self._waiting:
            self._wake()

    def room(self, held: int) -> int:
        """How much more a holder of `held` bytes may have; not above 0 where that is nothing."""
        return _share(self.bound - self.used, held)

    def fits(self, size: int) -> bool:
        """Whether so much more is within the bound, whoever holds it."""
        return self.used + size <= self.bound

    def wait(self, holding: Holding, wake: Callable[[], None]) -> None:
        """Have `wake` called once when there is room for a holder, after somebody gave back."""
        self._waiting[holding] = wake

    def ask_back(self, holding: Holding, give_back: Callable[[], None]) -> None:
        """Have `give_back` called when memory is short, as long as anything is held."""
        self._givers[holding] = give_back

    def reclaim(self) -> None:
        """Ask for what is not needed; of many holders some, and the next ones the next time."""
        for holding in tuple(islice(self._givers, _ASKED_TOGETHER)):
            self._givers.move_to_end(holding)
            self._givers[holding]()

    def forget(self, holding: Holding) -> None:
        """It neither waits any more nor has anything to give back."""
        self._waiting.pop(holding, None)
        self._givers.pop(holding, None)

    def _wake(self) -> None:
        for holding in tuple(islice(self._waiting, _ASKED_TOGETHER)):
            if self.room(holding.size) > 0:
                self._waiting.pop(holding)()
            else:
                self._waiting.move_to_end(holding)


class Wanted:
    """What somebody waits for. `granted` is called once, in a turn of the event loop."""

    __slots__ = ("exceeding", "granted", "held", "since", "size")

    def __init__(
        self,
        size: int,
        held: int,
        granted: Callable[[], None],
        since: float,
        exceeding: Reading | None,
    ) -> None:
        self.size = size
        self.held = held
        self.granted = granted
        self.since = since
        self.exceeding = exceeding
        """Who may go beyond the budget for it, where somebody may."""


class Memory:
    """The budget of one node, in bytes. All methods belong to the event loop's thread."""

    def __init__(self, budget: int = limits.MEMORY_BYTES_LEAST) -> None:
        self.budget = budget
        self.used = 0
        self.receiving = Account(self)
        """Requests that are not whole, and those that are not answered."""
        self.reads = Account(self)
        """What is read and converted for answers to come."""
        self.answers = Account(self)
        """Answers that their clients did not take yet."""
        self.caches = Account(self)
        self.groups = Account(self)
        """Members of consumer groups, and what they say of themselves."""
        self.subscriptions = SharedAccount(self, budget // 8)
        """What subscriptions know of messages that are out, came back or are acknowledged."""
        self.producers = SharedAccount(self, budget // 16)
        """What partitions remember of idempotent producers."""
        self.metadata = SharedAccount(self, budget // 4)
        """Committed offsets and subscriptions, which are in the database too."""
        self.clients = SharedAccount(self, budget // 8)
        """Consumers, producers and memberships that connections keep open."""
        self.unknown = Account(self)
        """What the process was found to have beyond the other accounts, as of the last look."""
        self.ample = budget // 4
        """As long as less is used nobody need ask."""
        self._for_large = budget * 3 // 4
        self._exceeded = budget * 6 // 5
        """As much as there is with what one holds beyond the budget."""
        self._exceeding: Reading | None = None
        self._line: dict[Wanted, None] = {}
        """Those who may exceed the budget, the first one first, while they wait."""
        self._caches: OrderedDict[ref[Cache], None] = OrderedDict()
        """The one that was emptied last is at the end."""
        self._reclaimer: Reclaimer | None = None
        self._waiting: dict[Wanted, None] = {}
        self._counted = self._measured = float("-inf")
        self._resident: Callable[[], int] | None = None

    def add_cache(self, cache: Cache) -> None:
        """Have a cache emptied when memory is short."""
        self._caches[ref(cache, self._forget_cache)] = None

    def set_reclaimer(self, reclaimer: Reclaimer) -> None:
        """Say who is asked when memory is short. There is one."""
        self._reclaimer = reclaimer

    def set_resident(self, resident: Callable[[], int]) -> None:
        """Say what returns how many bytes the process has; without it nothing is measured."""
        self._resident = resident

    @property
    def has_room_for_groups(self) -> bool:
        """Whether groups have less than the eighth that is theirs at most: they never give back."""
        return self.groups.used < self.budget // 8

    def room(self, held: int = 0) -> int:
        """How much more a holder of `held` bytes may have; not above 0 where that is nothing."""
        least = limits.LEAST_MEMORY_BYTES - held
        exceeding = self._exceeding.size if self._exceeding is not None else 0
        left = self.budget - self.used + exceeding
        little = min(limits.LITTLE_MEMORY_BYTES - held, _share(left, held))
        large = _share(self._for_large - self.used, held)
        return max(least, little, large)

    def fits(self, size: int, held: int = 0) -> bool:
        """Whether a holder of `held` bytes may have `size` more, after all that can be done."""
        self.measure()
        if size <= self.room(held):
            return True
        self._make_room()
        return size <= self.room(held) or self._is_alone(held)

    def measure(self) -> None:
        """Count what the process has and no account knows, unless that was done just now.

        At least what it has once everything is loaded, but never more than half of the budget:
        clients have the other half whatever was loaded.
        """
        now = time.monotonic()
        if self._resident is None or now - self._measured < _MEASURE_SECONDS:
            return
        self._measured = now
        known = limits.PROCESS_BYTES + self.used - self.unknown.used
        beyond = max(self._resident() - known, limits.CONVERSIONS_BYTES)
        unknown = min(beyond, self.budget // 2)
        self.unknown.take(unknown - self.unknown.used)

    def wait(
        self,
        size: int,
        held: int,
        granted: Callable[[], None],
        exceeding: Reading | None = None,
        waited: float = 0.0,
    ) -> Wanted:
        """Have `granted` called when what did not fit does, or `exceeding` may exceed the budget.

        Nobody else does so before that reading `ended`. `waited`: seconds for what has come in
        parts before, so that many short waits are a long one.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_later(_LOOK_SECONDS, self._look)
        wanted = Wanted(size, held, granted, loop.time() - waited, exceeding)
        self._waiting[wanted] = None
        if exceeding is not None:
            self._line[wanted] = None
        return wanted

    def forget(self, wanted: Wanted) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(wanted, None)
        self._line.pop(wanted, None)

    def ended(self, reading: Reading, heir: Reading | None = None) -> None:
        """One reading holds nothing any more, or another one has what it had."""
        if reading is self._exceeding:
            self._exceeding = heir

    def reading(self) -> Reading:
        """Begin to put an answer together."""
        return Reading(self)

    def _is_alone(self, held: int) -> bool:
        # Nobody gives back what lasts because somebody else waits for it.
        lasts = (self.groups, self.subscriptions, self.producers, self.metadata, self.clients)
        lasting = sum(account.used for account in lasts)
        others = self.used - held - self.caches.used - self.unknown.used - lasting
        return others <= self.budget // 16

    def _exceeds(self, wanted: Wanted) -> bool:
        """Let somebody go beyond the budget if it is his turn; return whether that is so."""
        is_next = self._exceeding is None and wanted is next(iter(self._line), None)
        if is_next and self.used + wanted.size <= self._exceeded:
            self._exceeding = wanted.exceeding
        return self._exceeding is wanted.exceeding is not None

    def _make_room(self) -> None:
        now = time.monotonic()
        if now - self._counted < _LOOK_SECONDS:
            return
        self._counted = now
        if self.used >= self.ample:
            self._empty_caches()
        if self._reclaimer is not None:
            self._reclaimer.recount()
        self.measure()

    def _empty_caches(self) -> None:
        """Empty all caches, or as many as one turn has time for, and others the next time."""
        until = time.perf_counter() + _EMPTYING_SECONDS
        for reference in tuple(self._caches):
            cache = reference()
            if cache is not None:
                self._caches.move_to_end(reference)
                cache.empty()
            if time.perf_counter() >= until:
                return

    def _forget_cache(self, reference: ref[Cache]) -> None:
        self._caches.pop(reference, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        in_time = loop.time() - limits.SHORTAGE_SECONDS
        missing, is_long = 0, False
        for wanted in tuple(islice(self._waiting, _LOOKED_AT_TOGETHER)):
            if wanted not in self._waiting:
                continue  # Forgotten when another one was granted.
            del self._waiting[wanted]
            if self.fits(wanted.size, wanted.held) or self._exceeds(wanted):
                self._line.pop(wanted, None)
                wanted.granted()
            else:
                # Where more wait than are looked at, those behind have their turn at the next look.
                self._waiting[wanted] = None
                missing += _left_for(wanted.size, wanted.held)
                is_long = is_long or wanted.since < in_time
        if is_long and self._reclaimer is not None:
            self._reclaimer.cut(missing + max(0, self.used - self.budget))
        if self._waiting:
            loop.call_later(_LOOK_SECONDS, self._look)


def _share(left: int, held: int) -> int:
    """Return how much more of what is left a holder may have."""
    return (2 * left - held) // 3


def _left_for(size: int, held: int) -> int:
    """Return how much has to be left so that the share of a holder is `size` more."""
    return (3 * size + held + 1) // 2


def text_bytes(text: str) -> int:
    """Return how many bytes the characters of a text may take: four each where one is an emoji.

    Once it went to the database or a client, it also keeps its UTF-8: what is counted is the same
    before that and after it, as `sys.getsizeof` is not.
    """
    if text.isascii():
        return len(text)
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    width = 2 if units == len(text) else 4
    return width * len(text) + len(text.encode("utf-8", "surrogatepass"))


class Holding:
    """What one holder has on an account. It is given back when nobody knows the holder any more."""

    __slots__ = ("_account", "size")

    def __init__(self, account: Account) -> None:
        self._account = account
        self.size = 0

    def set(self, size: int) -> None:
        """Say how much is held now."""
        if size != self.size:
            self._account.take(size - self.size)
            self.size = size

    def grow(self, size: int) -> None:
        """Say how much more is held now; less than 0 is less."""
        self.set(self.size + size)

    def follow(self, size: int) -> None:
        """Say about how much is held now, as often as that changes."""
        if abs(size - self.size) >= _FOLLOWED_BYTES or (not size and self.size):
            self.set(size)

    def __del__(self) -> None:
        if self.size:
            self._account.take(-self.size)


class Reading(Holding):
    """What is read and made for one answer. It is given back at the end of its block."""

    __slots__ = ("_memory",)

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.reads)
        self._memory = memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.set(0)

    def set(self, size: int) -> None:
        super().set(size)
        if not size:
            self._memory.ended(self)

    async def grant(self, wanted: int, least: int = limits.LITTLE_MEMORY_BYTES) -> int:
        """Hold `wanted` more bytes, or as many as there are, and return how many.

        Where there is less than `least`, or `wanted` where that is less, waits for as much.
        """
        memory = self._memory
        memory.measure()
        if memory.used + wanted < memory.ample:
            self.set(self.size + wanted)
            return wanted
        least = min(wanted, least)
        given = 0
        if memory.room(self.size) < least and not memory.fits(least, self.size):
            await self._wait(least)
            given = least
        more = max(least - given, min(wanted - given, memory.room(self.size)))
        self.set(self.size + more)
        return given + more

    async def reserve(self, size: int) -> None:
        """Hold `size` more bytes for what can't be done with less.

        They may be beyond the budget, one reading at a time, until it holds nothing any more.
        Raises MemoryShortError where that takes RESERVED_SECONDS.
        """
        if self._memory.fits(size, self.size):
            self.grow(size)
            return
        try:
            await within(limits.RESERVED_SECONDS, self._wait(size, self))
        except TimeoutError as error:
            raise MemoryShortError(f"there was no memory of {size} bytes in time") from error

    async def until_done(self, work: asyncio.Future[_Result]) -> _Result:
        """Return what `work`, which is done in a thread, returns; raises what it raises.

        Where the caller leaves before, what is held goes to it, and is given back at its end.
        """
        try:
            return await asyncio.shield(work)
        finally:
            if not work.done():
                self._leave_to(work)
            del work  # It knows what was raised, which knows this frame.

    def _leave_to(self, work: asyncio.Future[_Result]) -> None:
        heir = Reading(self._memory)
        heir.size, self.size = self.size, 0
        self._memory.ended(self, heir)

        def end(left: asyncio.Future[_Result]) -> None:
            heir.set(0)
            left.cancelled() or left.exception()  # Else asyncio reports it as overlooked.

        work.add_done_callback(end)

    async def _wait(self, size: int, exceeding: Reading | None = None) -> None:
        """Return when so many more bytes are held."""
        ready = asyncio.Event()

        def hold() -> None:
            # At once, so that the next one who waits gets no more than is left.
            self.set(self.size + size)
            ready.set()

        wanted = self._memory.wait(size, self.size, hold, exceeding)
        try:
            await ready.wait()
            # Many may go on now, and each has a large read to do.
            await Pace().others()
        finally:
            self._memory.forget(wanted)
