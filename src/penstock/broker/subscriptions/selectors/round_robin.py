"""Shared: batches go round the consumers that have permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.subscriptions.selectors.chunk_owners import ChunkOwners
from penstock.broker.subscriptions.selectors.sharing import Sharing

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.topics.partition import Partition


class RoundRobin(Sharing):
    """The best priority first, and of that whoever waited longest."""

    batches_per_turn = 20
    """Pulsar's dispatcherMaxRoundRobinBatchSize."""

    def __init__(self, partition: Partition, engine: Engine, wake: Callable[[], None]) -> None:
        super().__init__(partition, engine, wake)
        self._chunks = ChunkOwners(engine.account)

    def check(self, consumer: Consumer) -> None:
        """All are welcome."""

    def remove(self, consumer: Consumer) -> None:
        super().remove(consumer)
        self._chunks.forget(consumer)

    def choose(self) -> Consumer | None:
        return min(self._ready(), key=lambda consumer: consumer.priority, default=None)

    def owner(self, entry: AnyEntry, slot: int, chosen: Consumer) -> Consumer:
        del slot
        return self._chunks.owner(entry, chosen)
