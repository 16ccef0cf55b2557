"""The loop that moves batches from a partition to the consumers of one subscription."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.broker.reading.entries import EntryReader
from penstock.broker.subscriptions.deliveries import Consumer, Delivery, Outstanding, Sent
from penstock.log.header import Magic
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from penstock.broker.reading.entries import Entry
    from penstock.broker.subscriptions.cursor import Cursor
    from penstock.broker.topics.partition import Partition

logger = logging.getLogger(__name__)


class Dispatcher(ABC):
    """Runs while a subscription has consumers; what kind of subscription it is, subclasses say.

    A batch is never split: it is sent while the consumer has a permit left, and costs one for each
    of its messages that is open, so that permits may go below zero. `changed` is called when the
    cursor moved without an acknowledgement, and `failed` when no more is sent, ever.
    """

    def __init__(
        self,
        partition: Partition,
        cursor: Cursor,
        magic: Magic,
        *,
        changed: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        self._partition = partition
        self._cursor = cursor
        self._changed = changed
        self._failed = failed
        self.outstanding = Outstanding()
        self.consumers: list[Consumer] = []
        self._reader = EntryReader(partition, cursor.position, magic, self._skipped)
        self._work = asyncio.Event()
        self._tasks = Tasks()

    def start(self) -> None:
        self._partition.add_listener(self.wake)
        self._tasks.start(self._run(), f"dispatch of {self._partition.topic.name.pulsar}")

    def stop(self) -> None:
        self._partition.remove_listener(self.wake)
        self._tasks.cancel()

    def wake(self) -> None:
        """Something changed that may let messages go out."""
        self._work.set()

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        self._consumers_changed(None)
        self.wake()

    def remove(self, consumer: Consumer) -> None:
        """Let a consumer go; others get what it did not acknowledge."""
        self.consumers.remove(consumer)
        self._consumers_changed(consumer)
        self.wake()

    @abstractmethod
    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        """Send batches again that `consumer` has: those at `offsets`, or all."""

    @abstractmethod
    def acknowledged(self, offset: int) -> None:
        """The cursor took an acknowledgement of messages in the batch at `offset`."""

    @abstractmethod
    def acknowledged_below(self) -> None:
        """The cursor moved up as a whole."""

    @abstractmethod
    def _consumers_changed(self, gone: Consumer | None) -> None: ...

    @abstractmethod
    async def _turn(self) -> bool:
        """Send one consumer's share; False when nothing can be sent before `wake`."""

    def _delivery(self, consumer: Consumer, entry: Entry, redeliveries: int) -> Delivery | None:
        """Charge an entry to a consumer; None where nothing of it is open."""
        offset, end = entry.header.base_offset, entry.header.next_offset
        count, mask = entry.header.record_count, None
        if not self._cursor.is_untouched(offset, end):
            mask = self._cursor.open_mask(offset, end)
            count = mask.bit_count()
            if not mask:
                return None
        consumer.permits -= count
        self.outstanding.add(offset, Sent(end, consumer, count))
        return Delivery(entry, redeliveries, mask)

    def _send(self, consumer: Consumer, deliveries: Sequence[Delivery]) -> None:
        if not deliveries:
            return
        consumer.receiver.deliver(deliveries)
        consumer.stalled = True
        self._tasks.start(self._relieve(consumer), "wait for a consumer to take more")

    async def _relieve(self, consumer: Consumer) -> None:
        try:
            await consumer.receiver.writable()
        except ConnectionResetError:
            return  # Its session is about to detach it.
        consumer.stalled = False
        self.wake()

    def _skipped(self, start: int, end: int) -> None:
        self._cursor.acknowledge(start, end)
        self._changed()

    async def _run(self) -> None:
        while True:
            self._work.clear()
            try:
                busy = await self._turn()
            except Exception:
                logger.exception("dispatch failed; its consumers are asked to come back")
                self._failed()
                return
            if busy:
                await asyncio.sleep(0)  # Others have work too, and permits can last long.
            else:
                await self._work.wait()
