"""Shared: batches go round the consumers that have permits."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.subscriptions.selectors.chunk_owners import ChunkOwners
from penstock.broker.subscriptions.selectors.selector import Selector
from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.topics.partition import Partition


_RELEASED_AT_ONCE: Final = 200
"""Leases: about what takes as long as to start a task for more."""


class RoundRobin(Selector):
    """`consumers` are in the order of their turns: who was served goes to the end."""

    batches_per_turn = 20
    """Pulsar's dispatcherMaxRoundRobinBatchSize."""
    delays = True

    def __init__(self, partition: Partition, engine: Engine, wake: Callable[[], None]) -> None:
        super().__init__(partition, engine, wake)
        self._chunks = ChunkOwners(engine.account)
        self._blocked = False
        self._tasks = Tasks()

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._chunks.forget(consumer)
        self._release(self._releasing_all(consumer))

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
            self._release(self._engine.releasing(consumer))
        else:
            self._release(self._releasing(consumer, offsets))

    def stop(self) -> None:
        assert not self.consumers, "the last consumer left"
        self._tasks.cancel()
        super().stop()

    def _releasing(self, consumer: Consumer, offsets: Collection[int]) -> Iterator[None]:
        for offset in offsets:
            self._engine.release_batch(consumer, offset)
            yield

    def _releasing_all(self, consumer: Consumer) -> Iterator[None]:
        # Again, where what it gave back itself meanwhile has cut a lease.
        while consumer.leases:
            # Not counted as a redelivery: the messages may never have been seen.
            yield from self._engine.releasing(consumer, counted=False)

    def _release(self, steps: Iterator[None]) -> None:
        """Take a few leases back at once, and others while messages go on."""
        if sum(1 for _ in islice(steps, _RELEASED_AT_ONCE)) == _RELEASED_AT_ONCE:
            self._tasks.start(self._release_others(steps), "take messages back from a consumer")

    async def _release_others(self, steps: Iterator[None]) -> None:
        pace = Pace()
        for _ in steps:
            if pace.is_over():
                self._wake()
                await pace.others()
        self._wake()


def _holds_too_many(consumer: Consumer) -> bool:
    """Note whether a consumer holds too many messages, which ends at half of the limit."""
    most = limits.UNACKNOWLEDGED_MESSAGES
    consumer.blocked = consumer.unacknowledged >= (most // 2 if consumer.blocked else most)
    return consumer.blocked
