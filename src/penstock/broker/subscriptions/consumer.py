"""A consumer that messages are pushed to, and what it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.subscriptions.leases import Holder
from penstock.broker.subscriptions.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.reading.entries import AnyEntry


class Delivery(NamedTuple):
    """One batch on its way to one consumer.

    `open_mask` has a bit for each of its messages that is not acknowledged; None means all of them.
    """

    entry: AnyEntry
    redelivery_count: int
    open_mask: int | None


class Receiver(Protocol):
    """A consumer's connection, as its subscription sees it."""

    @property
    def takes_files(self) -> bool:
        """Whether entries may be ranges of a file; always the same."""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Send batches, in order; views in them stay valid."""

    async def writable(self) -> None:
        """Return when more is welcome. Raises ConnectionResetError when the client is gone."""

    def activated(self, active: bool) -> None:
        """A Failover consumer was chosen, or another one was."""

    def reached_end(self) -> None:
        """The topic was terminated, and everything in it is acknowledged; may be said again."""

    def disconnect(self) -> None:
        """The consumer was detached: have the client subscribe again where it still wants to."""

    async def is_alive(self) -> bool:
        """Whether the client still answers; takes a few seconds when it does not."""


class Consumer(Holder):
    """One consumer of a subscription. Lower `priority` is served first.

    `permits` is how many messages it asked for and did not get; `stalled` is set while its
    connection takes no more, and `blocked` while it holds too many messages. One that
    `reads_compacted` has what the compacted view of its partition leaves out acknowledged unseen.
    `key_ranges` are the hashes of the keys that it asks for, first and last of each range, where it
    does not take what it is given.
    """

    __slots__ = (
        "blocked",
        "key_ranges",
        "permits",
        "priority",
        "reads_compacted",
        "receiver",
        "stalled",
        "traffic",
    )

    def __init__(
        self,
        receiver: Receiver,
        name: str,
        priority: int = 0,
        *,
        reads_compacted: bool = False,
        key_ranges: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__(name)
        self.receiver = receiver
        self.priority = priority
        self.reads_compacted = reads_compacted
        self.key_ranges = key_ranges
        self.traffic = Traffic()
        self.permits = 0
        self.stalled = False
        self.blocked = False

    @property
    def takes_files(self) -> bool:
        """Whether nobody has to look into batches before it gets them."""
        return self.receiver.takes_files and not self.key_ranges

    def leave(self) -> None:
        """It was detached, and nothing is said to its receiver any more."""
        del self.receiver  # Who knows it, and the subscription: a cycle for the collector.

    @property
    def can_take(self) -> bool:
        """Whether it asked for messages and its connection takes them."""
        return self.permits > 0 and not self.stalled
