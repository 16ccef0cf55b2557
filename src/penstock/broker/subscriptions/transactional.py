"""Acknowledgements in transactions: what each transaction has of which subscriptions.

They are durable before they are answered. With the decision that a transaction is committed its
rows are marked so, and with the one that it is aborted they go. The rows of a committed one stay
until the cursors that have them now are durable too: a start in between takes them in again.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import chain, islice, starmap
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.pending_saves import PendingSaves
from penstock.broker.subscriptions.store import RETRY_SECONDS, SAVE_DELAY_SECONDS
from penstock.broker.subscriptions.subscription import SubscriptionState
from penstock.metadata.errors import MetadataError
from penstock.metadata.pending_acknowledgements import PendingPlace
from penstock.pace import Pace
from penstock.tasks import Tasks, start_uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.broker.subscriptions.cursor import Cursor
    from penstock.broker.subscriptions.store import CursorStore
    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.metadata.pending_acknowledgements import PendingAcknowledgementRepository
    from penstock.metadata.store import Change

_AT_ONCE: Final = 100
"""Blocks of a committed transaction that are taken in with the decision; others follow in steps."""

logger = logging.getLogger(__name__)


class TransactionalAcknowledgements:
    """Implements penstock.broker.transactions.participants.Participant."""

    def __init__(self, repository: PendingAcknowledgementRepository, cursors: CursorStore) -> None:
        self._repository = repository
        self._cursors = cursors
        self._saves = PendingSaves(repository)
        self._places: dict[int, dict[PendingPlace, Subscription | None]] = {}
        """What is pending, by the ids of producers; without the subscription while its partition
        is not open."""
        self._unopened: dict[tuple[int, str], dict[PendingPlace, dict[int, int]]] = {}
        """The blocks of subscriptions of such partitions."""
        self._committed: dict[PendingPlace, Subscription | None] = {}
        """Rows that can go once the cursor is saved."""
        self._cleaning = Tasks()
        self._closing = False

    def load(self) -> None:
        """Read what was pending when the broker was stopped; blocks. Raises MetadataError."""
        for row in self._repository.all():
            place = row.place
            blocks = self._unopened.setdefault((place.partition_id, place.name), {})
            blocks.setdefault(place, {})[row.number] = row.bits
            if row.committed:
                self._committed[place] = None
            else:
                self._places.setdefault(place.producer_id, {})[place] = None

    def restore_cursor(self, partition_id: int, name: str, cursor: Cursor) -> bool:
        """Have a cursor that was read know what is committed; return whether it did not."""
        moved = False
        for place, blocks in self._unopened.get((partition_id, name), {}).items():
            if place in self._committed:
                for number, bits in blocks.items():
                    moved |= cursor.acknowledge_set(number * BLOCK, bits) > 0
        return moved

    def restore(self, subscription: Subscription, end: int) -> None:
        """Bring back what is pending of a subscription of which the partition is opened, below the
        end of its log.
        """
        key = subscription.partition.id, subscription.name
        for place, blocks in self._unopened.pop(key, {}).items():
            if place in self._committed:
                self._committed[place] = subscription
                self._clean_soon()
            else:
                subscription.bring_back(place.producer_id, blocks, end)
                self._places[place.producer_id][place] = subscription

    async def settle(self, subscription: Subscription) -> None:
        """Forget what is committed of a subscription that is about to move back: a start would
        acknowledge it once more.
        """
        if subscription in self._committed.values():
            await self._clean()

    def forget(self, partition_id: int, name: str) -> None:
        """A subscription of a partition that is not open was deleted."""
        for place in self._unopened.pop((partition_id, name), {}):
            self._committed.pop(place, None)
            self._places.get(place.producer_id, {}).pop(place, None)

    async def save(self, subscription: Subscription, producer_id: int) -> None:
        """Return when what a transaction holds of a subscription is durable.

        Called in the turn in which it was held, so that no decision comes between. Raises
        MetadataError, and then nothing of it is held any more.
        """
        place = PendingPlace(subscription.partition.id, subscription.name, producer_id)
        self._places.setdefault(producer_id, {})[place] = subscription
        await self._saves.save(place, subscription)

    async def settled(self, producer_id: int) -> None:
        """Return when nothing is being saved; see Participant."""
        for place in tuple(self._places.get(producer_id, ())):
            await self._saves.settled(place)

    def outcome(self, producer_id: int, *, committed: bool) -> Sequence[Change]:
        """Return what becomes of the rows; see Participant."""
        places = self._places.get(producer_id)
        return self._repository.outcome(places, committed=committed) if places else ()

    def decided(self, producer_id: int, *, committed: bool) -> None:
        """Have what is pending take effect, or be delivered again; see Participant."""
        opened: dict[PendingPlace, Subscription] = {}
        for place, subscription in self._places.pop(producer_id, {}).items():
            if subscription is None:
                self._decided_unopened(place, committed=committed)
            else:
                opened[place] = subscription
        if committed:
            self._commit(opened)
        elif opened:
            giving_back = _give_back(producer_id, opened.values())
            start_uninterrupted(giving_back, "give back what was aborted")

    async def close(self) -> None:
        """Forget the rows that the cursors have, which are saved."""
        self._closing = True
        self._cleaning.cancel()
        await self._cleaning.ended()
        await self._clean()

    def _decided_unopened(self, place: PendingPlace, *, committed: bool) -> None:
        if committed:
            self._committed[place] = None
        else:
            self._unopened[place.partition_id, place.name].pop(place)

    def _commit(self, opened: Mapping[PendingPlace, Subscription]) -> None:
        steps = chain.from_iterable(starmap(self._committing, opened.items()))
        if sum(1 for _ in islice(steps, _AT_ONCE)) == _AT_ONCE:
            start_uninterrupted(Pace().through(steps), "take in what was committed")

    def _committing(self, place: PendingPlace, subscription: Subscription) -> Iterator[None]:
        yield from subscription.committing_held(place.producer_id)
        if subscription.durable and subscription.state is not SubscriptionState.DELETED:
            self._committed[place] = subscription
            self._clean_soon()

    def _clean_soon(self) -> None:
        if not self._cleaning and not self._closing:
            self._cleaning.start(self._clean_now_and_then(), "forget what was committed")

    async def _clean_now_and_then(self) -> None:
        delay = SAVE_DELAY_SECONDS
        while any(self._known_committed()):
            await asyncio.sleep(delay)
            delay = SAVE_DELAY_SECONDS if await self._clean() else RETRY_SECONDS

    def _known_committed(self) -> Mapping[PendingPlace, Subscription]:
        return {place: each for place, each in self._committed.items() if each is not None}

    async def _clean(self) -> bool:
        """Forget rows that the cursors have; False where that fails for now."""
        known = self._known_committed()
        alive = {each for each in known.values() if each.state is not SubscriptionState.DELETED}
        try:
            await asyncio.gather(*map(self._cursors.save, alive))
            if known:
                await self._repository.delete(known)
        except MetadataError:
            logger.exception("acknowledgements of %d transactions were not saved", len(known))
            return False
        for place in known:
            self._committed.pop(place, None)
        return True


async def _give_back(producer_id: int, subscriptions: Iterable[Subscription]) -> None:
    pace = Pace()
    for subscription in subscriptions:
        if subscription.state is not SubscriptionState.DELETED:
            await subscription.give_back_held(producer_id, pace)
