"""The three real clients over one topic: each writes records, and each reads what was written.

A reader goes on where it stopped, so every call returns records that no call returned before.
"""

from __future__ import annotations

import asyncio
import base64
from typing import NamedTuple, Protocol

import apache_iggy
import confluent_kafka
import pulsar
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS

READ_SECONDS = PATIENCE_SECONDS
STREAM = "default"
KEY = apache_iggy.HeaderKey.String("penstock.key")
CODECS = [
    pulsar.CompressionType.NONE,
    pulsar.CompressionType.LZ4,
    pulsar.CompressionType.ZLib,
    pulsar.CompressionType.ZSTD,
    pulsar.CompressionType.SNAPPY,
]


class Message(NamedTuple):
    """What every protocol can say, and what a reader saw.

    The time is milliseconds since 1970; a writer that gives none leaves it to the client.
    """

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    time_ms: int | None = None

    def own_headers(self) -> dict[str, list[bytes | None]]:
        """The headers that the writer gave, each name's values in order."""
        named: dict[str, list[bytes | None]] = {}
        for name, value in self.headers:
            if not name.startswith("penstock."):
                named.setdefault(name, []).append(value)
        return named

    def said(self, name: str) -> bytes | None:
        """The value of one of Penstock's own headers."""
        return next((value for other, value in self.headers if other == name), None)


class Client(Protocol):
    """One protocol's real client."""

    def write(self, messages: list[Message]) -> None:
        """Return when the broker has confirmed all."""

    def read(self, count: int) -> list[Message]:
        """Return the next messages."""

    def close(self) -> None:
        """End the connections."""


def create_topic(broker: BrokerProcess, topic: str) -> None:
    """Create a topic of one partition."""
    admin = AdminClient({"bootstrap.servers": broker.kafka})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(READ_SECONDS)


class KafkaClient:
    """confluent-kafka; the codec is one that librdkafka knows."""

    def __init__(self, broker: BrokerProcess, topic: str, codec: str = "none") -> None:
        self._topic = topic
        servers = {"bootstrap.servers": broker.kafka}
        self._producer = confluent_kafka.Producer(
            {**servers, "linger.ms": 5, "compression.type": codec}
        )
        self._consumer = confluent_kafka.Consumer(
            {**servers, "group.id": "interop", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
        )
        self._consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])

    def write(self, messages: list[Message]) -> None:
        errors: list[object] = []
        for message in messages:
            self._producer.produce(
                self._topic,
                message.value,
                message.key,
                headers=list(message.headers),
                on_delivery=lambda error, _: errors.append(error),
                **({} if message.time_ms is None else {"timestamp": message.time_ms}),
            )
        assert self._producer.flush(READ_SECONDS) == 0
        assert set(errors) == {None}, errors

    def read(self, count: int) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < count:
            found = self._consumer.poll(READ_SECONDS)
            assert found is not None, f"Kafka: {len(messages)} of {count} messages came"
            assert found.error() is None, found.error()
            headers = tuple(found.headers() or ())
            time_ms = found.timestamp()[1]
            messages.append(Message(found.value(), found.key(), headers, time_ms))
        return messages

    def close(self) -> None:
        self._consumer.close()


