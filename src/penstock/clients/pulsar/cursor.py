"""How far a durable subscription is, which keeps what is behind that in its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clients.pulsar.client import MessageId, id_said
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandGetLastMessageId,
    CommandSubscribe,
    CommandUnsubscribe,
    MessageIdData,
)

if TYPE_CHECKING:
    from penstock.clients.pulsar.client import PulsarClient
    from penstock.clients.pulsar.connection import BrokerConnection


class Cursor:
    """Of a subscription that many may have at once, for none of them is given any message.

    It ends with the client's connections. Methods raise RefusedError and OSError.
    """

    def __init__(self, client: PulsarClient, topic: str, subscription: str) -> None:
        self._client = client
        self._topic = topic
        self._subscription = subscription
        self._connection: BrokerConnection | None = None
        self._id = 0

    def subscribe(self) -> None:
        """Have the topic keep what comes from now on; it may have done so before."""
        self._subscribed()

    def place(self) -> tuple[MessageId, MessageId]:
        """Return the last entry that is acknowledged, and the last that can be read."""
        connection = self._subscribed()
        asked = CommandGetLastMessageId(consumer_id=self._id, request_id=0)
        command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId=asked)
        found = connection.ask(command).getLastMessageIdResponse
        return id_said(found.consumer_mark_delete_position), id_said(found.last_message_id)

    def acknowledge(self, last: MessageId) -> None:
        """Let the topic forget what is up to an entry."""
        connection = self._subscribed()
        asked = CommandAck(
            consumer_id=self._id,
            ack_type=CommandAck.Cumulative,
            message_id=[MessageIdData(ledgerId=last.ledger, entryId=last.entry)],
            request_id=0,
        )
        connection.ask(BaseCommand(type=BaseCommand.ACK, ack=asked))

    def unsubscribe(self) -> None:
        """End the subscription, unless somebody else has it too."""
        connection = self._subscribed()
        asked = CommandUnsubscribe(consumer_id=self._id, request_id=0)
        connection.ask(BaseCommand(type=BaseCommand.UNSUBSCRIBE, unsubscribe=asked))
        self._connection = None

    def _subscribed(self) -> BrokerConnection:
        if self._connection is None or self._connection.is_closed:
            connection = self._client.owner(self._topic)
            self._id = connection.next_id()
            asked = CommandSubscribe(
                topic=self._topic,
                subscription=self._subscription,
                subType=CommandSubscribe.Failover,
                consumer_id=self._id,
                request_id=0,
                initialPosition=CommandSubscribe.Earliest,
            )
            connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=asked))
            self._connection = connection
        return self._connection
