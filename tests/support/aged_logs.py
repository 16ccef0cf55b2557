"""Topics of small segments, with messages of ages that the test gives them as of its own now."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.topic import Topic
from penstock.log import LogConfig
from penstock.log.header import Magic, build_header

NAME = TopicName("public", "default", "t")
NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000))
"""A segment is two batches of `SIZE` bytes."""
SIZE = 500
SEGMENT = 2 * SIZE
DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000


async def made(broker: Broker, partitions: int = 1, **config: object) -> Topic:
    broker.retention.now_ms = lambda: NOW_MS
    texts = {name: str(value) for name, value in config.items()}
    return await broker.topics.create(NAME, partitions, config=texts)


async def append(partition: Partition, ages_ms: Iterable[int]) -> None:
    """Append a batch of one message of each age, as of `NOW_MS`."""
    body = bytes(SIZE - 61)
    for age_ms in ages_ms:
        time_ms = NOW_MS - age_ms
        header = build_header(
            Magic.PULSAR, body, record_count=1, base_timestamp=time_ms, max_timestamp=time_ms
        )
        partition.append([header, body])
    await partition.flushed()


def days(*ages: float) -> list[int]:
    return [int(age * DAY_MS) for age in ages]


async def configure(broker: Broker, topic: Topic, **config: object) -> None:
    texts = {name: str(value) for name, value in config.items()}
    await broker.topics.configure(topic, lambda _: texts)
