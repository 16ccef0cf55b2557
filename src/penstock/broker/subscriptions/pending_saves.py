"""Saves what transactions acknowledged, of each subscription one write after another.

What comes while a write is on its way shares the next one. What a failed write had, and what came
meanwhile, is refused as a whole before the next write begins: so rows never have what was refused,
and what is pending in memory is what the rows have, once nothing is being saved.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.broker.subscriptions.subscription import SubscriptionState
from penstock.metadata.errors import MetadataError
from penstock.tasks import start_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.metadata.pending_acknowledgements import (
        PendingAcknowledgementRepository,
        PendingPlace,
    )


class PendingSaves:
    """Of all subscriptions and transactions of a node."""

    def __init__(self, repository: PendingAcknowledgementRepository) -> None:
        self._repository = repository
        self._next: dict[PendingPlace, asyncio.Future[None]] = {}
        """What those wait for who are part of the next write."""
        self._settled: dict[PendingPlace, asyncio.Future[None]] = {}
        """Of places that are being saved: done when they are not."""

    async def save(self, place: PendingPlace, subscription: Subscription) -> None:
        """Return when what is pending at a place is saved.

        Called in the turn in which it was added. Raises MetadataError: what was not saved is not
        pending any more then.
        """
        changes = subscription.pending.changes(place.producer_id)
        if not subscription.durable:
            subscription.pending.saved(place.producer_id, changes)
        elif changes:
            await asyncio.shield(self._following(place, subscription))

    async def settled(self, place: PendingPlace) -> None:
        """Return when nothing of a place is being saved."""
        if place in self._settled:
            await asyncio.shield(self._settled[place])

    def _following(self, place: PendingPlace, subscription: Subscription) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        saved = self._next.get(place)
        if saved is None:
            saved = self._next[place] = loop.create_future()
        if place not in self._settled:
            self._settled[place] = loop.create_future()
            saving = self._write_rounds(place, subscription)
            start_uninterrupted(saving, "save what a transaction acknowledged")
        return saved

    async def _write_rounds(self, place: PendingPlace, subscription: Subscription) -> None:
        try:
            while (saved := self._next.pop(place, None)) is not None:
                await self._write_round(place, subscription, saved)
        finally:
            self._settled.pop(place).set_result(None)

    async def _write_round(
        self, place: PendingPlace, subscription: Subscription, saved: asyncio.Future[None]
    ) -> None:
        changes = subscription.pending.changes(place.producer_id)
        try:
            await self._write(place, changes)
        except MetadataError as error:
            if subscription.state is not SubscriptionState.DELETED:
                await subscription.give_back_unsaved(place.producer_id)
            for each in filter(None, (saved, self._next.pop(place, None))):
                each.set_exception(error)
                each.exception()  # Maybe nobody waits for it, which is no failure.
        else:
            subscription.pending.saved(place.producer_id, changes)
            saved.set_result(None)

    async def _write(self, place: PendingPlace, changes: Mapping[int, int]) -> None:
        if changes:  # What is pending may have gone meanwhile.
            await self._repository.save(place, changes)
