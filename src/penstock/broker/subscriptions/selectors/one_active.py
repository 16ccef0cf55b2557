"""Exclusive and Failover: one consumer at a time gets everything, in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.subscriptions.selectors.failover import choose_active
from penstock.broker.subscriptions.selectors.key_ranges import KeyRanges
from penstock.broker.subscriptions.selectors.selector import Selector, Share, runs
from penstock.log.batches import StoredBatch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer

FAILOVER_DELAY_SECONDS: Final = 1.0
"""How long acknowledgements of a consumer that lost its turn may still arrive before the next one
is given what is open (Pulsar's activeConsumerFailoverDelayTimeMillis)."""


class OneActive(Selector):
    """Whatever comes back is a new start from the first open message, for order is kept."""

    delays = False

    active: Consumer | None = None
    _waiting: asyncio.TimerHandle | None = None
    _keys: KeyRanges[Consumer] | None = None
    """Of a consumer that is alone and wants some keys only."""

    def check(self, consumer: Consumer) -> None:
        if consumer.key_ranges:
            alone: KeyRanges[Consumer] = KeyRanges()
            alone.check(consumer)

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        if consumer.key_ranges:
            self._keys = KeyRanges()
            self._keys.add(consumer)
        if not self._choose_anew():
            consumer.receiver.activated(consumer is self.active)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._choose_anew()

    def choose(self) -> Consumer | None:
        if self.active is None or not self.active.can_take or self._waiting is not None:
            return None
        if not self._engine.has_room():
            # The log knows it too, if slower.
            self._engine.forget_extents()
        return next(iter(self._with_room([self.active])), None)

    def shares(self, entries: Iterator[AnyEntry | None], chosen: Consumer) -> Iterator[Share]:
        for together in runs(entries, chosen.permits):
            yield Share(chosen, together)

    def is_for(self, consumer: Consumer, entry: AnyEntry) -> bool:
        if self._keys is None:
            return True
        assert not isinstance(entry, StoredBatch), "who wants some keys takes no files"
        return self._keys.owner(self._keys.slot(entry.body)) is consumer

    def served(self, consumer: Consumer) -> None:
        """Keep little of the oldest of what a consumer has, beyond the limit."""
        assert consumer is self.active, "only the active consumer is served"
        self._engine.forget(limits.REMEMBERED_BATCHES)

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        del offsets  # One message back means all after it too.
        if consumer is self.active:
            self._engine.start_over()

    def stop(self) -> None:
        super().stop()
        self._stop_waiting()

    def _choose_anew(self) -> bool:
        """Choose the active consumer; return whether it is another one than before."""
        former, self.active = self.active, choose_active(self._partition, self.consumers)
        if self.active is former:
            return False
        self._stop_waiting()
        if former in self.consumers:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(FAILOVER_DELAY_SECONDS, self._waited)
        self._engine.start_over()
        for consumer in self.consumers:
            consumer.receiver.activated(consumer is self.active)
        return True

    def _waited(self) -> None:
        self._waiting = None
        self._engine.start_over()
        self._wake()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
