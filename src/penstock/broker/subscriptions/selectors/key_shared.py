"""Key_Shared: each key belongs to one consumer, which gets its messages in their order.

While the consumer of a key takes nothing, what comes for it waits, and others go on. Who joins or
leaves takes keys over; what comes for such a key waits until the one that had it holds none of it
any more (PIP-379).
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits
from penstock.broker.subscriptions.selectors.key_ranges import KeyRanges
from penstock.broker.subscriptions.selectors.key_ring import KeyRing
from penstock.broker.subscriptions.selectors.selector import Share
from penstock.broker.subscriptions.selectors.sharing import Sharing
from penstock.log.batches import StoredBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.subscriptions.returned import Returned
    from penstock.broker.subscriptions.selectors.key_owners import KeyOwners
    from penstock.broker.topics.partition import Partition

_BATCHES_A_TURN: Final = 100
"""Pulsar's dispatcherMaxReadBatchSize."""
_LISTED_TOGETHER: Final = 250
"""Slots that are given their places at once, which takes a millisecond; a turn may do it twice."""
_STALE: Final = 64
"""Places in a consumer's list that mean nothing any more, besides as many as there are slots."""


class KeySharing(NamedTuple):
    """How the consumers of a subscription share keys: as the first of them says."""

    chosen: bool = False
    """Whether consumers choose ranges of keys for themselves (STICKY); else these spread."""
    in_order: bool = True
    """Whether a key waits for the consumer that had it before."""


AS_THEY_SPREAD: Final = KeySharing()


class KeyShared(Sharing):
    """`owners` say whom a key belongs to, and what waits is in the engine, by slots of keys."""

    looks_into_batches = True

    def __init__(
        self,
        partition: Partition,
        engine: Engine,
        wake: Callable[[], None],
        sharing: KeySharing,
    ) -> None:
        super().__init__(partition, engine, wake)
        self.sharing = sharing
        self._owners: KeyOwners[Consumer] = KeyRanges() if sharing.chosen else KeyRing()
        self._lists: dict[Consumer, list[tuple[int, int]]] = {}
        """Heaps of the first waiting offset of each slot that a consumer may have now, with the
        slot; one that is out of date is found so when its turn comes."""
        self._listing: asyncio.Handle | None = None
        self._may_have: set[Consumer] = set()
        """Those who were found ready when somebody was chosen."""

    def check(self, consumer: Consumer) -> None:
        self._owners.check(consumer)

    def add(self, consumer: Consumer) -> None:
        super().add(consumer)
        self._lists[consumer] = []
        self._engine.waiting.moved(self._owners.add(consumer))

    def remove(self, consumer: Consumer) -> None:
        self._engine.waiting.moved(self._owners.remove(consumer))
        del self._lists[consumer]
        super().remove(consumer)

    def choose(self) -> Consumer | None:
        self._list_changed()
        ready = self._ready()
        self._may_have = set(ready)
        if not ready or self._engine.next_returned() is not None:
            return ready[0] if ready else None
        for consumer in ready:
            if self.next_waiting(consumer) is not None:
                return consumer
        return ready[0] if self._may_look_ahead() else None

    def shares(self, entries: Iterator[AnyEntry | None], chosen: Consumer) -> Iterator[Share]:
        batches = (entry for entry in entries if entry is not None)
        for entry in islice(batches, _BATCHES_A_TURN):
            assert not isinstance(entry, StoredBatch), "its consumers take no files"
            slot = self._owners.slot(entry.body)
            yield Share(self._owner(slot, entry.header.base_offset), (entry,), slot)
            if chosen.permits <= 0:
                return

    def next_waiting(self, consumer: Consumer) -> Returned | None:
        listed = self._lists.get(consumer)
        while listed:
            start, slot = listed[0]
            first = self._engine.next_waiting(slot)
            if first is None or not self._may_go_to(slot, consumer):
                heapq.heappop(listed)
            elif first.start != start:
                heapq.heapreplace(listed, (first.start, slot))
            else:
                return first
        return None

    def stop(self) -> None:
        if self._listing is not None:
            self._listing.cancel()
        super().stop()

    def _owner(self, slot: int, start: int) -> Consumer | None:
        """Return who may have the batch of a slot that begins at an offset, if anybody may now."""
        owner = self._owners.owner(slot)
        if owner not in self._may_have or not owner.can_take or self._is_held(slot, owner):
            return None
        first = self._engine.waiting.first(slot)
        return owner if first is None or start <= first.start else None

    def _may_look_ahead(self) -> bool:
        count = len(self._engine.waiting)
        if count < limits.KEY_WAITING_LEAST:
            return True
        most = min(limits.KEY_WAITING_OF_CONSUMER * len(self.consumers), limits.KEY_WAITING)
        return count < most and self._engine.has_room()

    def _may_go_to(self, slot: int, consumer: Consumer) -> bool:
        return self._owners.owner(slot) is consumer and not self._is_held(slot, consumer)

    def _is_held(self, slot: int, owner: Consumer) -> bool:
        """Whether another consumer than the owner has messages of a slot."""
        holder = self._engine.leases.slots.holder(slot)
        return self.sharing.in_order and holder is not None and holder is not owner

    def _list_changed(self) -> None:
        """Give slots their places in the lists, a few at once."""
        waiting = self._engine.waiting
        for slot in tuple(islice(waiting.changed, _LISTED_TOGETHER)):
            del waiting.changed[slot]
            first = waiting.first(slot)
            owner = self._owners.owner(slot)
            if first is not None and owner is not None and self._may_go_to(slot, owner):
                self._list(owner, first.start, slot)
        if waiting.changed and self._listing is None:
            self._listing = asyncio.get_running_loop().call_soon(self._go_on)

    def _list(self, owner: Consumer, start: int, slot: int) -> None:
        listed = self._lists[owner]
        heapq.heappush(listed, (start, slot))
        if len(listed) > 2 * len(self._engine.waiting) + _STALE:
            listed[:] = {
                (first.start, slot)
                for _, slot in listed
                if (first := self._engine.waiting.first(slot)) is not None
                and self._may_go_to(slot, owner)
            }
            heapq.heapify(listed)

    def _go_on(self) -> None:
        self._listing = None
        self._wake()
