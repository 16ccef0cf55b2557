"""How much a consumer gets, and deals with, a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.broker.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.reading.entries import AnyEntry


class Traffic:
    """Rates of messages, but for that of bytes: of entries, without what says whose they are."""

    __slots__ = ("acknowledged", "bytes_sent", "redelivered", "sent")

    def __init__(self) -> None:
        now = time.monotonic()
        self.sent = Rate(now)
        self.bytes_sent = Rate(now)
        self.redelivered = Rate(now)
        """Of those that were sent, the ones that had been before."""
        self.acknowledged = Rate(now)

    def note_sent(self, deliveries: Iterable[tuple[AnyEntry, int, int | None]]) -> None:
        """Count batches that go out together; each is as in a `Delivery`."""
        messages = size = again = 0
        for entry, redelivery_count, open_mask in deliveries:
            count = entry.header.record_count
            if open_mask is not None:
                count = open_mask.bit_count()
            messages += count
            size += len(entry.body)
            if redelivery_count:
                again += count
        now = time.monotonic()
        self.sent.add(messages, now)
        self.bytes_sent.add(size, now)
        self.redelivered.add(again, now)

    def note_acknowledged(self, messages: int) -> None:
        """Count messages that the consumer has acknowledged."""
        self.acknowledged.add(messages, time.monotonic())
