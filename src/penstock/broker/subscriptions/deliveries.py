"""What a subscription hands to a consumer, and what it keeps about it until the acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.broker.reading.entries import Entry
    from penstock.broker.subscriptions.cursor import Cursor

UNACKNOWLEDGED_MAX: Final = 50_000
"""Messages that a consumer of a shared subscription may hold; it gets no more until half are
acknowledged (Pulsar's maxUnackedMessagesPerConsumer)."""

REMEMBERED_MAX: Final = 50_000
"""Batches of which an exclusive consumer's subscription remembers the extent; the log knows the
others, only slower."""


class Delivery(NamedTuple):
    """One batch on its way to one consumer.

    `open_mask` has a bit for each of its messages that is not acknowledged; None means all of them.
    """

    entry: Entry
    redelivery_count: int
    open_mask: int | None


class Receiver(Protocol):
    """A consumer's connection, as its subscription sees it."""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Send batches, in order; views in them stay valid."""

    async def writable(self) -> None:
        """Return when more is welcome. Raises ConnectionResetError when the client is gone."""

    def activated(self, active: bool) -> None:
        """A Failover consumer was chosen, or another one was."""

    def disconnect(self) -> None:
        """The consumer was detached: have the client subscribe again where it still wants to."""

    async def is_alive(self) -> bool:
        """Whether the client still answers; takes a few seconds when it does not."""


class Consumer:
    """One consumer of a subscription. Lower `priority` is served first."""

    __slots__ = ("blocked", "name", "permits", "priority", "receiver", "stalled", "unacknowledged")

    def __init__(self, receiver: Receiver, name: str, priority: int = 0) -> None:
        self.receiver = receiver
        self.name = name
        self.priority = priority
        self.permits = 0
        self.unacknowledged = 0
        self.stalled = False
        self.blocked = False

    @property
    def can_take(self) -> bool:
        """Whether it asked for messages and its connection takes them."""
        return self.permits > 0 and not self.stalled

    @property
    def holds_too_many(self) -> bool:
        """Whether too many messages wait for its acknowledgement; ends at half of the limit."""
        limit = UNACKNOWLEDGED_MAX // 2 if self.blocked else UNACKNOWLEDGED_MAX
        self.blocked = self.unacknowledged >= limit
        return self.blocked


class Sent(NamedTuple):
    """A batch that a consumer has: its end, and how many of its messages are open."""

    end: int
    consumer: Consumer
    open_count: int


class Outstanding:
    """The batches that consumers have and did not acknowledge, by base offset."""

    def __init__(self) -> None:
        self._sent: dict[int, Sent] = {}

    def __len__(self) -> int:
        return len(self._sent)

    def get(self, offset: int) -> Sent | None:
        return self._sent.get(offset)

    def add(self, offset: int, sent: Sent) -> None:
        sent.consumer.unacknowledged += sent.open_count
        self._sent[offset] = sent

    def remove(self, offset: int) -> Sent | None:
        """Forget one batch, whatever became of it."""
        sent = self._sent.pop(offset, None)
        if sent is not None:
            sent.consumer.unacknowledged -= sent.open_count
        return sent

    def settle(self, offset: int, cursor: Cursor) -> bool:
        """Take note of an acknowledgement; return whether the whole batch is acknowledged."""
        sent = self.remove(offset)
        if sent is None:
            return False
        open_count = cursor.open_mask(offset, sent.end).bit_count()
        if open_count:
            self.add(offset, sent._replace(open_count=open_count))
        return not open_count

    def settle_below(self, cursor: Cursor) -> None:
        """Take note that everything below the cursor is acknowledged; for batches sent in order."""
        while self._sent:
            offset, sent = next(iter(self._sent.items()))
            if sent.end > cursor.position:
                if offset < cursor.position:
                    self._recount_first(offset, sent, cursor)
                return
            self.remove(offset)

    def forget_oldest(self) -> None:
        """Keep to the limit of what is remembered."""
        while len(self._sent) > REMEMBERED_MAX:
            self.remove(next(iter(self._sent)))

    def of(self, consumer: Consumer) -> Iterator[int]:
        """The offsets of what one consumer has."""
        return (offset for offset, sent in self._sent.items() if sent.consumer is consumer)

    def clear(self) -> None:
        for sent in self._sent.values():
            sent.consumer.unacknowledged -= sent.open_count
        self._sent.clear()

    def _recount_first(self, offset: int, sent: Sent, cursor: Cursor) -> None:
        open_count = cursor.open_mask(offset, sent.end).bit_count()
        sent.consumer.unacknowledged += open_count - sent.open_count
        # The key stays where it is in the order.
        self._sent[offset] = sent._replace(open_count=open_count)
