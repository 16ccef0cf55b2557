"""The loop that moves batches from a partition to the consumers of one subscription."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock import wall_clock
from penstock.broker.subscriptions.bitmaps import span
from penstock.broker.subscriptions.consumer import Delivery
from penstock.broker.subscriptions.upcoming import Upcoming
from penstock.limits import KIB
from penstock.memory import Holding
from penstock.pace import Pace
from penstock.tasks import Tasks, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.consumer import Consumer, Receiver
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.subscriptions.selectors.selector import Selector
    from penstock.broker.topics.partition import Partition
    from penstock.log.header import Magic

SelectorMaker: TypeAlias = "Callable[[Partition, Engine, Callable[[], None]], Selector]"

PUSH_BYTES: Final = 6 * KIB
"""About what a subscription takes more of memory while it has consumers."""

_LOOK_SECONDS: Final = 1.0
"""How often the time of day is looked at while messages are delayed."""
_SWEPT_TOGETHER: Final = 8

logger = logging.getLogger(__name__)


class Push:
    """Runs while a subscription has consumers; the selector says who gets what.

    A batch is never split: it is sent while the consumer has a permit left, and costs one for each
    of its messages that is open, so that permits may go below zero. `failed` is called when no more
    is sent, ever.
    """

    def __init__(
        self,
        partition: Partition,
        engine: Engine,
        make_selector: SelectorMaker,
        magic: Magic,
        failed: Callable[[], None],
    ) -> None:
        self.selector = make_selector(partition, engine, self.wake)
        self._all_know_the_end = False
        self._without_files = 0
        """Consumers that take no files."""
        self._partition = partition
        self._engine = engine
        self._failed = failed
        self._upcoming = Upcoming(partition, engine, magic, delays=self.selector.delays)
        self._timer: asyncio.TimerHandle | None = None
        self._work = asyncio.Event()
        self._tasks = Tasks()
        self._held = Holding(partition.memory.clients)

    def start(self) -> None:
        self._held.set(PUSH_BYTES)
        self._partition.add_listener(self.wake)
        self._tasks.start(self._run(), f"push of {self._partition.topic.name.pulsar}")

    def stop(self) -> None:
        assert not self.selector.consumers, "the last consumer left"
        self._partition.remove_listener(self.wake)
        self.selector.stop()
        self._stop_timer()
        self._tasks.cancel()
        self._held.set(0)

    def add(self, consumer: Consumer) -> None:
        """A consumer came; what it can't take is not sent to any."""
        self.selector.add(consumer)
        self._all_know_the_end = False
        self._without_files += not consumer.takes_files
        self._upcoming.set_from_file(
            not self._without_files and not self.selector.looks_into_batches
        )
        self.wake()

    def remove(self, consumer: Consumer) -> None:
        """A consumer left."""
        self.selector.remove(consumer)
        self._without_files -= not consumer.takes_files
        self.wake()

    def wake(self) -> None:
        """Something changed that may have messages go out."""
        self._work.set()

    async def _run(self) -> None:
        while True:
            self._work.clear()
            try:
                busy = await in_turns(self._turn())
            except Exception:
                logger.exception("a push failed; its consumers are asked to come back")
                self._failed()
                return
            if busy:
                await asyncio.sleep(0)  # Others have work too, and permits can last long.
            else:
                self._set_timer()
                await self._work.wait()

    def _set_timer(self) -> None:
        """Have a turn when the first that is delayed is due.

        Without a consumer that can take it, there is a turn when one comes. The time of day may be
        set meanwhile, so it is looked at again and again.
        """
        self._stop_timer()
        delayed = self._engine.delayed
        if delayed:
            left = (delayed.first_due_ms - wall_clock.now_ms()) / 1_000
            wait = min(left, _LOOK_SECONDS) if left > 0 else _LOOK_SECONDS
            self._timer = asyncio.get_running_loop().call_later(wait, self._look)

    def _look(self) -> None:
        self._timer = None
        for _ in range(_SWEPT_TOGETHER):
            if not self._engine.delayed.sweep(self._engine.cursor.position):
                break
        self.wake()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _turn(self) -> bool:
        """Send one consumer's share; False when nothing can be sent before `wake`."""
        self._engine.count()
        if self._is_at_end:
            if not self._all_know_the_end:
                self._all_know_the_end = True
                for each in self.selector.consumers:
                    each.receiver.reached_end()
            return False
        chosen = self.selector.choose()
        if chosen is None or self._partition.deleted:
            return False
        if self._engine.bring_due(wall_clock.now_ms()):
            return True
        waiting = partial(self.selector.next_waiting, chosen)
        if waiting() is None and not self._upcoming.has_more:
            return False
        entries = await self._upcoming.entries(waiting)
        consumer = self.selector.choose()  # Anew: reading may have taken its time.
        if consumer is None:
            return False
        if not self._hand_out(entries, consumer):
            # What is delayed may be much, and much else have to be read that nobody gets.
            await Pace().others()
        return self._upcoming.has_more or len(self._engine.waiting) > 0

    @property
    def _is_at_end(self) -> bool:
        if not self._partition.topic.config.terminated:
            return False
        return self._engine.cursor.position >= self._partition.end_offset

    def _hand_out(self, entries: Iterator[AnyEntry | None], consumer: Consumer) -> bool:
        """Send a turn's worth of batches to one consumer, but for those that belong to others;
        return whether there were any.
        """
        shares: dict[Consumer, list[Delivery]] = {}
        for owner, together, slot in self.selector.shares(entries, consumer):
            if owner is None:
                for each in together:
                    start, end = each.header.base_offset, each.header.next_offset
                    self._engine.put_aside(start, end, slot)
            elif len(together) == 1:
                if (delivery := self._acquire(owner, together[0], slot)) is not None:
                    shares.setdefault(owner, []).append(delivery)
            elif deliveries := self._acquire_all(owner, together, slot):
                shares.setdefault(owner, []).extend(deliveries)
        for owner, deliveries in shares.items():
            self._send(owner, deliveries)
            self.selector.served(owner)
        return bool(shares)

    def _acquire_all(
        self, consumer: Consumer, entries: Sequence[AnyEntry], slot: int
    ) -> list[Delivery]:
        """Charge batches to a consumer, but for those of which nothing is open."""
        if not (consumer.reads_compacted or consumer.key_ranges):
            headers = [entry.header for entry in entries]
            starts = [header.base_offset for header in headers]
            ends = [header.next_offset for header in headers]
            if self._engine.acquire_all(consumer, starts, ends):
                consumer.permits -= sum(header.record_count for header in headers)
                return [Delivery(entry, 0, None) for entry in entries]
        found = (self._acquire(consumer, entry, slot) for entry in entries)
        return [delivery for delivery in found if delivery is not None]

    def _acquire(self, consumer: Consumer, entry: AnyEntry, slot: int) -> Delivery | None:
        """Charge a batch to a consumer; None where nothing of it is open."""
        start, end = entry.header.base_offset, entry.header.next_offset
        left_out = 0
        if not self.selector.is_for(consumer, entry):
            left_out = span(0, end - start)
        elif consumer.reads_compacted:
            left_out = self._partition.compaction.view.left_out(start, end)
        share = self._engine.acquire(consumer, start, end, left_out=left_out, slot=slot)
        if share is None:
            return None
        if share.open_count == end - start:
            consumer.permits -= entry.header.record_count
            return Delivery(entry, share.deliveries - 1, None)
        consumer.permits -= share.open_count
        return Delivery(entry, share.deliveries - 1, self._engine.open_mask(start, end))

    def _send(self, consumer: Consumer, deliveries: Sequence[Delivery]) -> None:
        receiver = consumer.receiver
        receiver.deliver(deliveries)
        consumer.traffic.note_sent(deliveries)
        consumer.stalled = True
        self._tasks.start(self._relieve(consumer, receiver), "wait for a consumer to take more")

    async def _relieve(self, consumer: Consumer, receiver: Receiver) -> None:
        try:
            await receiver.writable()
        except ConnectionResetError:
            return  # Its session is about to detach it.
        consumer.stalled = False
        self.wake()
