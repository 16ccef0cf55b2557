"""Compacted topics: how a test has one compacted, and what fresh real clients then read of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apache_iggy
import confluent_kafka
import pulsar

from broker_process import BrokerProcess
from interop_clients import KEY, STREAM
from patience import PATIENCE_SECONDS
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.source import options
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.tasks import read_task

REQUESTED = "penstock.compaction.requested.ms"


class Read(NamedTuple):
    """A message as a reader finds it; no value is None or, where a protocol can't say it, empty."""

    offset: int
    key: bytes
    value: bytes | None


Reader = Callable[[BrokerProcess, str], list[Read]]


def compact(broker: BrokerProcess, topic: str, **settings: str) -> None:
    """Return when all that is there is compacted; settings are Kafka's, with `_` for dots."""
    line = f"{topic}-0: compacted up to"
    before = broker.log.count(line)
    changes = {name.replace("_", "."): value for name, value in settings.items()}
    with KafkaClient(broker.kafka) as client:
        requested = str(time.time_ns() // 1_000_000)
        client.alter_topic_config(
            topic, {"cleanup.policy": "compact", REQUESTED: requested, **changes}
        )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while broker.log.count(line) == before:
        assert time.monotonic() < deadline, f"it is compacted:\n{broker.log[-2_000:]}"
        time.sleep(0.02)


def read_by_kafka(
    broker: BrokerProcess, topic: str, isolation: str = "read_uncommitted"
) -> list[Read]:
    """Read from offset 0 to the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.kafka,
            "group.id": "compacted",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[Read] = []
    while True:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, f"the end is reached over gaps, after {found}"
        if message.error() is not None:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            consumer.close()
            return found
        found.append(Read(message.offset(), message.key(), message.value()))


@contextmanager
def pulsar_client(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(broker.pulsar, logger=logger)
    yield client
    client.close()


def of_pulsar(topic: str) -> str:
    """Return what Pulsar calls the only partition of a topic."""
    return f"persistent://public/default/{topic}-partition-0"


def _read_of_pulsar(message: pulsar.Message) -> Read:
    place = message.message_id()
    offset = place.entry_id() + max(place.batch_index(), 0)
    return Read(offset, message.partition_key().encode(), message.data())


def read_by_pulsar(broker: BrokerProcess, topic: str, *, compacted: bool = False) -> list[Read]:
    """Read from the earliest message to the last one."""
    with pulsar_client(broker) as client:
        reader = client.create_reader(
            of_pulsar(topic), pulsar.MessageId.earliest, is_read_compacted=compacted
        )
        found = []
        while reader.has_message_available():
            found.append(_read_of_pulsar(reader.read_next(PATIENCE_SECONDS * 1000)))
    return found


def read_compacted(broker: BrokerProcess, topic: str) -> list[Read]:
    return read_by_pulsar(broker, topic, compacted=True)


def consume_by_pulsar(
    broker: BrokerProcess, topic: str, subscription: str, last_offset: int
) -> list[Read]:
    """Receive up to an offset in a shared subscription, and acknowledge one after another."""
    found: list[Read] = []
    with pulsar_client(broker) as client:
        consumer = client.subscribe(
            of_pulsar(topic),
            subscription,
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
        )
        while not found or found[-1].offset < last_offset:
            message = consumer.receive(PATIENCE_SECONDS * 1000)
            consumer.acknowledge(message)
            found.append(_read_of_pulsar(message))
    return found


def table_of_pulsar(broker: BrokerProcess, topic: str) -> dict[bytes, bytes]:
    """Return what a table view has of a topic."""
    table: dict[str, bytes] = {}
    with pulsar_client(broker) as client:
        view = client.create_table_view(of_pulsar(topic))
        view.for_each(table.__setitem__)
        view.close()
    return {key.encode(): value for key, value in table.items()}


def read_by_iggy(broker: BrokerProcess, topic: str) -> list[Read]:
    """Poll from offset 0 until nothing comes."""
    return asyncio.run(asyncio.wait_for(_polled(broker.iggy, topic), PATIENCE_SECONDS))


async def _polled(address: str, topic: str) -> list[Read]:
    client = apache_iggy.IggyClient(address)
    await client.connect()
    await client.login_user("iggy", "iggy")
    found: list[Read] = []
    while True:
        polled = await client.poll_messages(
            STREAM,
            topic,
            consumer=apache_iggy.Consumer.Single("compacted"),
            polling_strategy=apache_iggy.PollingStrategy.Offset(
                found[-1].offset + 1 if found else 0
            ),
            count=7,
            auto_commit=False,
            partition_id=0,
        )
        if not polled:
            return found
        for message in polled:
            key = (message.user_headers() or {})[KEY].value
            found.append(Read(message.offset(), key, message.payload()))


def read_by_spark(broker: BrokerProcess, topic: str, mode: str) -> list[Read]:
    """Read as Spark's tasks do, `log` or `wire`."""
    given = {
        "penstock.bootstrap.servers": broker.kafka,
        "subscribe": topic,
        "readMode": mode,
    }
    parsed = options.parse(given, streaming=False)
    with KafkaCluster(parsed) as cluster:
        planner = Planner(parsed, cluster)
        tasks = planner.tasks(planner.starting(), planner.ending())
        batches = [batch for task in tasks for batch in read_task(task, parsed)]
    columns = ("offset", "key", "value")
    return [
        Read(*row)
        for batch in batches
        for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    ]
