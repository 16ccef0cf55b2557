"""What all ways have in common by which several consumers get messages at once."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.subscriptions.selectors.selector import Selector
from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.topics.partition import Partition

_RELEASED_AT_ONCE: Final = 200
"""Leases: about what takes as long as to start a task for more."""


class Sharing(Selector):
    """`consumers` are in the order of their turns: who was served goes to the end."""

    delays = True

    def __init__(self, partition: Partition, engine: Engine, wake: Callable[[], None]) -> None:
        super().__init__(partition, engine, wake)
        self._blocked = False
        self._giving_back: set[Consumer] = set()
        """Those of whom messages are taken back in steps: they get none before the last one."""
        self._tasks = Tasks()

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self._release(consumer, self._releasing_all(consumer))

    def served(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self.consumers.append(consumer)

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        if offsets is None:
            self._release(consumer, self._engine.releasing(consumer))
        else:
            self._release(consumer, self._releasing(consumer, offsets))

    def stop(self) -> None:
        assert not self.consumers, "the last consumer left"
        self._tasks.cancel()
        super().stop()

    def _ready(self) -> list[Consumer]:
        """Return those who can take more, in the order of their turns."""
        if self._are_too_many_out():
            return []
        return self._with_room([each for each in self.consumers if self._may_take(each)])

    def _may_take(self, consumer: Consumer) -> bool:
        """Note whether a consumer holds too many messages, which ends at half of the limit."""
        if not consumer.can_take or consumer in self._giving_back:
            return False
        most = limits.UNACKNOWLEDGED_MESSAGES
        consumer.blocked = consumer.unacknowledged >= (most // 2 if consumer.blocked else most)
        return not consumer.blocked

    def _are_too_many_out(self) -> bool:
        """Note whether all consumers hold too many messages, which ends at half of the limit."""
        most = limits.UNACKNOWLEDGED_OF_SUBSCRIPTION
        bound = most // 2 if self._blocked else most
        self._blocked = self._engine.leases.unacknowledged >= bound
        return self._blocked

    def _releasing(self, consumer: Consumer, offsets: Collection[int]) -> Iterator[None]:
        for offset in offsets:
            self._engine.release_batch(consumer, offset)
            yield

    def _releasing_all(self, consumer: Consumer) -> Iterator[None]:
        # Again, where what it gave back itself meanwhile has cut a lease.
        while consumer.leases:
            # Not counted as a redelivery: the messages may never have been seen.
            yield from self._engine.releasing(consumer, counted=False)

    def _release(self, consumer: Consumer, steps: Iterator[None]) -> None:
        """Take a few leases back at once, and others while messages go on."""
        if sum(1 for _ in islice(steps, _RELEASED_AT_ONCE)) == _RELEASED_AT_ONCE:
            releasing = self._release_others(consumer, steps)
            self._tasks.start(releasing, "take messages back from a consumer")

    async def _release_others(self, consumer: Consumer, steps: Iterator[None]) -> None:
        self._giving_back.add(consumer)
        pace = Pace()
        for _ in steps:
            if pace.is_over():
                self._wake()
                await pace.others()
        self._giving_back.discard(consumer)
        self._wake()
