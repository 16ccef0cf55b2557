"""What every policy decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.topics.partition import Partition


class Selector(ABC):
    """Chooses among the consumers of one subscription. `wake` is called when a time that it waited
    for has come, and its choice is another.
    """

    batches_per_turn: ClassVar[int | None]
    """How many batches the chosen consumer gets before there is a new choice; None is no limit."""

    delays: ClassVar[bool]
    """Whether messages wait that say from when on they are to be delivered."""

    def __init__(self, partition: Partition, engine: Engine, wake: Callable[[], None]) -> None:
        self.consumers: list[Consumer] = []
        self._partition = partition
        self._engine = engine
        self._wake = wake

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """A consumer came."""

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """A consumer left; others get what it did not acknowledge."""

    @abstractmethod
    def choose(self) -> Consumer | None:
        """Return who gets what goes out next, or None while nobody can take anything."""

    @abstractmethod
    def owner(self, entry: AnyEntry, chosen: Consumer) -> Consumer:
        """Return who gets a batch: the one who was chosen, unless it has to be another one."""

    @abstractmethod
    def served(self, consumer: Consumer) -> None:
        """A consumer was given something."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        """Take back what a consumer holds: the batches at `offsets`, or all."""

    def stop(self) -> None:
        """The last consumer left."""
        self._engine.stop_waiting()

    def _with_room(self, ready: list[Consumer]) -> list[Consumer]:
        """Return those of whom the node has memory for more; there is a new choice once it has for
        the others.
        """
        if not ready or self._engine.has_room():
            return ready
        self._engine.wait_for_room(self._wake)
        return [consumer for consumer in ready if self._engine.has_little(consumer)]
