"""One named subscription of one partition: its cursor, its consumers, and who may do what when."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import ConsumerBusyError
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.dispatch_shared import SharedDispatcher
from penstock.broker.subscriptions.dispatch_single import SingleDispatcher
from penstock.log import CorruptBatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from penstock.broker.subscriptions.deliveries import Consumer
    from penstock.broker.subscriptions.dispatch import Dispatcher
    from penstock.broker.topics.partition import Partition
    from penstock.log.header import Magic


class SubscriptionKind(Enum):
    """How consumers share a subscription; it may change whenever none is connected."""

    EXCLUSIVE = auto()
    SHARED = auto()
    FAILOVER = auto()


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

DISPATCHERS: Final[Mapping[SubscriptionKind, type[Dispatcher]]] = {
    SubscriptionKind.EXCLUSIVE: SingleDispatcher,
    SubscriptionKind.FAILOVER: SingleDispatcher,
    SubscriptionKind.SHARED: SharedDispatcher,
}


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
        self.changing = asyncio.Lock()
        self._dispatcher: Dispatcher | None = None
        self._changed = changed

    @property
    def consumers(self) -> list[Consumer]:
        return [] if self._dispatcher is None else list(self._dispatcher.consumers)

    @property
    def backlog(self) -> int:
        """Messages that are not acknowledged."""
        behind = self.partition.end_offset - self.cursor.position
        return behind - self.cursor.acknowledged_above

    async def make_room(self, kind: SubscriptionKind) -> None:
        """Check that a consumer of this kind may come.

        Consumers whose client no longer answers do not count and are sent away: theirs may be the
        one that comes back. Raises ConsumerBusyError.
        """
        if kind is self.kind and kind is not SubscriptionKind.EXCLUSIVE:
            return
        for consumer in self.consumers:
            if await consumer.receiver.is_alive():
                raise ConsumerBusyError(
                    f"subscription {self.name} is {self.kind.name.lower()} and has consumer "
                    f"{consumer.name}"
                )
            if consumer in self.consumers:
                self.send_away(consumer)

    def attach(self, consumer: Consumer, kind: SubscriptionKind, magic: Magic) -> None:
        """Let a consumer in; messages come as soon as it has permits."""
        self._advance(SubscriptionEvent.CONSUMER_CAME)
        if self._dispatcher is None:
            self.kind = kind
            self._dispatcher = DISPATCHERS[kind](
                self.partition,
                self.cursor,
                magic,
                changed=self._note_change,
                failed=self.send_all_away,
            )
            self._dispatcher.start()
        assert kind is self.kind, "make_room was asked first"
        self._dispatcher.add(consumer)

    def detach(self, consumer: Consumer) -> None:
        """Let a consumer go; nothing happens when it is gone already."""
        dispatcher = self._dispatcher
        if dispatcher is None or consumer not in dispatcher.consumers:
            return
        dispatcher.remove(consumer)
        if not dispatcher.consumers:
            dispatcher.stop()
            self._dispatcher = None
            self._advance(SubscriptionEvent.LAST_CONSUMER_LEFT)

    def send_away(self, consumer: Consumer) -> None:
        """Detach a consumer and have its client subscribe again if it wants to."""
        self.detach(consumer)
        consumer.receiver.disconnect()

    def send_all_away(self) -> None:
        for consumer in self.consumers:
            self.send_away(consumer)

    def add_permits(self, consumer: Consumer, permits: int) -> None:
        """The consumer wants so many messages more."""
        consumer.permits += permits
        if self._dispatcher is not None:
            self._dispatcher.wake()

    def acknowledge(self, offset: int, open_mask: int | None = None) -> None:
        """Take an acknowledgement of the batch at `offset`, or of part of it.

        `open_mask` has a bit for each of its messages that is not meant; None means the whole
        batch. An offset at which no batch begins is ignored, and so is one behind the cursor.
        """
        end = self._end_of(offset)
        if end is None:
            return
        if open_mask is None:
            self.cursor.acknowledge(offset, end)
        else:
            for start, stop in _closed_runs(open_mask, end - offset):
                self.cursor.acknowledge(offset + start, offset + stop)
        if self._dispatcher is not None:
            self._dispatcher.acknowledged(offset)
        self._note_change()

    def acknowledge_through(self, offset: int, open_mask: int | None = None) -> None:
        """Take a cumulative acknowledgement: all before the batch at `offset`, and of the batch
        what `open_mask` leaves. The offset may lie inside a batch, which is then meant. Shared
        subscriptions have none.
        """
        if self.kind is SubscriptionKind.SHARED or offset < 0:
            return
        header = self._batch_at(offset)
        if header is None:
            return
        base, end = header
        if open_mask is None:
            self.cursor.acknowledge_below(end)
        else:
            self.cursor.acknowledge_below(base)
            for start, stop in _closed_runs(open_mask, end - base):
                self.cursor.acknowledge(base + start, base + stop)
        if self._dispatcher is not None:
            self._dispatcher.acknowledged_below()
        self._note_change()

    def redeliver(self, consumer: Consumer, offsets: Collection[int] | None) -> None:
        """Send again what the consumer has and did not acknowledge: some batches, or all."""
        if self._dispatcher is not None:
            self._dispatcher.redeliver(consumer, offsets)

    def begin_reset(self, position: int) -> None:
        """Move the cursor; consumers are sent away first and come back. `changing` is held."""
        assert self.changing.locked()
        self.send_all_away()
        self._advance(SubscriptionEvent.RESET_BEGAN)
        self.cursor.reset(position)

    def end_reset(self) -> None:
        """The new position is stored."""
        self._advance(SubscriptionEvent.RESET_ENDED)

    def delete(self) -> None:
        """Send every consumer away for good."""
        self.send_all_away()
        self._advance(SubscriptionEvent.WAS_DELETED)

    def _advance(self, event: SubscriptionEvent) -> None:
        self.state = NEXT_STATE[self.state, event]

    def _note_change(self) -> None:
        self._changed(self)

    def _end_of(self, offset: int) -> int | None:
        found = self._batch_at(offset)
        return None if found is None or found[0] != offset else found[1]

    def _batch_at(self, offset: int) -> tuple[int, int] | None:
        """Start and end of the batch that contains `offset`."""
        if self._dispatcher is not None:
            sent = self._dispatcher.outstanding.get(offset)
            if sent is not None:
                return offset, sent.end
        if not self.partition.start_offset <= offset < self.partition.end_offset:
            return None
        try:
            header = self.partition.header_at(offset)
        except CorruptBatchError:
            return None
        return None if header is None else (header.base_offset, header.next_offset)


def _closed_runs(open_mask: int, size: int) -> list[tuple[int, int]]:
    """The runs of zero bits among the first `size`, ends excluded."""
    runs = []
    position = 0
    closed = ~open_mask & ((1 << size) - 1)
    while closed >> position:
        start = position + _trailing_zeros(closed >> position)
        stop = start + _trailing_zeros(~(closed >> start))
        runs.append((start, stop))
        position = stop
    return runs


def _trailing_zeros(number: int) -> int:
    return (number & -number).bit_length() - 1
