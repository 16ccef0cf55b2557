"""A small blocking Pulsar client for pipelines, which reads here and writes by `producing`.

    with PulsarClient("127.0.0.1:6650") as client:
        reader = client.reader("persistent://public/default/orders")
        reader.seek(MessageId(7, 0))
        entry = reader.receive(timeout_s=10)

It asks each topic's own broker, which a look-up names, over one connection each. Methods raise
RefusedError for what the broker refused, LoginError where it does not let us in, and OSError for a
connection that failed, after which the next call connects anew.
"""

from __future__ import annotations

import secrets
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.access import OPEN
from penstock.clients.closing import Closing
from penstock.clients.pulsar.connection import CLIENT, BrokerConnection, RefusedError
from penstock.pulsar.wire.message_ids import EARLIEST
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandFlow,
    CommandGetLastMessageId,
    CommandGetSchema,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    CommandSubscribe,
    MessageIdData,
    Schema,
    ServerError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.clients.access import Access

DEFAULT_TIMEOUT_S: Final = 30.0
PERMITS: Final = 1000
"""Messages that a broker may send ahead."""

_REDIRECTS: Final = 20
_NO_TOPIC: Final = frozenset({ServerError.TopicNotFound, ServerError.MetadataError})
"""How brokers say that there is no such topic, or no such version of its schema."""
_SCHEMA_VERSION: Final = struct.Struct(">q")


class MessageId(NamedTuple):
    """Of an entry, a message or a batch of them; -1 and -1 come before all."""

    ledger: int
    entry: int


class Received(NamedTuple):
    """An entry as it was stored, and its id."""

    id: MessageId
    entry: memoryview


class KeptSchema(NamedTuple):
    """A version of a topic's schema."""

    kind: str
    """As the protocol names it: Avro, Json, String, ..."""
    definition: bytes
    version: int
    properties: Mapping[str, str]


