"""Writes cursors to the database: soon after they move, or at once where an answer depends on it.

Cursors that move while a write is on its way share the next one, so that the number of writes
follows the speed of the disk and not the number of acknowledgements.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.cursor import Changes
from penstock.metadata.errors import MetadataError
from penstock.metadata.subscriptions import CursorRow, SubscriptionRow
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.metadata.subscriptions import SubscriptionRepository

RETRY_SECONDS: Final = 1.0
"""How long after a write that failed the next one is tried."""
SAVE_DELAY_SECONDS: Final = 0.1
"""How long an acknowledgement that nobody waits for may stay in memory only. After a crash its
messages are delivered again."""

logger = logging.getLogger(__name__)


class CursorStore:
    """The rows of durable subscriptions."""

    def __init__(self, repository: SubscriptionRepository) -> None:
        self._repository = repository
        self._moved: set[Subscription] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._saved: asyncio.Future[None] | None = None
        self._tasks = Tasks()
        # Not whether a task is there: one that has ended is, for the rest of its turn.
        self._writing = False
        self._closing = False

    async def insert(self, subscription: Subscription) -> None:
        """Store a new subscription. Raises MetadataError."""
        place = subscription.partition.id, subscription.name, subscription.cursor.position
        await self._repository.insert(SubscriptionRow(*place, subscription.properties))

    async def delete(self, subscription: Subscription) -> None:
        """Forget a subscription. Raises MetadataError."""
        self._moved.discard(subscription)
        await self._repository.delete(subscription.partition.id, subscription.name)

    def save_soon(self, subscription: Subscription) -> None:
        """Have a cursor that moved written within `SAVE_DELAY_SECONDS`."""
        self._moved.add(subscription)
        if self._timer is None and self._saved is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(SAVE_DELAY_SECONDS, self._begin)

    async def save(self, subscription: Subscription) -> None:
        """Return when the cursor as it is now is durable. Raises MetadataError."""
        self._moved.add(subscription)
        await asyncio.shield(self._begin())

    async def close(self) -> None:
        """Write what moved."""
        self._closing = True
        if self._moved:
            await self._begin()
        elif self._timer is not None:  # What moved was deleted meanwhile.
            self._timer.cancel()
        await self._tasks.ended()

    def forget(self, subscription: Subscription) -> None:
        self._moved.discard(subscription)

    def _begin(self) -> asyncio.Future[None]:
        """Have a write begin that includes all cursors that moved up to now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saved is None:
            self._saved = asyncio.get_running_loop().create_future()
            if not self._writing:
                self._writing = True
                self._tasks.start(self._write_rounds(), "save cursors")
        return self._saved

    async def _write_rounds(self) -> None:
        try:
            while self._saved is not None:
                saved, self._saved = self._saved, None
                await self._write_round(saved)
        finally:
            self._writing = False

    async def _write_round(self, saved: asyncio.Future[None]) -> None:
        moved, self._moved = self._moved, set()
        rows = {subscription: _cursor_row(subscription) for subscription in moved}
        try:
            await self._repository.save(rows.values())
        except MetadataError as error:
            logger.exception("%d cursors were not saved", len(moved))
            saved.set_exception(error)
            saved.exception()  # Maybe nobody waits for it, which is no failure.
            self._take_back(rows)
        else:
            saved.set_result(None)

    def _take_back(self, rows: Mapping[Subscription, CursorRow]) -> None:
        """Have what was not written be written with the next write, which comes soon."""
        self._moved |= rows.keys()
        for subscription, row in rows.items():
            subscription.cursor.give_back(Changes(row.from_number, row.blocks))
        if self._timer is None and self._saved is None and not self._closing:
            self._timer = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._begin)


def _cursor_row(subscription: Subscription) -> CursorRow:
    cursor = subscription.cursor
    place = subscription.partition.id, subscription.name
    return CursorRow(*place, cursor.position, *cursor.take_changes())
