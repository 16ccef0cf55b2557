"""What tests do with topics, in the broker itself: on its event loop, and past all faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import wall_clock
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.clients.kafka import record_batch
from penstock.clients.kafka.partitioner import partition_of
from penstock.log.header import Magic, walk
from penstock.testing.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker.broker import Broker
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic

_READ_BYTES: Final = 1 << 20
_OURS: Final = "penstock."
"""Headers that conversions add for what Kafka can't say (docs/interop.md): no test wrote them."""


class Stored(NamedTuple):
    """Whole batches of a partition, in Kafka's encoding, of which the first ones may be known."""

    partition: int
    offset: int
    batches: list[bytes]

    def records(self) -> Iterator[Record]:
        """Yield the records from `offset` on."""
        for batch in self.batches:
            for found in record_batch.decode_batches(batch):
                if found.offset >= self.offset:
                    place = (self.partition, found.offset, found.timestamp_ms)
                    headers = tuple(
                        header for header in found.headers if not header[0].startswith(_OURS)
                    )
                    yield Record(*place, found.key, found.value, headers)


class TopicReader:
    """Reads a topic once, each time as far as it goes; it need not be there yet."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker = broker
        self._name = name
        self._topic: Topic | None = None
        self._positions: dict[int, int] = {}

    async def new(self) -> list[Stored]:
        """Return what came since the last call. Raises LogError."""
        topic = find(self._broker, self._name)
        if topic is not self._topic:
            self._topic = topic
            self._positions.clear()
        return [await self._new(each) for each in (topic.partitions if topic else ())]

    async def _new(self, partition: Partition) -> Stored:
        await partition.opened()
        offset = self._positions.get(partition.id, partition.start_offset)
        stored = Stored(partition.index, offset, [])
        while offset < partition.readable_end():
            batches = [
                bytes(batch) for batch in await partition.read(offset, _READ_BYTES, Magic.KAFKA)
            ]
            stored.batches.extend(batches)
            ends = [header.next_offset for batch in batches for _, header in walk(batch)]
            if not ends:
                break
            offset = ends[-1]
        self._positions[partition.id] = offset
        return stored


def find(broker: Broker, name: str) -> Topic | None:
    """Return the topic that has this name in one of the protocols."""
    return broker.topics.by_kafka_name(name) or broker.topics.get(full_name(name))


def full_name(name: str) -> TopicName:
    """Read `orders`, `stream/orders`, or `tenant/namespace/orders` with or without Pulsar's scheme.

    Raises InvalidTopicNameError.
    """
    if "://" not in name and name.count("/") == 1:
        return TopicName.from_iggy(*name.split("/"))
    return TopicName.from_pulsar(name) if "/" in name else TopicName.from_kafka(name)


async def create(broker: Broker, name: str, partitions: int | None) -> None:
    """Create a topic. Raises BrokerError."""
    count = broker.settings.default_partitions if partitions is None else partitions
    await broker.topics.create(full_name(name), count)


async def delete(broker: Broker, name: str) -> None:
    """Delete a topic, if it is there."""
    topic = find(broker, name)
    if topic is not None:
        await broker.topics.delete(topic)


async def delete_namespace(broker: Broker, name: str) -> None:
    """Delete a namespace of the default tenant with its topics, if it is there."""
    namespace = NamespaceName.from_iggy(name)
    if broker.namespaces.get(namespace) is not None:
        await broker.topics.delete_namespace(namespace)


async def names(broker: Broker) -> list[str]:
    """Return the Kafka names of all topics, in order."""
    return sorted(topic.name.kafka for topic in broker.topics.all())


async def produce(
    broker: Broker, name: str, record: record_batch.Record, index: int | None
) -> Record:
    """Write one record, to a topic that is made where it is missing. Raises BrokerError, LogError.

    Without an index its key chooses the partition, as Kafka's clients have it, or else the first.
    """
    topic = find(broker, name) or await broker.topics.get_or_create(full_name(name))
    if index is None:
        index = 0 if record.key is None else partition_of(record.key, len(topic.partitions))
    partition = topic.partition(index)
    await partition.opened()
    stamped = record._replace(timestamp_ms=record.timestamp_ms or wall_clock.now_ms())
    offset = partition.append([record_batch.encode_batch([stamped])])
    await partition.durable(offset)
    headers = tuple(record.headers)
    return Record(index, offset, stamped.timestamp_ms, record.key, record.value, headers)
