"""Non-persistent topics: a message goes to the consumers that are there and have permits for it,
and is dropped for the others. Nothing is stored, and a topic is there as long as somebody uses it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.subscriptions.selectors.key_ranges import KeyRanges
from penstock.broker.subscriptions.selectors.key_ring import KeyRing
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.limits import PULSAR_TRANSIENT_SUBSCRIPTIONS, PULSAR_UNREAD_BYTES
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.wire.frames import encode_payload_command
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandActiveConsumerChange,
    MessageIdData,
    ServerError,
)
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.broker.subscriptions.selectors.key_owners import KeyOwners
    from penstock.broker.subscriptions.selectors.key_shared import KeySharing
    from penstock.session import Buffer, Transport

SCHEME: Final = "non-persistent://"
MESSAGE_ID: Final = MessageIdData(ledgerId=0, entryId=0)
"""What every message has, as with Pulsar's broker."""
_ACTIVE_CONSUMER_CHANGE_VERSION: Final = 12
_ASKED_IN_TURN: Final = 100
"""Consumers of a Shared subscription that may have no permits before a message is dropped."""


class TransientOwner(Protocol):
    """The connection of a producer or a consumer."""

    protocol_version: int

    @property
    def transport(self) -> Transport:
        """Where messages go."""

    def send(self, command: BaseCommand) -> None:
        """Say something that the client did not ask for."""

    async def is_alive(self) -> bool:
        """Whether the client still answers; takes a few seconds when it does not."""


@dataclass(eq=False)
class TransientProducer:
    """One producer; its name is nobody else's on the topic."""

    name: str
    owner: TransientOwner
    topic: TransientTopic


@dataclass(eq=False)
class TransientConsumer:
    """One consumer. `permits` is how many messages it asked for and did not get.

    `size` is what it takes of memory; `key_ranges` is as for a Consumer of the broker.
    """

    id: int
    name: str
    priority: int
    owner: TransientOwner
    size: int
    key_ranges: Sequence[tuple[int, int]] = ()
    subscription: TransientSubscription = field(init=False)
    permits: int = 0
    is_known: bool = False
    _unread: int = 0
    """Bytes that were sent since the connection last took all."""
    _tasks: Tasks = field(default_factory=Tasks)

    @property
    def can_take(self) -> bool:
        """Whether it asked for messages and its connection takes them."""
        return self.permits > 0 and self._unread < PULSAR_UNREAD_BYTES

    def deliver(self, body: Buffer, count: int) -> None:
        """Send an entry of so many messages."""
        command = BaseCommand(type=BaseCommand.MESSAGE)
        command.message.consumer_id = self.id
        command.message.message_id.CopyFrom(MESSAGE_ID)
        self.owner.transport.write([encode_payload_command(command, len(body)), body])
        self.permits -= count
        if not self._unread:
            self._tasks.start(self._read(), "wait for a consumer to take more")
        self._unread += len(body)

    def known(self) -> None:
        """The client knows the consumer: say what it could not be told before."""
        self.is_known = True
        self.subscription.introduce(self)

    def say_whether_active(self, *, is_active: bool) -> None:
        """Tell a Failover consumer whether it is the one that gets messages."""
        if self.owner.protocol_version >= _ACTIVE_CONSUMER_CHANGE_VERSION:
            change = CommandActiveConsumerChange(consumer_id=self.id, is_active=is_active)
            self.owner.send(
                BaseCommand(type=BaseCommand.ACTIVE_CONSUMER_CHANGE, active_consumer_change=change)
            )

    async def _read(self) -> None:
        try:
            await self.owner.transport.writable()
        except ConnectionResetError:
            return  # It is about to be removed.
        self._unread = 0


class TransientSubscription:
    """The consumers of one name, which share what is sent as its kind says."""

    def __init__(
        self, topic: TransientTopic, name: str, kind: SubscriptionKind, sharing: KeySharing
    ) -> None:
        self.topic = topic
        self.name = name
        self.kind = kind
        self.sharing = sharing
        self._keys: KeyOwners[TransientConsumer] | None = None
        if kind is SubscriptionKind.KEY_SHARED:
            self._keys = KeyRanges() if sharing.chosen else KeyRing()
        self.consumers: deque[TransientConsumer] = deque()
        self._active: TransientConsumer | None = None

    def deliver(self, body: Buffer, count: int) -> None:
        """Send an entry to the consumer whose turn it is, or to none."""
        if self.kind is SubscriptionKind.SHARED:
            for _ in range(min(len(self.consumers), _ASKED_IN_TURN)):
                self.consumers.rotate(-1)
                if self.consumers[-1].can_take:
                    self.consumers[-1].deliver(body, count)
                    return
        elif self._keys is not None:
            owner = self._keys.owner(self._keys.slot(body))
            if owner is not None and owner.can_take:
                owner.deliver(body, count)
        elif self._active is not None and self._active.can_take:
            self._active.deliver(body, count)

    def add(self, consumer: TransientConsumer) -> None:
        """Add a consumer. Raises KeyRangesError."""
        if self._keys is None and consumer.key_ranges:
            self._keys = KeyRanges()  # It is alone, and wants some keys only.
        if self._keys is not None:
            self._keys.check(consumer)
            self._keys.add(consumer)
        self.consumers.append(consumer)
        self._choose()

    def remove(self, consumer: TransientConsumer) -> None:
        self.consumers.remove(consumer)
        if self._keys is not None:
            self._keys.remove(consumer)
        self._choose()

    def introduce(self, consumer: TransientConsumer) -> None:
        """Tell a consumer that its client knows by now whether it is its turn."""
        if self.kind is SubscriptionKind.FAILOVER:
            consumer.say_whether_active(is_active=consumer is self._active)

    def _choose(self) -> None:
        """Find the one that gets all, unless they share, and tell those for whom that changes."""
        former = self._active
        self._active = min(
            self.consumers, key=lambda each: (each.priority, each.name), default=None
        )
        if self.kind is not SubscriptionKind.FAILOVER or self._active is former:
            return
        for consumer in (former, self._active):
            if consumer is not None and consumer.is_known and consumer in self.consumers:
                consumer.say_whether_active(is_active=consumer is self._active)


