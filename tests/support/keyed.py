"""Consumers that share the keys of a topic without any protocol, held against what must be true."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from patience import until
from penstock.broker.broker import Broker
from penstock.broker.subscriptions.consumer import Consumer, Delivery
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.selectors.key_shared import KeySharing
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from pulsar_peer import entry
from receivers import FakeReceiver, message_batch, settled


class Keyed:
    """One subscription, and where each of its batches is.

    What it finds at each delivery: the batches of its key before this one are acknowledged, or out
    with the same consumer; and no batch is out twice.
    """

    def __init__(self, broker: Broker, sharing: KeySharing | None = None) -> None:
        self._broker = broker
        self._sharing = sharing or KeySharing()
        self.partition: Partition
        self.subscription: Subscription
        self.members: list[Consumer] = []
        self.keys: dict[int, str] = {}
        """Of each batch, by its offset."""
        self.holders: dict[int, Consumer | None] = {}
        """Of what is not acknowledged."""
        self.delivered: list[tuple[str, int, str, int]] = []
        """Key, offset, consumer and redelivery count, since it was last asked for."""

    async def start(self) -> None:
        topic = await self._broker.topics.create(TopicName("public", "default", "keyed"), 1)
        self.partition = topic.partition(0)
        await self.partition.opened()

    async def write(self, *keys: str, count: int = 1) -> None:
        """Append a batch of so many messages for each key."""
        for key in keys:
            offset = self.partition.end_offset
            self.keys[offset], self.holders[offset] = key, None
            self.partition.append(message_batch(count, entry(partition_key=key)))
        await self.partition.flushed()

    async def join(self, name: str, *ranges: tuple[int, int], permits: int = 0) -> Consumer:
        member = Consumer(Watching(self, name), name, key_ranges=ranges)
        self.members.append(member)
        request = SubscribeRequest(
            name="sub", kind=SubscriptionKind.KEY_SHARED, position=0, sharing=self._sharing
        )
        try:
            self.subscription = await self._broker.subscriptions.subscribe(
                self.partition, request, member
            )
        except BaseException:
            self.members.remove(member)
            raise
        if permits:
            self.permit(member, permits)
        return member

    def leave(self, member: Consumer) -> None:
        self.members.remove(member)
        self._let_go(self.held_by(member))
        if not self.members:
            self._let_go(self.holders)
        self._broker.subscriptions.leave(self.subscription, member)

    def permit(self, member: Consumer, permits: int) -> None:
        self.subscription.add_permits(member, permits)

    def acknowledge(self, offset: int) -> None:
        self.holders.pop(offset, None)
        assert self.subscription.acknowledge_at_once(offset), "it is out"

    def redeliver(self, member: Consumer, offsets: Collection[int] | None = None) -> None:
        self._let_go(self.held_by(member) if offsets is None else offsets)
        self.subscription.redeliver(member, offsets)

    def held_by(self, member: Consumer) -> list[int]:
        return [offset for offset, holder in self.holders.items() if holder is member]

    async def news(self, count: int = 0) -> list[str]:
        """Return what was delivered lately, which is at least so many batches: key and number of
        the batch among those of its key, and to whom.
        """
        await until(lambda: len(self.delivered) >= count)
        await settled()
        found, self.delivered = self.delivered, []
        return [
            f"{key}.{self._number(key, offset)}>{name}" + (f"(r{again})" if again else "")
            for key, offset, name, again in found
        ]

    def deliver(self, name: str, delivery: Delivery) -> None:
        """A consumer was given a batch."""
        offset = delivery.entry.header.base_offset
        key = self.keys[offset]
        (member,) = [each for each in self.members if each.name == name]
        assert self.holders.get(offset, member) is None, f"{offset} is out, or acknowledged"
        if self._sharing.in_order:
            before = [each for each in self.holders if each < offset and self.keys[each] == key]
            others = {each: self.holders[each] for each in before if self.holders[each] != member}
            assert not others, f"{offset} of {key} overtook {others}"
        self.holders[offset] = member
        self.delivered.append((key, offset, name, delivery.redelivery_count))

    def _let_go(self, offsets: Collection[int]) -> None:
        for offset in offsets:
            if offset in self.holders:
                self.holders[offset] = None

    def _number(self, key: str, offset: int) -> int:
        return sum(self.keys[each] == key for each in self.keys if each <= offset)


class Watching(FakeReceiver):
    """Says what it is given."""

    def __init__(self, keyed: Keyed, name: str) -> None:
        super().__init__()
        self._keyed = keyed
        self._name = name

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._keyed.deliver(self._name, delivery)
