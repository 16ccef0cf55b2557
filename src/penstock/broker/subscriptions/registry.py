"""The subscriptions of a node: Pulsar's way to remember how far somebody has read."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.errors import (
    BrokerError,
    ConsumerBusyError,
    SubscriptionBusyError,
    SubscriptionModeError,
    TooManySubscriptionsError,
    UnknownTopicError,
)
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.selectors.key_shared import AS_THEY_SPREAD, KeySharing
from penstock.broker.subscriptions.store import CursorStore
from penstock.broker.subscriptions.subscription import (
    Subscription,
    SubscriptionKind,
    SubscriptionState,
)
from penstock.broker.subscriptions.transactional import TransactionalAcknowledgements
from penstock.log.header import Magic
from penstock.memory import Holding, text_bytes
from penstock.records import prepare
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.partition import Partition
    from penstock.log import Log
    from penstock.memory import Memory
    from penstock.metadata.pending_acknowledgements import PendingAcknowledgementRepository
    from penstock.metadata.subscriptions import (
        Blocks,
        SubscriptionRepository,
        SubscriptionRow,
    )

_SUBSCRIPTION_BYTES: Final = 4 * limits.KIB
_PROPERTY_BYTES: Final = 200
_HASHING: Final = frozenset({SubscriptionKind.FAILOVER, SubscriptionKind.KEY_SHARED})
"""Kinds whose consumers are chosen by hashes."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SubscribeRequest:
    """What a consumer asks for. `position` is where a subscription begins that is not there yet;
    `sharing` is about Key_Shared ones.
    """

    name: str
    kind: SubscriptionKind
    position: int
    durable: bool = True
    magic: Magic = Magic.PULSAR
    properties: Mapping[str, str] = field(default_factory=dict)
    sharing: KeySharing = AS_THEY_SPREAD


