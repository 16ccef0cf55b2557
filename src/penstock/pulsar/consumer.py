"""A consumer as its connection sees it: batches become MESSAGE frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from penstock import wall_clock
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.log.header import ATTRIBUTE_LOG_APPEND_TIME
from penstock.pulsar.wire.frames import encode_entry_metadata, encode_payload_command
from penstock.pulsar.wire.message_ids import ack_set_from_mask
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandActiveConsumerChange,
    CommandReachedEndOfTopic,
)
from penstock.records.pulsar.entry import without_checksum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.subscriptions.consumer import Consumer, Delivery
    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.broker.topics.partition import Partition
    from penstock.session import Part, Transport

ACTIVE_CONSUMER_CHANGE_VERSION: Final = 12
CHECKSUM_VERSION: Final = 11
"""Older C++ clients parse the checksum wrongly."""
REACHED_END_VERSION: Final = 9
JAVA_CLIENT: Final = "Pulsar-Java"
"""What the only client that knows REACHED_END_OF_TOPIC begins its version with: others close the
connection on it, and come back for ever.
"""


class ConsumerOwner(Protocol):
    """The connection of a consumer."""

    protocol_version: int
    """What client and broker agreed on."""
    client_version: str
    wants_entry_metadata: bool
    """Whether it takes broker entry metadata, which says where in the log an entry is."""

    @property
    def transport(self) -> Transport:
        """Where messages go."""

    def send(self, command: BaseCommand) -> None:
        """Say something that the client did not ask for."""

    def drop_consumer(self, consumer: PulsarConsumer) -> None:
        """The consumer is out: have the client subscribe again where it still wants to."""

    async def is_alive(self) -> bool:
        """Whether the client still answers; takes a few seconds when it does not."""


class PulsarConsumer:
    """Implements penstock.broker.subscriptions.consumer.Receiver.

    `member` and `subscription` are set once it is attached. `size` is what it takes of memory.
    """

    member: Consumer
    subscription: Subscription

    def __init__(
        self,
        owner: ConsumerOwner,
        consumer_id: int,
        partition: Partition,
        kind: SubscriptionKind,
        epoch: int | None,
        size: int,
    ) -> None:
        self.id = consumer_id
        self.size = size
        self.partition = partition
        self.since_ms = wall_clock.now_ms()
        """When it came."""
        self._owner = owner
        self._kind = kind
        self._is_known = False
        self._active: bool | None = None
        self._is_at_end = False
        self._knows_the_end = False
        # One message is filled in anew for every batch: it goes out a million times.
        self._command = BaseCommand(type=BaseCommand.MESSAGE)
        message = self._command.message
        message.consumer_id = consumer_id
        message.message_id.ledgerId = partition.id
        if partition.topic.partitioned:
            message.message_id.partition = partition.index
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int | None) -> None:
        """Mark what is sent from now on, so that the client can tell it from what it gave back."""
        if epoch is not None:
            self._command.message.consumer_epoch = epoch

    @property
    def takes_files(self) -> bool:
        """Whether its entries go out as they are stored, and past the transport; see Receiver."""
        return self._keeps_checksums and self._owner.transport.sends_files

    @property
    def _keeps_checksums(self) -> bool:
        return self._owner.protocol_version >= CHECKSUM_VERSION

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Send batches as they are stored, each behind a command of its own."""
        parts: list[Part] = []
        keeps_checksums = self._keeps_checksums
        for delivery in deliveries:
            body = delivery.entry.body
            if not keeps_checksums:
                assert isinstance(body, memoryview), "it takes no files"
                body = without_checksum(body)
            parts.append(self._head(delivery, len(body)))
            parts.append(body)
        self._owner.transport.write(parts)

    async def writable(self) -> None:
        """Return when the connection takes more; see Receiver."""
        await self._owner.transport.writable()

    def activated(self, active: bool) -> None:
        """Tell a Failover consumer whether it is the one that gets messages."""
        if (
            self._kind is SubscriptionKind.FAILOVER
            and self._owner.protocol_version >= ACTIVE_CONSUMER_CHANGE_VERSION
        ):
            self._active = active
            if self._is_known:
                self._say_whether_active(active)

    def known(self) -> None:
        """The client knows the consumer: say what it could not be told before."""
        self._is_known = True
        if self._active is not None:
            self._say_whether_active(self._active)
        if self._is_at_end:
            self.reached_end()

    def reached_end(self) -> None:
        """Tell a client that understands it, once, that no more will come; see Receiver."""
        owner = self._owner
        knows = owner.client_version.startswith(JAVA_CLIENT)
        if not knows or owner.protocol_version < REACHED_END_VERSION:
            return
        self._is_at_end = True
        if self._knows_the_end or not self._is_known:
            return
        self._knows_the_end = True
        reached = CommandReachedEndOfTopic(consumer_id=self.id)
        owner.send(BaseCommand(type=BaseCommand.REACHED_END_OF_TOPIC, reachedEndOfTopic=reached))

    def disconnect(self) -> None:
        """Have the client subscribe again; see Receiver."""
        self._owner.drop_consumer(self)

    async def is_alive(self) -> bool:
        """Whether the connection is; see Receiver."""
        return await self._owner.is_alive()

    def _say_whether_active(self, active: bool) -> None:
        change = CommandActiveConsumerChange(consumer_id=self.id, is_active=active)
        self._owner.send(
            BaseCommand(type=BaseCommand.ACTIVE_CONSUMER_CHANGE, active_consumer_change=change)
        )

    def _head(self, delivery: Delivery, body_size: int) -> bytes:
        message = self._command.message
        header = delivery.entry.header
        message.message_id.entryId = header.base_offset
        if delivery.redelivery_count:
            message.redelivery_count = delivery.redelivery_count
        if delivery.open_mask is not None:
            message.ack_set.extend(ack_set_from_mask(delivery.open_mask))
        told = b""
        if self._owner.wants_entry_metadata:
            is_stamped = header.attributes & ATTRIBUTE_LOG_APPEND_TIME
            stored_at = header.max_timestamp if is_stamped else None
            told = encode_entry_metadata(header.last_offset, stored_at)
        head = encode_payload_command(self._command, len(told) + body_size) + told
        if delivery.redelivery_count:
            message.ClearField("redelivery_count")
        if delivery.open_mask is not None:
            message.ClearField("ack_set")
        return head
