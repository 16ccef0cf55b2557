"""Who holds which messages, until when, and how often they were delivered.

A lease is a run of batches. What is acknowledged inside a lease is in the cursor and only counted
here, so that acknowledgements in any order cost no memory; a lease is cut only where a part of it
is given back.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.subscriptions.batch_run import BatchRun, BatchRuns
from penstock.broker.subscriptions.slots import NO_SLOT, Slots
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LEASE_BYTES: Final = 400
_SLOT_BYTES: Final = 200
"""About what a lease, and a slot of which something is out, take of memory."""
_STALE_DEADLINES: Final = 64
"""How many of leases that ended are left, besides as many as there are leases."""


class HandedOut(NamedTuple):
    """How often messages are delivered now, and how many of them are open."""

    deliveries: int
    open_count: int


class Holder:
    """Somebody who may hold messages; `unacknowledged` of them are open."""

    __slots__ = ("leases", "name", "unacknowledged")

    def __init__(self, name: str) -> None:
        self.name = name
        self.unacknowledged = 0
        self.leases: dict[int, Lease] = {}
        """By their starts."""


class Lease(BatchRun):
    """Batches that one holder has, of which `open_count` messages are not acknowledged.

    `deliveries` counts this one too. At `deadline`, in seconds of the owner's clock, the lease is
    over; None is never. The keys of the batches are of `slot`, if anybody asks for them.
    """

    __slots__ = ("deadline", "deliveries", "holder", "open_count", "slot")

    def __init__(
        self,
        start: int,
        end: int,
        holder: Holder,
        deliveries: int,
        deadline: float | None,
        open_count: int,
        begins: int = 1,
        slot: int = NO_SLOT,
    ) -> None:
        super().__init__(start, end, begins)
        self.holder = holder
        self.deliveries = deliveries
        self.deadline = deadline
        self.open_count = open_count
        self.slot = slot


class Leases(BatchRuns[Lease]):
    """The leases of one partition's messages to one subscription.

    `slot_freed` is called with a slot of which nothing is out any more.
    """

    def __init__(self, slot_freed: Callable[[int], None]) -> None:
        super().__init__()
        self.slots = Slots(slot_freed)
        self._deadlines: list[tuple[float, int]] = []
        self.newest: Lease | None = None
        """The one that was added last, while it is there."""
        self._holders: dict[Holder, None] = {}
        """Those who have any of the leases; they have no others."""
        self.unacknowledged = 0
        """How many messages are open in all leases."""

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken."""
        return len(self) * _LEASE_BYTES + len(self.slots) * _SLOT_BYTES

    @property
    def oldest(self) -> Lease | None:
        """The lease that was added first."""
        return next(iter(self), None)

    def hand_out(
        self,
        start: int,
        end: int,
        holder: Holder,
        deliveries: int,
        deadline: float | None,
        open_count: int,
        slot: int = NO_SLOT,
        begins: int = 1,
    ) -> None:
        """Lease a batch, or a run of them, with those right before where all is the same."""
        newest = self.newest
        if (
            newest is not None
            and newest.holder is holder
            and newest.deliveries == deliveries
            and newest.deadline == deadline
            and newest.slot == slot
            and newest.extend(start, end, begins)
        ):
            newest.open_count += open_count
            holder.unacknowledged += open_count
            self.unacknowledged += open_count
        else:
            self.add(Lease(start, end, holder, deliveries, deadline, open_count, begins, slot))

    def add(self, lease: Lease) -> None:
        assert lease.open_count > 0, "what is acknowledged is not leased"
        super().add(lease)
        lease.holder.leases[lease.start] = lease
        self._holders[lease.holder] = None
        lease.holder.unacknowledged += lease.open_count
        self.unacknowledged += lease.open_count
        self.newest = lease
        if lease.slot != NO_SLOT:
            self.slots.add(lease.slot, lease.holder)
        if lease.deadline is not None:
            self._remember_deadline(lease.deadline, lease.start)

    def remove(self, lease: Lease) -> None:
        """End a lease, whatever became of its messages."""
        super().remove(lease)
        del lease.holder.leases[lease.start]
        lease.holder.unacknowledged -= lease.open_count
        self.unacknowledged -= lease.open_count
        if not lease.holder.leases:
            del self._holders[lease.holder]
        if lease is self.newest:
            self.newest = None
        if lease.slot != NO_SLOT:
            self.slots.remove(lease.slot)

    def settle(self, lease: Lease, count: int) -> None:
        """Count messages of a lease that are acknowledged now; without an open one it ends."""
        assert 0 <= count <= lease.open_count, "a message is acknowledged once"
        if count == lease.open_count:
            self.remove(lease)
            return
        lease.open_count -= count
        lease.holder.unacknowledged -= count
        self.unacknowledged -= count

    def over(self, now: float) -> Iterator[Lease]:
        """Go through the leases whose deadline has come; they are to be removed."""
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, start = heapq.heappop(self._deadlines)
            lease = self.get(start)
            if lease is not None and lease.deadline == deadline:
                yield lease

    def clear(self) -> None:
        for holder in self._holders:
            drop(holder.leases)
            holder.leases = {}
            holder.unacknowledged = 0
        self._holders.clear()
        self.slots.clear()
        super().clear()
        self.unacknowledged = 0
        self.newest = None
        drop(self._deadlines)
        self._deadlines = []

    def _remember_deadline(self, deadline: float, start: int) -> None:
        heapq.heappush(self._deadlines, (deadline, start))
        if len(self._deadlines) > 2 * len(self) + _STALE_DEADLINES:
            self._deadlines = [
                (lease.deadline, lease.start) for lease in self if lease.deadline is not None
            ]
            heapq.heapify(self._deadlines)