class PulsarClient:
    """pulsar-client; writes go out in batches unless told otherwise."""

    def __init__(
        self,
        broker: BrokerProcess,
        topic: str,
        codec: pulsar.CompressionType = pulsar.CompressionType.NONE,
        *,
        batching: bool = True,
        chunking: bool = False,
    ) -> None:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self._client = pulsar.Client(broker.pulsar, logger=logger)
        # A Kafka client made the topic, so it has partitions, and this is its only one.
        topic = f"persistent://public/default/{topic}-partition-0"
        self._producer = self._client.create_producer(
            topic,
            compression_type=codec,
            batching_enabled=batching,
            batching_max_publish_delay_ms=5,
            chunking_enabled=chunking,
        )
        self._reader = self._client.create_reader(topic, pulsar.MessageId.earliest)

    def write(self, messages: list[Message]) -> None:
        results: list[pulsar.Result] = []
        for message in messages:
            properties = {name: (value or b"").decode() for name, value in message.headers}
            self._producer.send_async(
                message.value,
                lambda result, _id: results.append(result),
                properties=properties,
                partition_key=None if message.key is None else message.key.decode(),
                event_timestamp=message.time_ms,
            )
        self._producer.flush()
        assert set(results) <= {pulsar.Result.Ok}, results

    def read(self, count: int) -> list[Message]:
        messages: list[Message] = []
        while len(messages) < count:
            found = self._reader.read_next(READ_SECONDS * 1000)
            headers = tuple((name, text.encode()) for name, text in found.properties().items())
            time_ms = found.event_timestamp() or found.publish_timestamp()
            key = found.partition_key().encode()
            messages.append(Message(found.data(), key, headers, time_ms))
        return messages

    def close(self) -> None:
        self._client.close()


class IggyClient:
    """apache-iggy; its key is the header that Penstock documents."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self._topic = topic
        self._offset = 0
        self._loop = asyncio.new_event_loop()
        self._client = self._loop.run_until_complete(_connect(broker.iggy))

    def write(self, messages: list[Message]) -> None:
        batch = [
            apache_iggy.SendMessage(message.value, _user_headers(message)) for message in messages
        ]
        partition = apache_iggy.Partitioning.partition_id(0)
        self._loop.run_until_complete(self._send(partition, batch))

    def read(self, count: int) -> list[Message]:
        messages = self._loop.run_until_complete(asyncio.wait_for(self._poll(count), READ_SECONDS))
        self._offset += count
        return messages

    def close(self) -> None:
        self._loop.close()

    async def _send(self, partition: object, batch: list[apache_iggy.SendMessage]) -> None:
        await self._client.send_messages(STREAM, self._topic, partition, batch)

    async def _poll(self, count: int) -> list[Message]:
        found: list[apache_iggy.ReceiveMessage] = []
        while len(found) < count:
            strategy = apache_iggy.PollingStrategy.Offset(self._offset + len(found))
            found += await self._client.poll_messages(
                STREAM,
                self._topic,
                consumer=apache_iggy.Consumer.Single("interop"),
                polling_strategy=strategy,
                count=count - len(found),
                auto_commit=False,
                partition_id=0,
            )
        return [_seen(message) for message in found]


async def _connect(address: str) -> apache_iggy.IggyClient:
    client = apache_iggy.IggyClient(address)
    await client.connect()
    await client.login_user("iggy", "iggy")
    return client


def _user_headers(message: Message) -> dict[object, object]:
    headers: dict[object, object] = {
        apache_iggy.HeaderKey.String(name): apache_iggy.HeaderValue.Raw(value)
        for name, value in message.headers
    }
    if message.key is not None:
        headers[KEY] = apache_iggy.HeaderValue.Raw(message.key)
    return headers


def _seen(message: apache_iggy.ReceiveMessage) -> Message:
    headers = dict(message.user_headers() or {})
    key = headers.pop(KEY, None)
    named = tuple((name.value, _content(value)) for name, value in headers.items())
    time_ms = message.origin_timestamp() // 1000
    return Message(message.payload(), None if key is None else key.value, named, time_ms)


def _content(value: object) -> bytes:
    content = value.value  # type: ignore[attr-defined]  # every kind has one
    if isinstance(content, bool):
        return bytes([content])
    return content.encode() if isinstance(content, str) else content


def shown_by_pulsar(key: bytes | None) -> bytes:
    """The key as Pulsar's Python client shows it: as text, and base64 where it is none."""
    if key is None:
        return b""
    try:
        key.decode()
    except UnicodeDecodeError:
        return base64.b64encode(key)
    return key
