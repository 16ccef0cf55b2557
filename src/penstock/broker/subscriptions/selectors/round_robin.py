"""Shared: batches go round the consumers that have permits."""

from __future__ import annotations

from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.selectors.chunk_owners import ChunkOwners
from penstock.broker.subscriptions.selectors.selector import Share, runs
from penstock.broker.subscriptions.selectors.sharing import Sharing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.topics.partition import Partition


_BATCHES_A_TURN: Final = 20
"""Pulsar's dispatcherMaxRoundRobinBatchSize."""


class RoundRobin(Sharing):
    """The best priority first, and of that whoever waited longest."""

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

    def shares(self, entries: Iterator[AnyEntry | None], chosen: Consumer) -> Iterator[Share]:
        owner_of = partial(self._chunks.owner, chosen=chosen)
        for together in runs(islice(entries, _BATCHES_A_TURN), chosen.permits):
            for owner, its in groupby(together, owner_of):
                yield Share(owner, list(its))
