"""One named subscription of one partition: its cursor, its consumers, and who may do what when."""

from __future__ import annotations

import asyncio
import time
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.errors import (
    ConsumerBusyError,
    NoMemoryError,
    TransactionConflictError,
    UnknownTopicError,
)
from penstock.broker.rate import Rate
from penstock.broker.subscriptions.bitmaps import BLOCK, FULL, span
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.push import Push, SelectorMaker
from penstock.broker.subscriptions.selectors.key_shared import AS_THEY_SPREAD, KeyShared, KeySharing
from penstock.broker.subscriptions.selectors.one_active import OneActive
from penstock.broker.subscriptions.selectors.round_robin import RoundRobin
from penstock.log.errors import (
    CorruptBatchError,
    LogClosedError,
    LogError,
    OffsetOutOfRangeError,
)
from penstock.log.header import Magic
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.subscriptions.cursor import Cursor
    from penstock.broker.subscriptions.pending import Pending
    from penstock.broker.topics.partition import Partition


class SubscriptionKind(Enum):
    """How consumers share a subscription; it may change whenever none is connected."""

    EXCLUSIVE = auto()
    SHARED = auto()
    FAILOVER = auto()
    KEY_SHARED = auto()

    @property
    def is_shared(self) -> bool:
        """Whether several consumers get messages at once."""
        return self in {SubscriptionKind.SHARED, SubscriptionKind.KEY_SHARED}


class SubscriptionState(Enum):
    """What is going on with a subscription."""

    IDLE = auto()
    SERVING = auto()
    RESETTING = auto()
    DELETED = auto()


class SubscriptionEvent(Enum):
    """What can happen to a subscription."""

    CONSUMER_CAME = auto()
    LAST_CONSUMER_LEFT = auto()
    RESET_BEGAN = auto()
    RESET_ENDED = auto()
    WAS_DELETED = auto()


_S, _E = SubscriptionState, SubscriptionEvent
NEXT_STATE: Final = {
    (_S.IDLE, _E.CONSUMER_CAME): _S.SERVING,
    (_S.SERVING, _E.CONSUMER_CAME): _S.SERVING,
    (_S.SERVING, _E.LAST_CONSUMER_LEFT): _S.IDLE,
    (_S.IDLE, _E.RESET_BEGAN): _S.RESETTING,
    (_S.RESETTING, _E.RESET_ENDED): _S.IDLE,
    (_S.IDLE, _E.WAS_DELETED): _S.DELETED,
    # A topic may be deleted at any time.
    (_S.RESETTING, _E.WAS_DELETED): _S.DELETED,
    (_S.DELETED, _E.RESET_ENDED): _S.DELETED,
    (_S.DELETED, _E.WAS_DELETED): _S.DELETED,
}
"""Everything else is a bug: consumers are sent away before a reset or a deletion."""

SELECTORS: Final[Mapping[SubscriptionKind, SelectorMaker]] = {
    SubscriptionKind.EXCLUSIVE: OneActive,
    SubscriptionKind.FAILOVER: OneActive,
    SubscriptionKind.SHARED: RoundRobin,
}
"""Besides KEY_SHARED's, which has to know more."""