class Subscriptions:
    """Every subscription of every partition; durable ones are in the database too."""

    def __init__(
        self,
        repository: SubscriptionRepository,
        pending: PendingAcknowledgementRepository,
        topics: Topics,
        memory: Memory,
    ) -> None:
        self._repository = repository
        self._topics = topics
        self._cursors = CursorStore(repository)
        self.transactional = TransactionalAcknowledgements(pending, self._cursors)
        self._by_partition: dict[int, dict[str, Subscription]] = {}
        self._count = 0
        self._account = memory.metadata
        self._held = Holding(memory.metadata)
        self._unopened: dict[int, list[tuple[SubscriptionRow, Blocks]]] = {}
        """Those of partitions of which the log is not open yet, by partition id."""

    def load(self) -> None:
        """Read the durable ones. Each is brought back when its partition is opened; blocks.

        Raises MetadataError.
        """
        blocks = self._repository.blocks()
        for row in self._repository.all():
            acknowledged = blocks.get((row.partition_id, row.name), {})
            self._unopened.setdefault(row.partition_id, []).append((row, acknowledged))
            self._add(_size(row.name, row.properties))
        self.transactional.load()
        self._topics.before_open(self._restore)

    async def _restore(self, partition: Partition, log: Log) -> None:
        """Bring a partition's subscriptions back, before anything is appended.

        Raises MetadataError.
        """
        moved = []
        for row, blocks in self._unopened.pop(partition.id, ()):
            cursor = Cursor.restored(row.mark_delete, blocks)
            was_behind = cursor.position < log.start_offset
            was_behind |= self.transactional.restore_cursor(partition.id, row.name, cursor)
            cursor.acknowledge_below(log.start_offset)
            was_ahead = cursor.cut_off(log.end_offset)
            subscription = self._make(partition, row.name, cursor, True, row.properties)
            self.transactional.restore(subscription, log.end_offset)
            if was_ahead or was_behind:
                moved.append(subscription)
            if was_ahead:
                logger.warning(
                    "subscription %s had acknowledged messages that the crash took back", row.name
                )
        for subscription in moved:
            await self._cursors.save(subscription)

    def get(self, partition: Partition, name: str) -> Subscription | None:
        return self._by_partition.get(partition.id, {}).get(name)

    def partition_ids(self) -> set[int]:
        """The partitions that have any; those of one that is not open come with its opening."""
        return self._by_partition.keys() | self._unopened.keys()

    def of_partition(self, partition: Partition) -> list[Subscription]:
        return list(self._by_partition.get(partition.id, {}).values())

    def durable_positions(self, partition: Partition) -> list[int]:
        """The first offsets that durable subscriptions have not acknowledged, also while the
        partition is not open.
        """
        waiting = [row.mark_delete for row, _ in self._unopened.get(partition.id, ())]
        there = self._by_partition.get(partition.id, {}).values()
        return waiting + [each.cursor.position for each in there if each.durable]

    async def subscribe(
        self, partition: Partition, request: SubscribeRequest, consumer: Consumer
    ) -> Subscription:
        """Attach a consumer, to a new subscription where there is none of this name.

        Raises ConsumerBusyError, KeyRangesError, SubscriptionModeError, UnknownTopicError and
        MetadataError.
        """
        if request.kind in _HASHING or consumer.key_ranges:
            await prepare()
        while True:
            found = self.get(partition, request.name)
            if found is None:
                found = await self.create(partition, request)
            async with found.changing:
                if found.state is SubscriptionState.DELETED:
                    continue  # While we waited; the next round makes a new one.
                if found.durable != request.durable:
                    raise SubscriptionModeError(
                        f"subscription {request.name} is there and is "
                        f"{'durable' if found.durable else 'not durable'}"
                    )
                await found.make_room(request.kind, request.sharing)
                if len(found.consumers) >= limits.SUBSCRIPTION_CONSUMERS:
                    raise ConsumerBusyError(
                        f"subscription {request.name} has {limits.SUBSCRIPTION_CONSUMERS} consumers"
                    )
                _check_alive(partition)
                found.attach(consumer, request.kind, request.magic, request.sharing)
                return found

    async def create(self, partition: Partition, request: SubscribeRequest) -> Subscription:
        """Make a subscription without consumers.

        Raises TooManySubscriptionsError, UnknownTopicError and MetadataError.
        """
        creating = self._create(partition, request)
        return await uninterrupted(creating, "creating a subscription", refusals=BrokerError)

    async def _create(self, partition: Partition, request: SubscribeRequest) -> Subscription:
        _check_size(request)
        _check_alive(partition)
        size = _size(request.name, request.properties)
        if self._count >= limits.SUBSCRIPTIONS or not self._account.fits(size):
            raise TooManySubscriptionsError(f"the broker has {self._count} subscriptions")
        self._add(size)
        cursor = Cursor(request.position)
        made = self._make(partition, request.name, cursor, request.durable, request.properties)
        if made.durable:
            async with made.changing:
                try:
                    await self._cursors.insert(made)
                except BaseException:
                    self._remove(made)
                    made.delete()
                    raise
        return made

    def leave(self, subscription: Subscription, consumer: Consumer) -> None:
        """Detach a consumer; a non-durable subscription ends with its last one."""
        subscription.detach(consumer)
        self._end_unless_wanted(subscription)

    async def save(self, subscription: Subscription) -> None:
        """Return when all that was acknowledged up to now is durable. Raises MetadataError."""
        await subscription.looked_up()
        if subscription.durable:
            await self._cursors.save(subscription)

    async def reset(
        self, subscription: Subscription, position: int, open_mask: int | None = None
    ) -> None:
        """Move a subscription; its consumers are sent away and come back.

        `open_mask` says which messages of the batch at `position` are still to be delivered.
        Raises MetadataError.
        """
        async with subscription.changing:
            await self.transactional.settle(subscription)
            subscription.begin_reset(position)
            try:
                if open_mask is not None:
                    await subscription.acknowledge(position, open_mask)
                await self.save(subscription)
            finally:
                subscription.end_reset()
        if not subscription.durable:
            loop = asyncio.get_running_loop()
            loop.call_later(
                limits.RESET_SUBSCRIPTION_SECONDS, self._end_unless_wanted, subscription
            )

    async def unsubscribe(
        self, subscription: Subscription, consumer: Consumer, *, force: bool = False
    ) -> None:
        """Delete a subscription for its only consumer. Raises SubscriptionBusyError."""
        deleting = self._unsubscribe(subscription, consumer, force)
        await uninterrupted(deleting, "deleting a subscription", refusals=BrokerError)

    async def _unsubscribe(
        self, subscription: Subscription, consumer: Consumer, force: bool
    ) -> None:
        async with subscription.changing:
            if not force and subscription.consumers != [consumer]:
                raise SubscriptionBusyError(f"subscription {subscription.name} has other consumers")
            subscription.detach(consumer)
            if subscription.durable:
                await self._cursors.delete(subscription)
            self._remove(subscription)
            subscription.delete()

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Partitions were deleted, and the database has dropped their subscriptions with them."""
        for partition in partitions:
            for row, _ in self._unopened.pop(partition.id, ()):
                self._take_off(_size(row.name, row.properties))
                self.transactional.forget(partition.id, row.name)
            for subscription in self.of_partition(partition):
                self._cursors.forget(subscription)
                self._remove(subscription)
                subscription.delete()

    async def close(self) -> None:
        """Make all cursors durable. No consumer may be left."""
        await self.transactional.close()
        await self._cursors.close()

    def _make(
        self,
        partition: Partition,
        name: str,
        cursor: Cursor,
        durable: bool,
        properties: Mapping[str, str],
    ) -> Subscription:
        made = Subscription(
            partition,
            name,
            cursor,
            durable=durable,
            properties=properties,
            changed=self._cursors.save_soon if durable else _ignore,
        )
        self._by_partition.setdefault(partition.id, {})[name] = made
        return made

    def _remove(self, subscription: Subscription) -> None:
        of_partition = self._by_partition.get(subscription.partition.id, {})
        if of_partition.get(subscription.name) is subscription:
            del of_partition[subscription.name]
            self._take_off(_size(subscription.name, subscription.properties))
        if not of_partition:
            self._by_partition.pop(subscription.partition.id, None)

    def _add(self, size: int) -> None:
        self._count += 1
        self._held.grow(size)

    def _take_off(self, size: int) -> None:
        self._count -= 1
        self._held.grow(-size)

    def _end_unless_wanted(self, subscription: Subscription) -> None:
        wanted = subscription.durable or subscription.changing.locked() or subscription.consumers
        if not wanted and subscription.state is SubscriptionState.IDLE:
            self._remove(subscription)
            subscription.delete()


def _check_alive(partition: Partition) -> None:
    if partition.deleted:
        raise UnknownTopicError(f"topic {partition.topic.name.pulsar} was deleted")


def _size(name: str, properties: Mapping[str, str]) -> int:
    """Return about how much memory a subscription takes, besides what it knows of messages."""
    texts = sum(map(text_bytes, (*properties, *properties.values())))
    return _SUBSCRIPTION_BYTES + text_bytes(name) + texts + len(properties) * _PROPERTY_BYTES


def _check_size(request: SubscribeRequest) -> None:
    texts = [request.name, *request.properties.keys(), *request.properties.values()]
    if sum(map(len, texts)) > limits.SUBSCRIPTION_BYTES:
        raise TooManySubscriptionsError(
            f"a subscription's name and properties have at most {limits.SUBSCRIPTION_BYTES} bytes"
        )


def _ignore(subscription: Subscription) -> None:
    """What is not durable is not saved."""
    del subscription
