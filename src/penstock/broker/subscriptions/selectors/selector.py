"""What every policy decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from penstock.broker.subscriptions.slots import NO_SLOT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.subscriptions.returned import Returned
    from penstock.broker.topics.partition import Partition


class Share(NamedTuple):
    """Batches that follow one another, whose keys are of one slot if anybody asks for them.

    Without an owner they have to wait in their slot.
    """

    owner: Consumer | None
    entries: Sequence[AnyEntry]
    slot: int = NO_SLOT


def runs(entries: Iterator[AnyEntry | None], permits: int) -> Iterator[list[AnyEntry]]:
    """Yield batches in lists that can be acquired in one step, up to what takes the last permit."""
    together: list[AnyEntry] = []
    for entry in entries:
        if entry is not None:
            together.append(entry)
            permits -= entry.header.record_count
            if permits <= 0:
                break
        elif together:
            yield together
            together = []
    if together:
        yield together


class Selector(ABC):
    """Chooses among the consumers of one subscription. `wake` is called when a time that it waited
    for has come, and its choice is another.
    """

    delays: ClassVar[bool]
    """Whether messages wait that say from when on they are to be delivered."""

    looks_into_batches: ClassVar[bool] = False
    """Whether it has to see what is in a batch."""

    def __init__(self, partition: Partition, engine: Engine, wake: Callable[[], None]) -> None:
        self.consumers: list[Consumer] = []
        self._partition = partition
        self._engine = engine
        self._wake = wake

    @abstractmethod
    def check(self, consumer: Consumer) -> None:
        """Raise KeyRangesError where a consumer can't come."""

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """A consumer came, which `check` has let in."""

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """A consumer left; others get what it did not acknowledge."""

    @abstractmethod
    def choose(self) -> Consumer | None:
        """Return who gets what goes out next, or None while nobody can take anything."""

    @abstractmethod
    def shares(self, entries: Iterator[AnyEntry | None], chosen: Consumer) -> Iterator[Share]:
        """Say of a turn's worth of batches, which come as `Upcoming` has them, who gets them: the
        one who was chosen, unless it has to be another one. Each share is acquired before the next
        is asked for.
        """

    def next_waiting(self, consumer: Consumer) -> Returned | None:
        """Return what the chosen consumer gets next of what waits in slots; None where it gets
        what comes next of all.
        """
        del consumer
        return None

    def is_for(self, consumer: Consumer, entry: AnyEntry) -> bool:
        """Whether a batch that a consumer gets is one of those that it asked for."""
        del consumer, entry
        return True

    @abstractmethod
    def served(self, consumer: Consumer) -> None:
        """A consumer was given something."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        """Take back what a consumer holds: the batches at `offsets`, or all."""

    def stop(self) -> None:
        """The last consumer left."""
        self._engine.stop_waiting()
        self._wake = lambda: None  # Who was woken knows the selector: a cycle for the collector.

    def _with_room(self, ready: list[Consumer]) -> list[Consumer]:
        """Return those of whom the node has memory for more; there is a new choice once it has for
        the others.
        """
        if not ready or self._engine.has_room():
            return ready
        self._engine.wait_for_room(self._wake)
        return [consumer for consumer in ready if self._engine.has_little(consumer)]
