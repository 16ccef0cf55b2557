"""Three small blocking clients, and the frames they send: what probes are, and attacks are made of.

They do as little as a client can, so that what is measured is the broker, and they never connect
again by themselves: a connection that fails is seen. A partition is always a topic's first.
"""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Protocol

from iggy_dialog import polled_batches, producer_batch
from penstock.clients.kafka.record_batch import Record, decode_batches, encode_batch
from penstock.iggy.wire import frame as iggy_frame
from penstock.iggy.wire import replies, requests
from penstock.iggy.wire.commands import COMMAND_OF, Command, Operation
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingKind,
    PollingStrategy,
)
from penstock.kafka.wire import api, decode_response, encode_request
from penstock.pulsar.wire import pulsar_api_pb2 as pulsar_api
from penstock.pulsar.wire.frames import Frame, parse_frame
from penstock.records.iggy.layout import FRAME_OFFSET_AT
from penstock.records.pulsar.metadata_pb2 import MessageMetadata, SingleMessageMetadata
from pulsar_peer import entry as pulsar_entry
from pulsar_peer import frame_of as pulsar_frame

TIMEOUT_SECONDS = 60
LATEST = -1
EARLIEST_ID = pulsar_api.MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
_READER = Consumer(ConsumerKind.CONSUMER, Identifier("wire-client"))
_OPERATION_OF = {command: operation for operation, command in COMMAND_OF.items()}

Read = list[tuple[int, bytes]]
"""Offsets and values."""


class RefusedError(Exception):
    """The broker answered with an error."""


class WireClient(Protocol):
    """One connection of one protocol, to one topic."""

    protocol: ClassVar[str]
    socket: socket.socket

    def ping(self) -> None:
        """Ask the cheapest thing that there is."""

    def produce(self, *values: bytes) -> int:
        """Write one batch, safely, and return its first offset. Raises RefusedError."""

    def read(self, offset: int) -> Read:
        """Return what there is from an offset on, or nothing yet. Raises RefusedError."""

    def close(self) -> None: ...


def connect(address: str, timeout: float = TIMEOUT_SECONDS) -> socket.socket:
    """Connect to `host:port`, with or without a scheme."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive_exactly(connection: socket.socket, size: int) -> bytearray:
    """Raises ConnectionError where the broker ends the connection."""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        count = connection.recv_into(view[at:])
        if not count:
            raise ConnectionError(f"the broker closed the connection after {at} of {size} bytes")
        at += count
    return data


# Kafka.


def kafka_request(name: str, version: int, correlation_id: int = 1, **fields: object) -> bytes:
    """One request's frame, its length in front."""
    request = api(name).request(**fields)
    return b"".join(
        bytes(p) for p in encode_request(api(name), version, correlation_id, "t", request)
    )


def kafka_fetch_fields(topic: str, offset: int, **options: Any) -> dict[str, object]:
    """The fields of a Fetch, which waits for nothing unless told to."""
    request = api("Fetch").request
    part_bytes = options.pop("partition_max_bytes", 1 << 20)
    part = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=part_bytes)
    fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 26, **options}
    return {**fields, "topics": [request.FetchTopic(topic=topic, partitions=[part])]}


def kafka_produce_fields(topic: str, batch: bytes | bytearray, acks: int = -1) -> dict[str, object]:
    request = api("Produce").request
    part = request.PartitionProduceData(index=0, records=batch)
    data = request.TopicProduceData(name=topic, partition_data=[part])
    return {"acks": acks, "timeout_ms": 30_000, "topic_data": [data]}


