"""Topics that the tests of the pipeline fill and read."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from confluent_kafka import Producer

from patience import PATIENCE_SECONDS
from penstock.clients.kafka.client import EARLIEST, LATEST, KafkaClient
from penstock.clients.kafka.committed import CommittedBatches
from penstock.clients.kafka.record_batch import StoredRecord, decode_batches

Record = tuple[bytes | None, bytes | None]


def create(address: str, partitions: int = 1) -> str:
    """Create a topic of a name that no other test uses."""
    name = f"spark-{uuid.uuid4().hex[:8]}"
    with KafkaClient(address) as client:
        client.create_topic(name, partitions)
    return name


def fill(
    address: str,
    topic: str,
    records: Sequence[Record],
    *,
    partition: int = 0,
    headers: Sequence[tuple[str, bytes | None]] | None = None,
    **config: str | int,
) -> None:
    """Write records with Kafka's client, durably."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, **config})
    failures: list[str] = []
    for key, value in records:
        producer.produce(
            topic,
            value,
            key,
            partition=partition,
            headers=list(headers) if headers else None,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert not failures


def numbered(first: int, last: int) -> list[Record]:
    return [(f"k{number}".encode(), f"v{number}".encode()) for number in range(first, last)]


def committed(address: str, topic: str, partition: int = 0) -> list[StoredRecord]:
    """Read all that a Kafka client sees that reads what is committed."""
    place = (topic, partition)
    with KafkaClient(address) as client:
        batches = CommittedBatches(lambda offset: client.fetch(*place, offset, committed=True))
        start, end = (
            client.list_offsets({place: at}, committed=True)[place] or 0
            for at in (EARLIEST, LATEST)
        )
        runs = client.fetch_below(*place, start, end)
        found = [
            each for run in runs for kept in batches.keep(run) for each in decode_batches(kept)
        ]
    return [each for each in found if each.offset < end]