class TransientTopic:
    """Who publishes to a name and who listens to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.producers: dict[str, TransientProducer] = {}
        self.subscriptions: dict[str, TransientSubscription] = {}

    def publish(self, body: Buffer, count: int) -> None:
        """Send an entry of so many messages to each subscription."""
        for subscription in tuple(self.subscriptions.values()):
            subscription.deliver(body, count)


class TransientTopics:
    """The non-persistent topics of one broker."""

    def __init__(self) -> None:
        self._topics: dict[str, TransientTopic] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._topics

    def names(self, namespace: str) -> Iterator[str]:
        """Yield the topics of a namespace, which is written `tenant/namespace`."""
        prefix = f"{SCHEME}{namespace}/"
        return (name for name in tuple(self._topics) if name.startswith(prefix))

    async def add_producer(self, topic: str, name: str, owner: TransientOwner) -> TransientProducer:
        """Let a producer in. Raises RefusedError where its name is taken."""
        while (other := self._topic(topic).producers.get(name)) is not None:
            if await other.owner.is_alive():
                raise RefusedError(
                    ServerError.ProducerBusy, f"a producer named {name} is already connected"
                )
            self.remove_producer(other)
        there = self._topic(topic)
        made = there.producers[name] = TransientProducer(name, owner, there)
        return made

    async def add_consumer(
        self,
        topic: str,
        name: str,
        kind: SubscriptionKind,
        sharing: KeySharing,
        made: TransientConsumer,
    ) -> None:
        """Let a consumer in. Raises RefusedError where others can't share with it, and
        KeyRangesError.
        """
        while (other := self._in_the_way(topic, name, kind, sharing)) is not None:
            if await other.owner.is_alive():
                raise RefusedError(
                    ServerError.ConsumerBusy, f"subscription {name} has consumer {other.name}"
                )
            self.remove_consumer(other)
        there = self._topic(topic)
        subscription = there.subscriptions.get(name)
        if subscription is None:
            if len(there.subscriptions) >= PULSAR_TRANSIENT_SUBSCRIPTIONS:
                raise RefusedError(
                    ServerError.NotAllowedError,
                    f"a non-persistent topic has at most {PULSAR_TRANSIENT_SUBSCRIPTIONS} "
                    "subscriptions",
                )
            subscription = TransientSubscription(there, name, kind, sharing)
        made.subscription = subscription
        subscription.add(made)
        there.subscriptions[name] = subscription

    def remove_producer(self, producer: TransientProducer) -> None:
        """Forget a producer that was closed."""
        topic = producer.topic
        if topic.producers.get(producer.name) is producer:
            del topic.producers[producer.name]
        self._end_unless_used(topic)

    def remove_consumer(self, consumer: TransientConsumer) -> None:
        """Forget a consumer that was closed; a subscription ends with its last one."""
        subscription = consumer.subscription
        if consumer in subscription.consumers:
            subscription.remove(consumer)
        topic = subscription.topic
        is_known = topic.subscriptions.get(subscription.name) is subscription
        if is_known and not subscription.consumers:
            del topic.subscriptions[subscription.name]
        self._end_unless_used(topic)

    def _in_the_way(
        self, topic: str, name: str, kind: SubscriptionKind, sharing: KeySharing
    ) -> TransientConsumer | None:
        subscription = self._topic(topic).subscriptions.get(name)
        if subscription is None:
            return None
        is_alike = subscription.kind is kind and subscription.sharing == sharing
        if is_alike and kind is not SubscriptionKind.EXCLUSIVE:
            return None
        return subscription.consumers[0]

    def _topic(self, name: str) -> TransientTopic:
        return self._topics.setdefault(name, TransientTopic(name))

    def _end_unless_used(self, topic: TransientTopic) -> None:
        if not topic.producers and not topic.subscriptions:
            self._topics.pop(topic.name, None)