class KafkaWire:
    """Produces with acks=all; `isolation` and the like are options of a Fetch."""

    protocol: ClassVar[str] = "kafka"

    def __init__(self, address: str, topic: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.socket = connect(address, timeout)
        self.topic = topic
        self._correlation_ids = itertools.count(1)

    def ask(self, name: str, version: int, **fields: object) -> Any:
        number = next(self._correlation_ids)
        self.socket.sendall(kafka_request(name, version, number, **fields))
        size = receive_exactly(self.socket, 4)
        body = receive_exactly(self.socket, int.from_bytes(size))
        answered, response = decode_response(api(name), version, memoryview(size + body))
        assert answered == number
        return response

    def ping(self) -> None:
        self.ask("ApiVersions", 0)

    def create_topic(self, partitions: int = 1) -> None:
        request = api("CreateTopics").request
        topic = request.CreatableTopic(
            name=self.topic, num_partitions=partitions, replication_factor=-1
        )
        (result,) = self.ask("CreateTopics", 5, topics=[topic], timeout_ms=30_000).topics
        if result.error_code not in (0, 36):
            raise RefusedError(f"Kafka error {result.error_code}: {result.error_message}")

    def produce(self, *values: bytes) -> int:
        now_ms = time.time_ns() // 1_000_000
        batch = encode_batch([Record(value, timestamp_ms=now_ms) for value in values])
        (topic,) = self.ask("Produce", 9, **kafka_produce_fields(self.topic, batch)).responses
        (part,) = topic.partition_responses
        if part.error_code:
            raise RefusedError(f"Kafka error {part.error_code}")
        return int(part.base_offset)

    def end_offset(self) -> int:
        """Return the offset at which a reader finds nothing yet."""
        request = api("ListOffsets").request
        part = request.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        topic = request.ListOffsetsTopic(name=self.topic, partitions=[part])
        answer = self.ask("ListOffsets", 5, replica_id=-1, isolation_level=0, topics=[topic])
        return int(answer.topics[0].partitions[0].offset)

    def read(self, offset: int) -> Read:
        fetched = self.ask("Fetch", 11, **kafka_fetch_fields(self.topic, offset))
        part = fetched.responses[0].partitions[0]
        if part.error_code:
            raise RefusedError(f"Kafka error {part.error_code}")
        records = decode_batches(part.records or b"")
        return [(one.offset, one.value or b"") for one in records if one.offset >= offset]

    def close(self) -> None:
        self.socket.close()


# Pulsar.

PULSAR_CONNECT = pulsar_frame(
    pulsar_api.BaseCommand(
        type=pulsar_api.BaseCommand.CONNECT,
        connect=pulsar_api.CommandConnect(client_version="wire", protocol_version=20),
    )
)


def pulsar_request(name: str, body: bytes = b"", **fields: object) -> bytes:
    """One command's frame, by its name in the enumeration, as "SEND"."""
    command = pulsar_api.BaseCommand(type=pulsar_api.BaseCommand.Type.Value(name))
    said = getattr(command, _field_of(name))
    said.SetInParent()
    said.MergeFrom(type(said)(**fields))
    return pulsar_frame(command, body)


@cache
def _field_of(name: str) -> str:
    names = {"PARTITIONED_METADATA": "PARTITIONMETADATA", "LOOKUP": "LOOKUPTOPIC"}
    plain = names.get(name, name).replace("_", "")
    fields = pulsar_api.BaseCommand.DESCRIPTOR.fields
    (field,) = [each.name for each in fields if each.name.upper().replace("_", "") == plain]
    return field


def pulsar_values(entry: memoryview) -> list[bytes]:
    """The payloads of an entry that is not compressed."""
    at = 6 if entry[:2] == b"\x0e\x01" else 0
    size = int.from_bytes(entry[at : at + 4])
    metadata = MessageMetadata.FromString(bytes(entry[at + 4 : at + 4 + size]))
    payload = bytes(entry[at + 4 + size :])
    if not metadata.HasField("num_messages_in_batch"):
        return [payload]
    return list(_batched(payload, metadata.num_messages_in_batch))


def _batched(payload: bytes, count: int) -> Iterator[bytes]:
    at = 0
    for _ in range(count):
        end = at + 4 + int.from_bytes(payload[at : at + 4])
        single = SingleMessageMetadata.FromString(payload[at + 4 : end])
        at = end + single.payload_size
        yield payload[end:at]


class PulsarWire:
    """Produces unbatched or batched entries, and reads as a reader does: pushed from the start.

    `read` returns what came since the last call; its offset must go on where that ended.
    """

    protocol: ClassVar[str] = "pulsar"

    def __init__(self, address: str, topic: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.socket = connect(address, timeout)
        self.topic = f"{topic}-partition-0"
        self._produces = False
        self._reads_from: int | None = None
        self._pushed: list[Frame] = []
        self._sequence_ids = itertools.count()
        self.socket.sendall(PULSAR_CONNECT)
        self._heard("CONNECTED")

    def ping(self) -> None:
        self.socket.sendall(pulsar_request("PING"))
        self._heard("PONG")

    def produce(self, *values: bytes) -> int:
        if not self._produces:
            self.socket.sendall(
                pulsar_request("PRODUCER", topic=self.topic, producer_id=1, request_id=1)
            )
            self._heard("PRODUCER_SUCCESS")
            self._produces = True
        sent = {"producer_id": 1, "sequence_id": next(self._sequence_ids)}
        self.socket.sendall(
            pulsar_request("SEND", _entry(*values), num_messages=len(values), **sent)
        )
        receipt = self._heard("SEND_RECEIPT").command.send_receipt
        return int(receipt.message_id.entryId)

    def read(self, offset: int) -> Read:
        if self._reads_from is None:
            self._subscribe(offset)
        self.ping()  # What was pushed before its answer has come by then.
        found: Read = []
        for frame in self._pushed:
            base = frame.command.message.message_id.entryId
            values = pulsar_values(frame.entry)
            found += [(base + i, value) for i, value in enumerate(values) if base + i >= offset]
        if self._pushed:
            self.socket.sendall(
                pulsar_request("FLOW", consumer_id=1, messagePermits=max(1, len(found)))
            )
        self._pushed = []
        return found

    def ask(self, frame: bytes, answer: str) -> Any:
        """Send a command's frame and return the command of a kind that comes for it."""
        self.socket.sendall(frame)
        return self._heard(answer).command

    def _subscribe(self, offset: int) -> None:
        asked = {"topic": self.topic, "subscription": f"wire-{id(self)}", "consumer_id": 1}
        self.socket.sendall(
            pulsar_request(
                "SUBSCRIBE",
                **asked,
                subType=pulsar_api.CommandSubscribe.Exclusive,
                request_id=2,
                durable=False,
                start_message_id=EARLIEST_ID,
            )
        )
        self._heard("SUCCESS")
        self._reads_from = offset
        self.socket.sendall(pulsar_request("FLOW", consumer_id=1, messagePermits=1000))

    def _heard(self, name: str) -> Frame:
        """Return the next frame of a kind; messages are kept, and a PING is answered."""
        kind = pulsar_api.BaseCommand.Type.Value(name)
        while True:
            size = receive_exactly(self.socket, 4)
            frame = parse_frame(
                memoryview(size + receive_exactly(self.socket, int.from_bytes(size)))
            )
            if frame.command.type == kind:
                return frame
            self._handle(frame)

    def _handle(self, frame: Frame) -> None:
        command = frame.command
        if command.type == command.MESSAGE:
            self._pushed.append(frame)
        elif command.type == command.PING:
            self.socket.sendall(pulsar_request("PONG"))
        elif command.type == command.SEND_ERROR:
            raise RefusedError(f"Pulsar error: {command.send_error.message}")
        elif command.type == command.ERROR:
            raise RefusedError(f"Pulsar error: {command.error.message}")
        elif command.type in (command.CLOSE_PRODUCER, command.CLOSE_CONSUMER):
            raise ConnectionError("the broker closed the producer or the consumer")

    def close(self) -> None:
        self.socket.close()


def _entry(*values: bytes) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    if len(values) == 1:
        return pulsar_entry(values[0], publish_time=now_ms)
    singles = [SingleMessageMetadata(payload_size=len(value)) for value in values]
    encoded = [single.SerializeToString() for single in singles]
    parts = [len(e).to_bytes(4) + e + v for e, v in zip(encoded, values, strict=True)]
    return pulsar_entry(b"".join(parts), publish_time=now_ms, num_messages_in_batch=len(values))


# Iggy.


def iggy_request(command: Command, body: bytes = b"", number: int = 1) -> bytes:
    """One request's frame in the dialect of today's clients."""
    operation = _OPERATION_OF.get(command, Operation.NON_REPLICATED)
    header = iggy_frame.RequestHeader(
        b"wire-client-wire", bytes(16), 0, number, operation, 1, command
    )
    return b"".join(bytes(part) for part in iggy_frame.build_request(header, body))


def iggy_login(user: str = "iggy", password: str = "iggy") -> bytes:
    """The frame that has to come first."""
    login = requests.LoginRegister(0x2C00, "rust-sdk", "0.11.0", user, password, "")
    header = iggy_frame.RequestHeader(
        b"wire-client-wire", bytes(16), 0, 1, Operation.REGISTER, 1, Command.LOGIN_REGISTER
    )
    return b"".join(bytes(part) for part in iggy_frame.build_request(header, login.encode()))


def iggy_poll(stream: str, topic: str, offset: int, count: int) -> bytes:
    """The body of a poll."""
    strategy = PollingStrategy(PollingKind.OFFSET, offset)
    names = (Identifier(stream), Identifier(topic))
    return bytes(requests.PollMessages(_READER, *names, 0, strategy, count, False).encode())


class IggyWire:
    """A topic is in stream `default`."""

    protocol: ClassVar[str] = "iggy"

    def __init__(self, address: str, topic: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.socket = connect(address, timeout)
        self.topic = topic
        self._numbers = itertools.count(2)
        self.socket.sendall(iggy_login())
        self._reply()

    def ask(self, command: Command, body: bytes = b"") -> bytes:
        self.socket.sendall(iggy_request(command, body, next(self._numbers)))
        return self._reply()

    def _reply(self) -> bytes:
        head = receive_exactly(self.socket, iggy_frame.HEADER_SIZE)
        (size,) = struct.unpack_from("<I", head, 48)
        body = bytes(receive_exactly(self.socket, size - iggy_frame.HEADER_SIZE))
        if head[60] == iggy_frame.FrameKind.EVICTION:
            raise ConnectionError(f"the broker ended the session: {head[-1]}")
        reply = iggy_frame.parse_reply(head)
        if reply.status:
            raise RefusedError(f"Iggy error {reply.status}")
        return body

    def ping(self) -> None:
        self.ask(Command.PING)

    def produce(self, *values: bytes) -> int:
        names = (Identifier("default"), Identifier(self.topic))
        size = len("default") + len(self.topic) + 14
        batch = memoryview(producer_batch(*values))
        sent = requests.SendMessages(size, *names, Partitioning.partition(0), len(values), batch)
        body = self.ask(Command.SEND_MESSAGES, bytes(sent.encode()))
        (place,) = replies.Confirmations.decode(body).confirmations
        return place.base_offset

    def read(self, offset: int) -> Read:
        body = self.ask(Command.POLL_MESSAGES, iggy_poll("default", self.topic, offset, 1000))
        return iggy_messages(body)

    def close(self) -> None:
        self.socket.close()


def iggy_messages(body: bytes) -> Read:
    """What the answer to a poll holds."""
    _, batches = polled_batches(body)
    return [
        (
            header.base_offset + struct.unpack_from("<I", frame, FRAME_OFFSET_AT)[0],
            _iggy_payload(frame),
        )
        for header, frames in batches
        for frame in frames
    ]


def _iggy_payload(frame: bytes) -> bytes:
    headers_size, payload_size = struct.unpack_from("<II", frame, 32)
    del headers_size  # They follow the payload.
    return frame[48 : 48 + payload_size]


CLIENTS: dict[str, type[KafkaWire | PulsarWire | IggyWire]] = {
    "kafka": KafkaWire,
    "pulsar": PulsarWire,
    "iggy": IggyWire,
}
