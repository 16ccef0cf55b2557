"""Finds the connections that hold memory and do not get on with it."""

from __future__ import annotations

import time
from collections.abc import Collection
from heapq import heappop, heappush
from typing import Final, NamedTuple, Protocol

from penstock import limits
from penstock.allocator import return_freed_memory

_SHARE_A_SECOND: Final = 16
"""Who moves less than one part in so many of what it holds in a second is stuck."""
_WORTH_CUTTING: Final = (limits.LITTLE_MEMORY_BYTES, 64 * limits.KIB, 4 * limits.KIB)
"""Bytes held: those who hold much are cut before those who hold little."""
_CUT_TOGETHER: Final = 32
"""Connections, in one turn of the event loop."""

_COUNTED_TOGETHER: Final = 256
"""Connections, in one turn of the event loop."""

_RETURN_SECONDS: Final = 0.1
"""How often freed memory goes back to the system while memory is short."""


class Progress:
    """Whether one connection gets on, as of the last look; times are the loop's."""

    __slots__ = ("_got_on", "_moved", "_waited", "stuck_since")

    def __init__(self) -> None:
        self._moved = 0
        self._got_on: float | None = None
        self._waited = False
        self.stuck_since: float | None = None
        """When it was last seen to get on, where it does not."""

    def look(self, held: int, moved: int, now: float) -> None:
        """Compare what was `moved`, ever, with the look a second before."""
        is_stuck = (moved - self._moved) * _SHARE_A_SECOND < held
        waited, self._waited = self._waited, False
        self._moved = moved
        if not is_stuck or self._got_on is None:
            self._got_on = now
        # Who waited for a part of the time may have had no turn to be read since.
        self.stuck_since = self._got_on if is_stuck and not waited else None

    def may_go_on(self) -> None:
        """It waited for the broker, which is over: what counts begins with the next look."""
        self._waited = True
        self.stuck_since = None


class Holder(Protocol):
    """One connection, as far as what it holds is concerned."""

    moved_bytes: int
    """What was received and what the client took, ever."""
    progress: Progress

    @property
    def held_bytes(self) -> int:
        """What it holds of the node's memory."""

    @property
    def wants_memory(self) -> bool:
        """Whether more of it is read only once there is memory."""

    def count_unsent(self) -> None:
        """Find out how much of the answers the client did not take yet."""

    def abort(self, reason: str) -> None:
        """Cut the connection; what was not sent is dropped."""


class _Stuck(NamedTuple):
    """One that is stuck; those that are cut first come first, and no two are equal."""

    negative_rank: int
    since: float
    number: int
    holder: Holder


class StuckHolders:
    """Implements penstock.memory.Reclaimer for the connections of one server."""

    def __init__(self, holders: Collection[Holder]) -> None:
        self._holders = holders
        self._uncounted: list[Holder] = []
        self._stuck: list[_Stuck] = []
        """As of the last look at all: a heap, in which the next one to be cut comes first."""
        self._found: list[_Stuck] = []
        """The same, of those that have been looked at since."""
        self._returned = 0.0

    def recount(self) -> None:
        """See Reclaimer. Of many connections it counts some, and the next ones the next time."""
        if not self._uncounted:
            self._uncounted = list(self._holders)
        for _ in range(min(_COUNTED_TOGETHER, len(self._uncounted))):
            self._uncounted.pop().count_unsent()
        now = time.monotonic()
        if now - self._returned >= _RETURN_SECONDS:
            # What clients left behind lies in pieces between what others hold.
            self._returned = now
            return_freed_memory()

    def look(self, holder: Holder, now: float) -> None:
        """Note whether one gets on; called once a second while memory is not ample."""
        holder.count_unsent()
        held = holder.held_bytes
        holder.progress.look(held, holder.moved_bytes, now)
        since = holder.progress.stuck_since
        if since is not None and _is_stuck(holder, held):
            # Each gets its place as it is looked at: to put ten thousand in order takes a while.
            rank = _rank(held, wants_memory=holder.wants_memory)
            heappush(self._found, _Stuck(-rank, since, len(self._found), holder))

    def looked(self) -> None:
        """All were looked at; before, of those that are stuck only some are known.

        Whoever is among them would be cut for all the others.
        """
        self._stuck, self._found = self._found, []

    def cut(self, size: int) -> None:
        """See Reclaimer."""
        for _ in range(_CUT_TOGETHER):
            if size <= 0 or not self._stuck:
                return
            first = heappop(self._stuck)
            holder, held = first.holder, first.holder.held_bytes
            if not _is_stuck(holder, held):
                continue
            negative_rank = -_rank(held, wants_memory=holder.wants_memory)
            if negative_rank > first.negative_rank:
                # It waits for memory now, or holds less: its turn may come behind others.
                heappush(self._stuck, first._replace(negative_rank=negative_rank))
                continue
            holder.abort(f"memory is short, and it held {held} bytes without getting on")
            size -= held


def _is_stuck(holder: Holder, held: int) -> bool:
    return holder.progress.stuck_since is not None and held > _WORTH_CUTTING[-1]


def _rank(held: int, *, wants_memory: bool) -> int:
    """Return more for those that are cut before others.

    Whoever holds little and waits for memory itself comes last, however much of it is here: else a
    client that begins to send would be cut for those that hold less and never go on.
    """
    if wants_memory and held <= _WORTH_CUTTING[0]:
        return 0
    return sum(held > least for least in _WORTH_CUTTING)