class PulsarClient(Closing):
    """`servers` is `host:port`, or several with commas, of which the first that answers is used."""

    def __init__(
        self, servers: str, access: Access = OPEN, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self._servers = servers
        self._access = access
        self._timeout_s = timeout_s
        self._connections: dict[tuple[str, str], BrokerConnection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def largest_message(self) -> int:
        """Return the bytes that an entry may have."""
        return self._first().largest_message

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has: 0 of one that has none, or is not there."""
        asked = CommandPartitionedTopicMetadata(
            topic=topic, request_id=0, metadata_auto_creation_enabled=False
        )
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partitionMetadata=asked)
        answer = self._first().ask(command).partitionMetadataResponse
        if answer.response == CommandPartitionedTopicMetadataResponse.Failed:
            if answer.error in _NO_TOPIC:
                return 0
            raise RefusedError(answer.error, answer.message)
        return int(answer.partitions)

    def topics(self, namespace: str) -> list[str]:
        """Return the persistent topics of a namespace, each partition as one."""
        asked = CommandGetTopicsOfNamespace(
            request_id=0, namespace=namespace, mode=CommandGetTopicsOfNamespace.PERSISTENT
        )
        command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked)
        try:
            return list(self._first().ask(command).getTopicsOfNamespaceResponse.topics)
        except RefusedError as error:
            if error.code in _NO_TOPIC:
                return []
            raise

    def schema(self, topic: str, version: int | None = None) -> KeptSchema | None:
        """Return a version of a topic's schema, the newest by default; None where there is none."""
        asked = CommandGetSchema(topic=topic, request_id=0)
        if version is not None:
            asked.schema_version = _SCHEMA_VERSION.pack(version)
        command = BaseCommand(type=BaseCommand.GET_SCHEMA, getSchema=asked)
        answer = self._first().ask(command).getSchemaResponse
        if answer.HasField("error_code"):
            if answer.error_code in _NO_TOPIC:
                return None
            raise RefusedError(answer.error_code, answer.error_message)
        number = int.from_bytes(answer.schema_version[-_SCHEMA_VERSION.size :])
        kind = Schema.Type.Name(answer.schema.type)
        properties = {pair.key: pair.value for pair in answer.schema.properties}
        return KeptSchema(kind, answer.schema.schema_data, number, properties)

    def reader(self, topic: str) -> Reader:
        """Return a reader of a topic without partitions, or of one partition."""
        return Reader(self, topic)

    def owner(self, topic: str) -> BrokerConnection:
        """Return the connection to the broker that has a topic."""
        found = self._first()
        authoritative = False
        for _ in range(_REDIRECTS):
            asked = CommandLookupTopic(topic=topic, request_id=0, authoritative=authoritative)
            command = BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=asked)
            answer = found.ask(command).lookupTopicResponse
            if answer.response == CommandLookupTopicResponse.Failed:
                raise RefusedError(answer.error, answer.message)
            url = answer.brokerServiceUrl
            if self._access.tls is not None:
                url = answer.brokerServiceUrlTls or url
            broker = url.rpartition("://")[2]
            through = self._servers if answer.proxy_through_service_url else broker
            found = self._connected(through, broker if through != broker else "")
            if answer.response == CommandLookupTopicResponse.Connect:
                return found
            authoritative = answer.authoritative
        raise ConnectionError(f"the brokers send each other's clients round for {topic}")

    def _first(self) -> BrokerConnection:
        return self._connected(self._servers, "")

    def _connected(self, servers: str, behind: str) -> BrokerConnection:
        found = self._connections.get((servers, behind))
        if found is None or found.is_closed:
            found = BrokerConnection(servers, behind, self._access, self._timeout_s)
            self._connections[servers, behind] = found
        return found


class Reader:
    """Reads one topic from a position on, with a subscription that ends with its connection."""

    def __init__(self, client: PulsarClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._connection: BrokerConnection | None = None
        self._id = 0
        self._permits = 0

    def seek(self, start: MessageId) -> None:
        """Have `receive` begin at an entry, or at the first one behind it."""
        self.close()
        connection = self._client.owner(self._topic)
        self._id = connection.next_id()
        position = MessageIdData(ledgerId=EARLIEST, entryId=EARLIEST)
        if start.ledger >= 0:
            # Of a batch the broker takes the entry itself, and of a message the one behind it.
            position = MessageIdData(ledgerId=start.ledger, entryId=start.entry, batch_index=0)
        asked = CommandSubscribe(
            topic=self._topic,
            subscription=f"{CLIENT}-{secrets.token_hex(8)}",
            subType=CommandSubscribe.Exclusive,
            consumer_id=self._id,
            request_id=0,
            durable=False,
            start_message_id=position,
            force_topic_creation=False,
        )
        connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=asked))
        self._connection = connection
        self._permits = 0

    def close(self) -> None:
        if self._connection is not None and not self._connection.is_closed:
            asked = CommandCloseConsumer(consumer_id=self._id, request_id=0)
            command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=asked)
            self._connection.ask(command)
        self._connection = None

    def last(self) -> MessageId:
        """Return the id of the last entry, -1 and -1 where there is none."""
        if self._connection is None or self._connection.is_closed:
            self.seek(MessageId(-1, -1))
        assert self._connection is not None
        asked = CommandGetLastMessageId(consumer_id=self._id, request_id=0)
        command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId=asked)
        return id_said(self._connection.ask(command).getLastMessageIdResponse.last_message_id)

    def receive(self, timeout_s: float) -> Received:
        """Return the next entry. Raises TimeoutError where there is none for so long."""
        if self._connection is None or self._connection.is_closed:
            raise ConnectionError("the broker closed the connection")
        if self._permits < PERMITS // 2:
            flow = CommandFlow(consumer_id=self._id, messagePermits=PERMITS - self._permits)
            self._connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))
            self._permits = PERMITS
        frame = self._connection.receive(self._id, timeout_s)
        found = frame.command.message.message_id
        return Received(MessageId(found.ledgerId, found.entryId), frame.entry)

    def used(self, messages: int) -> None:
        """Say how many messages an entry that was received held: the broker counts them."""
        self._permits -= messages


def id_said(said: MessageIdData) -> MessageId:
    """Return an id that may come before all of a ledger's, or of a topic's."""
    ledger, entry = (-1 if each == EARLIEST else each for each in (said.ledgerId, said.entryId))
    return MessageId(ledger, entry if ledger >= 0 else -1)
