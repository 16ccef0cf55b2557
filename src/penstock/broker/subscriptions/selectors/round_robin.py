"""Shared: batches go round the consumers that have permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import limits
from penstock.broker.subscriptions.selectors.chunk_owners import ChunkOwners
from penstock.broker.subscriptions.selectors.selector import Selector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.topics.partition import Partition


class RoundRobin(Selector):
    """`consumers` are in the order of their turns: who was served goes to the end."""

    batches_per_turn = 20
    """Pulsar's dispatcherMaxRoundRobinBatchSize."""

    def __init__(self, partition: Partition, engine: Engine, wake: Callable[[], None]) -> None:
        super().__init__(partition, engine, wake)
        self._chunks = ChunkOwners()
        self._blocked = False

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._chunks.forget(consumer)
        # Not counted as a redelivery: the messages may never have been seen.
        self._engine.release_all(consumer, counted=False)

    def choose(self) -> Consumer | None:
        if self._are_too_many_out():
            return None
        ready = [c for c in self.consumers if c.can_take and not _holds_too_many(c)]
        return min(self._with_room(ready), key=lambda consumer: consumer.priority, default=None)

    def _are_too_many_out(self) -> bool:
        """Note whether all consumers hold too many messages, which ends at half of the limit."""
        most = limits.UNACKNOWLEDGED_OF_SUBSCRIPTION
        bound = most // 2 if self._blocked else most
        self._blocked = self._engine.leases.unacknowledged >= bound
        return self._blocked

    def owner(self, entry: AnyEntry, chosen: Consumer) -> Consumer:
        return self._chunks.owner(entry, chosen)

    def served(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self.consumers.append(consumer)

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        if offsets is None:
            self._engine.release_all(consumer)
            return
        for offset in offsets:
            self._engine.release_batch(consumer, offset)

    def stop(self) -> None:
        assert not self.consumers, "the last consumer left"
        super().stop()


def _holds_too_many(consumer: Consumer) -> bool:
    """Note whether a consumer holds too many messages, which ends at half of the limit."""
    most = limits.UNACKNOWLEDGED_MESSAGES
    consumer.blocked = consumer.unacknowledged >= (most // 2 if consumer.blocked else most)
    return consumer.blocked