class Subscription:
    """All methods belong to the event loop's thread.

    `changing` is held by whoever subscribes, resets or deletes: these wait for each other, so that
    a consumer that comes back after a reset finds the new position.
    """

    def __init__(
        self,
        partition: Partition,
        name: str,
        cursor: Cursor,
        *,
        durable: bool,
        properties: Mapping[str, str],
        changed: Callable[[Subscription], None],
    ) -> None:
        self.partition = partition
        self.name = name
        self.cursor = cursor
        self.durable = durable
        self.properties = dict(properties)
        self.state = SubscriptionState.IDLE
        self.kind = SubscriptionKind.EXCLUSIVE
        self._sharing = AS_THEY_SPREAD
        self.changing = asyncio.Lock()
        self._engine = Engine(cursor, lambda: changed(self), partition.memory.subscriptions)
        self._push: Push | None = None
        self._magic = Magic.PULSAR
        """In which encoding its consumers get batches."""
        # Held while the log is asked where a batch ends: such acknowledgements keep their order.
        self._looking_up = asyncio.Lock()
        self._resets = 0
        self.expired = Rate(time.monotonic())
        """Of messages that are acknowledged because of their age."""
        partition.add_trim_listener(self._pass_what_was_given_up)

    @property
    def consumers(self) -> list[Consumer]:
        return [] if self._push is None else list(self._push.selector.consumers)

    @property
    def backlog(self) -> int:
        """Messages that are not acknowledged."""
        return self.partition.readable_end() - self.acknowledged

    @property
    def acknowledged(self) -> int:
        """How many offsets of the log are acknowledged."""
        return self.cursor.position + self.cursor.acknowledged_above

    async def make_room(self, kind: SubscriptionKind, sharing: KeySharing) -> None:
        """Check that a consumer of this kind may come, and shares keys as the others do.

        Consumers whose client no longer answers do not count and are sent away: theirs may be the
        one that comes back. Raises ConsumerBusyError.
        """
        is_alike = kind is self.kind and sharing == self._sharing
        if is_alike and kind is not SubscriptionKind.EXCLUSIVE:
            return
        for consumer, receiver in [(each, each.receiver) for each in self.consumers]:
            if await receiver.is_alive():
                how = "in another way " if kind is self.kind and not is_alike else ""
                raise ConsumerBusyError(
                    f"subscription {self.name} is {self.kind.name.lower()} {how}and has consumer "
                    f"{consumer.name}"
                )
            if consumer in self.consumers:
                self.send_away(consumer)

    def attach(
        self, consumer: Consumer, kind: SubscriptionKind, magic: Magic, sharing: KeySharing
    ) -> None:
        """Add a consumer; messages come as soon as it has permits. Raises KeyRangesError."""
        push = self._push
        if push is None:
            make = SELECTORS.get(kind) or partial(KeyShared, sharing=sharing)
            push = Push(self.partition, self._engine, make, magic, self.send_all_away)
        push.selector.check(consumer)
        self._advance(SubscriptionEvent.CONSUMER_CAME)
        if self._push is None:
            self.kind, self._magic, self._sharing = kind, magic, sharing
            self._push = push
            push.start()
        assert kind is self.kind, "make_room was asked first"
        push.add(consumer)

    def detach(self, consumer: Consumer) -> None:
        """Remove a consumer; nothing happens when it is gone already."""
        push = self._push
        if push is None or consumer not in push.selector.consumers:
            return
        push.remove(consumer)
        consumer.leave()
        if not push.selector.consumers:
            push.stop()
            self._push = None
            self._engine.start_over()
            self._advance(SubscriptionEvent.LAST_CONSUMER_LEFT)

    def send_away(self, consumer: Consumer) -> None:
        """Detach a consumer and have its client subscribe again if it wants to."""
        receiver = consumer.receiver
        self.detach(consumer)
        receiver.disconnect()

    def send_all_away(self) -> None:
        for consumer in self.consumers:
            self.send_away(consumer)

    def add_permits(self, consumer: Consumer, permits: int) -> None:
        """The consumer wants so many messages more."""
        consumer.permits += permits
        self._wake()

    def acknowledge_at_once(self, offset: int, open_mask: int | None = None) -> bool:
        """Do as `acknowledge` where the batch at `offset` is out or came back; False elsewhere."""
        if open_mask is None:
            return self.acknowledge_batches_at_once((offset,)) == 1
        extent = self._engine.extent(offset)
        if extent is None:
            return False
        self._acknowledge_part(*extent, open_mask)
        return True

    def acknowledge_batches_at_once(self, offsets: Iterable[int]) -> int:
        """Do as `acknowledge` for whole batches, one after another, as long as each is out or came
        back; return how many are dealt with.
        """
        count = self._engine.acknowledge_extents(offsets)
        self._wake()  # A consumer that held too many may go on.
        return count

    def acknowledge_through_at_once(self, offset: int, open_mask: int | None = None) -> bool:
        """Do as `acknowledge_through` where the batch at `offset` is out and near, else say no."""
        if self.kind.is_shared or offset < 0:
            return True
        extent = self._engine.extent(offset)
        if extent is None or self._is_far(extent[0]):
            return False
        self._acknowledge_through_part(*extent, open_mask)
        return True

    async def acknowledge(self, offset: int, open_mask: int | None = None) -> None:
        """Take an acknowledgement of the batch at `offset`, or of part of it.

        `open_mask` has a bit for each of its messages that is not meant; None means the whole
        batch. An offset at which no batch begins is ignored, and so is one behind the cursor.
        Raises NoMemoryError for a batch that was not delivered, where there is none to remember it.
        """
        if self.acknowledge_at_once(offset, open_mask):
            return
        extent = await self._look_up(offset)
        if extent is None or extent[0] != offset:
            return
        if not self._engine.may_acknowledge(offset):
            raise NoMemoryError("there is no memory for what was acknowledged and not delivered")
        self._acknowledge_part(*extent, open_mask)

    async def acknowledge_through(self, offset: int, open_mask: int | None = None) -> None:
        """Take a cumulative acknowledgement: all before the batch at `offset`, and of the batch
        what `open_mask` leaves. The offset may lie inside a batch, which is then meant. Where
        several consumers share there are none.
        """
        if self.acknowledge_through_at_once(offset, open_mask):
            return
        extent = await self._look_up(offset)
        if extent is not None and await self._came_near(extent[0]):
            self._acknowledge_through_part(*extent, open_mask)

    async def extent_at(self, offset: int) -> tuple[int, int] | None:
        """Return start and end of the batch that contains an offset; None where there is none."""
        return self._engine.extent(offset) or await self._look_up(offset)

    def hold(self, producer_id: int, start: int, end: int, open_mask: int | None = None) -> None:
        """Take an acknowledgement in a transaction, of the batch from `start` up to `end` but for
        what `open_mask` leaves: it takes effect by `commit_held`.

        What the transaction has acknowledged before it may acknowledge again. Raises NoMemoryError
        and, which changes nothing, TransactionConflictError.
        """
        engine = self._engine
        still_open = self.cursor.open_mask(start, end)
        wanted = still_open if open_mask is None else ~open_mask & span(0, end - start)
        others = engine.pending.mask(start, end) & ~engine.pending.mask_of(producer_id, start, end)
        if wanted & ~still_open or not still_open:
            raise TransactionConflictError(f"the messages at {start} are acknowledged already")
        if wanted & others:
            raise TransactionConflictError(
                f"another open transaction has acknowledged the messages at {start}"
            )
        if wanted:
            self._check_room()
            engine.hold(producer_id, start, wanted)
            self._wake()

    def holding_through(
        self, producer_id: int, start: int, end: int, open_mask: int | None = None
    ) -> Iterator[None]:
        """Take a cumulative acknowledgement in a transaction, in steps: all before the batch, and
        of it as `hold` does. Raises as that does, also between two steps.
        """
        pending = self._engine.pending
        first = max(self.cursor.position, pending.through(producer_id))
        if pending.has_others(producer_id, first, start):
            raise TransactionConflictError(
                f"another open transaction has acknowledged messages below {start}"
            )
        self.hold(producer_id, start, end, open_mask)
        pending.goes_on_through(producer_id, 0, first)
        mine = pending.blocks_of(producer_id)
        for low in range(first - first % BLOCK, start, BLOCK):
            high = min(low + BLOCK, start)
            is_held = mine.get(low // BLOCK) != FULL and self.cursor.open_count(low, high) > 0
            if is_held:
                self.hold(producer_id, low, high)
            pending.goes_on_through(producer_id, low, high)
            if is_held:
                yield

    @property
    def pending(self) -> Pending:
        """What open transactions have acknowledged."""
        return self._engine.pending

    def bring_back(self, producer_id: int, blocks: Mapping[int, int], end: int) -> None:
        """Hold what a transaction had acknowledged when the broker was stopped, below the end of
        the log as it was found.
        """
        for number, bits in blocks.items():
            self.pending.add(producer_id, number * BLOCK, bits)
        self.pending.cut_off(end)
        self.pending.saved(producer_id, blocks)

    def committing_held(self, producer_id: int) -> Iterator[None]:
        """A transaction was committed: acknowledge what it has, in steps."""
        for _ in self._engine.committing(producer_id):
            self._wake()
            yield

    async def give_back_held(self, producer_id: int, pace: Pace) -> None:
        """A transaction was aborted: have what it has delivered again."""
        await self._give_back(producer_id, tuple(self.pending.runs_of(producer_id)), pace)

    async def give_back_unsaved(self, producer_id: int) -> None:
        """What a transaction has of late could not be saved: have that delivered again."""
        while unsaved := tuple(self.pending.unsaved_runs_of(producer_id)):
            await self._give_back(producer_id, unsaved, Pace())

    async def _give_back(
        self, producer_id: int, runs: Iterable[tuple[int, int]], pace: Pace
    ) -> None:
        for run in runs:
            first = await self._whole_batch(run[0])
            last = first if run[1] <= first[1] else await self._whole_batch(run[1] - 1)
            self._engine.give_back(producer_id, run, (first[0], last[1]))
            self._wake()
            if pace.is_over():
                await pace.others()

    async def looked_up(self) -> None:
        """Return when no acknowledgement that came before is still looked up in the log."""
        async with self._looking_up:
            pass

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        """Send again what the consumer has and did not acknowledge: some batches, or all."""
        if self._push is not None:
            self._push.selector.redeliver(consumer, offsets)
            self._push.wake()

    def begin_reset(self, position: int) -> None:
        """Move the cursor; consumers are sent away first and come back. `changing` is held."""
        assert self.changing.locked(), "one change at a time"
        self.send_all_away()
        self._advance(SubscriptionEvent.RESET_BEGAN)
        self._resets += 1
        self._engine.reset(position)

    def end_reset(self) -> None:
        """The new position is stored."""
        self._advance(SubscriptionEvent.RESET_ENDED)

    def delete(self) -> None:
        """Send every consumer away for good."""
        self.send_all_away()
        self.partition.remove_trim_listener(self._pass_what_was_given_up)
        self._engine.close()
        self._advance(SubscriptionEvent.WAS_DELETED)

    async def pass_below(self, offset: int) -> None:
        """Acknowledge all below an offset, whoever has it: it is given up, or its time is over."""
        if await self._came_near(offset):
            self._engine.acknowledge_below(offset)
            self._wake()

    async def _pass_what_was_given_up(self) -> None:
        await self.pass_below(self.partition.start_offset)

    def _check_room(self) -> None:
        engine = self._engine
        if len(engine.pending) >= limits.PENDING_LEAST_BLOCKS and not engine.has_room():
            raise NoMemoryError("there is no memory for what transactions acknowledge")

    async def _whole_batch(self, offset: int) -> tuple[int, int]:
        """Return the batch that contains an offset; nothing of one that can't be delivered."""
        extent = self._engine.extent(offset)
        if extent is None:
            try:
                extent = await self.partition.entry_at(offset, self._magic)
            except CorruptBatchError as damage:
                return damage.base_offset, damage.next_offset
            except (OffsetOutOfRangeError, LogError, UnknownTopicError):
                pass
        return extent or (offset, offset)

    def _advance(self, event: SubscriptionEvent) -> None:
        self.state = NEXT_STATE[self.state, event]

    def _wake(self) -> None:
        if self._push is not None:
            self._push.wake()

    def _acknowledge_part(self, start: int, end: int, open_mask: int | None) -> None:
        if open_mask is None:
            self._engine.acknowledge(start, end)
        else:
            self._engine.acknowledge_set(start, ~open_mask & span(0, end - start))
        self._wake()  # A consumer that held too many may go on.

    def _acknowledge_through_part(self, start: int, end: int, open_mask: int | None) -> None:
        self._engine.acknowledge_below(start)
        self._acknowledge_part(start, end, open_mask)

    def _is_far(self, offset: int) -> bool:
        return offset - self.cursor.position > limits.ACKNOWLEDGED_THROUGH_AT_ONCE

    async def _came_near(self, offset: int) -> bool:
        """Acknowledge in steps what is far below an offset; False where it came too late."""
        resets = self._resets
        while resets == self._resets and self.state is not SubscriptionState.DELETED:
            if not self._is_far(offset):
                return True
            self._engine.acknowledge_below(
                self.cursor.position + limits.ACKNOWLEDGED_THROUGH_AT_ONCE
            )
            await asyncio.sleep(0)
        return False

    async def _look_up(self, offset: int) -> tuple[int, int] | None:
        """Ask the log for start and end of the batch that contains `offset`; None where there is
        none, or the answer came too late.
        """
        resets = self._resets
        async with self._looking_up:
            if not self.partition.start_offset <= offset < self.partition.readable_end():
                return None
            try:
                extent = await self.partition.entry_at(offset, self._magic)
            except (CorruptBatchError, OffsetOutOfRangeError, LogClosedError, UnknownTopicError):
                return None  # The last two are a topic's that was deleted this moment.
        if resets != self._resets or self.state is SubscriptionState.DELETED:
            return None
        return extent
