"""A small blocking Pulsar client that reads, for pipelines.

    with PulsarClient("127.0.0.1:6650") as client:
        reader = client.reader("persistent://public/default/orders")
        reader.seek(MessageId(7, 0))
        entry = reader.receive(timeout_s=10)

It asks each topic's own broker, which a look-up names, over one connection each. Methods raise
RefusedError for what the broker refused, LoginError where it does not let us in, and OSError for a
connection that failed, after which the next call connects anew.
"""

from __future__ import annotations

import itertools
import secrets
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.access import OPEN, Access, LoginError, Token, connect, read_into
from penstock.clients.closing import Closing
from penstock.pulsar.wire.frames import Frame, encode_command, frame_size, parse_frame
from penstock.pulsar.wire.message_ids import EARLIEST
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandConnect,
    CommandFlow,
    CommandGetLastMessageId,
    CommandGetSchema,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    CommandPong,
    CommandSubscribe,
    MessageIdData,
    Schema,
    ServerError,
)
from penstock.session import PeerError

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

DEFAULT_TIMEOUT_S: Final = 30.0
MESSAGE_BYTES: Final = 1 << 28
"""A message of more is none that a broker takes."""
PERMITS: Final = 1000
"""Messages that a broker may send ahead."""

_CLIENT: Final = "penstock"
_PROTOCOL_VERSION: Final = 21
_REDIRECTS: Final = 20
_REFUSED_LOGINS: Final = frozenset(
    {ServerError.AuthenticationError, ServerError.AuthorizationError}
)
_LATER: Final = frozenset({ServerError.ServiceNotReady, ServerError.TooManyRequests})
"""What may go well a moment later."""
_NO_TOPIC: Final = frozenset({ServerError.TopicNotFound, ServerError.MetadataError})
"""How brokers say that there is no such topic, or no such version of its schema."""
_SCHEMA_VERSION: Final = struct.Struct(">q")


class RefusedError(Exception):
    """The broker answered with an error, one of Pulsar's own."""

    def __init__(self, code: ServerError.ValueType, message: str) -> None:
        self.code = code
        first_line = message.partition("\n")[0]
        super().__init__(f"{ServerError.Name(code)}: {first_line[:300]}")


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
        self._connections: dict[tuple[str, str], _Connection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

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

    def owner(self, topic: str) -> _Connection:
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

    def _first(self) -> _Connection:
        return self._connected(self._servers, "")

    def _connected(self, servers: str, behind: str) -> _Connection:
        found = self._connections.get((servers, behind))
        if found is None or found.is_closed:
            found = _Connection(servers, behind, self._access, self._timeout_s)
            self._connections[servers, behind] = found
        return found


class Reader:
    """Reads one topic from a position on, with a subscription that ends with its connection."""

    def __init__(self, client: PulsarClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._connection: _Connection | None = None
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
            subscription=f"{_CLIENT}-{secrets.token_hex(8)}",
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
        found = self._connection.ask(command).getLastMessageIdResponse.last_message_id
        if EARLIEST in (found.ledgerId, found.entryId):
            return MessageId(-1, -1)
        return MessageId(found.ledgerId, found.entryId)

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


class _Connection:
    """To one broker. It connects when it is made, and is closed by a failure for good."""

    def __init__(self, servers: str, behind: str, access: Access, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._numbers = itertools.count(1)
        self._socket: socket.socket | None = connect(servers, timeout_s, access.tls)
        hello = CommandConnect(client_version=_CLIENT, protocol_version=_PROTOCOL_VERSION)
        if behind:
            hello.proxy_to_broker_url = behind
        if isinstance(access.login, Token):
            hello.auth_method_name = "token"
            hello.auth_data = access.login.token.encode()
        try:
            self.send(BaseCommand(type=BaseCommand.CONNECT, connect=hello))
            self._hear(BaseCommand.CONNECTED)
        except RefusedError as error:
            self.close()
            if error.code in _REFUSED_LOGINS:
                raise LoginError(f"{servers} does not let us in: {error}") from error
            raise
        except OSError:
            self.close()
            raise

    @property
    def is_closed(self) -> bool:
        return self._socket is None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def next_id(self) -> int:
        return next(self._numbers)

    def ask(self, command: BaseCommand) -> BaseCommand:
        """Send a request and return its answer; messages that come before it are dropped."""
        number = self.next_id()
        _, asked = command.ListFields()[-1]
        asked.request_id = number
        self.send(command)
        while True:
            answer = self._read(self._timeout_s).command
            said = answer.ListFields()[-1][1]
            if answer.type == BaseCommand.ERROR and said.request_id == number:
                error = RefusedError(answer.error.error, answer.error.message)
                if error.code in _LATER:
                    raise ConnectionError(str(error))
                raise error
            if answer.type == BaseCommand.CLOSE_CONSUMER:
                raise self._moved()
            if answer.type != BaseCommand.MESSAGE and getattr(said, "request_id", None) == number:
                return answer

    def receive(self, consumer_id: int, timeout_s: float) -> Frame:
        """Return the next message of a consumer."""
        while True:
            frame = self._read(timeout_s)
            command = frame.command
            if command.type == BaseCommand.MESSAGE and command.message.consumer_id == consumer_id:
                return frame
            if command.type == BaseCommand.CLOSE_CONSUMER:
                raise self._moved()

    def send(self, command: BaseCommand) -> None:
        if self._socket is None:
            raise ConnectionError("the broker closed the connection")
        try:
            self._socket.sendall(encode_command(command))
        except OSError:
            self.close()
            raise

    def _moved(self) -> ConnectionError:
        """Have all readers of this connection look for their topics anew."""
        self.close()
        return ConnectionError("the broker gave a topic to another one")

    def _hear(self, kind: BaseCommand.Type.ValueType) -> BaseCommand:
        command = self._read(self._timeout_s).command
        if command.type == BaseCommand.ERROR:
            raise RefusedError(command.error.error, command.error.message)
        if command.type != kind:
            raise ConnectionError("what answers does not speak Pulsar's protocol")
        return command

    def _read(self, timeout_s: float) -> Frame:
        """Return the next frame that is no ping; raises OSError."""
        if self._socket is None:
            raise ConnectionError("the broker closed the connection")
        try:
            while True:
                self._socket.settimeout(timeout_s)
                frame = parse_frame(_read_frame(self._socket))
                if frame.command.type != BaseCommand.PING:
                    return frame
                self.send(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))
        except PeerError as error:
            self.close()
            raise ConnectionError(f"the broker's answer: {error}") from error
        except OSError:
            self.close()
            raise


def _read_frame(connection: socket.socket) -> memoryview:
    head = bytearray(8)
    read_into(connection, memoryview(head))
    size = frame_size(memoryview(head), MESSAGE_BYTES)
    assert size is not None
    frame = memoryview(bytearray(size))
    frame[: len(head)] = head
    read_into(connection, frame[len(head) :])
    return frame
