"""Goal: Kafka's own MirrorMaker moves topics over from Apache Kafka: every record once, with key,
headers and time, the settings of topics, and how far groups have read.

Kafka and MirrorMaker come from Maven Central, through the ordinary Maven client.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from apache_kafka import ApacheKafka
from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS, wait_until
from versus.peers import maven
from versus.peers.kafka import JAVA, VERSION
from versus.peers.peer import NotAvailableError
from versus.processes import free_port

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ARTIFACTS = [f"org.apache.kafka:connect-mirror:{VERSION}", "org.slf4j:slf4j-simple:1.7.36"]
LIBRARIES = Path(__file__).parents[2] / "build" / "libraries"
TOPIC, COPY, GROUP = "orders", "old.orders", "billing"
RECORDS, COMMITTED = 20_000, 12_000
ONE_REPLICA = ["checkpoints.topic", "heartbeats.topic", "offset-syncs.topic"]
ONE_REPLICA += ["offset.storage", "status.storage", "config.storage"]
SETTINGS = {
    "clusters": "old, new",
    "old->new.enabled": "true",
    "old->new.topics": TOPIC,
    "old->new.groups": GROUP,
    "old->new.sync.group.offsets.enabled": "true",
    "exactly.once.source.support": "enabled",
    "dedicated.mode.enable.internal.rest": "true",
    "sync.topic.acls.enabled": "false",
    "offset.lag.max": "0",
    "replication.factor": "1",
    "refresh.topics.interval.seconds": "2",
    "refresh.groups.interval.seconds": "2",
    "sync.topic.configs.interval.seconds": "2",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    **{f"{each}.replication.factor": "1" for each in ONE_REPLICA},
}


class Record(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    time_ms: int


@contextmanager
def mirrored(old: str, new: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    try:
        libraries = maven.class_path(maven.fetch(LIBRARIES, "mirror-maker", ARTIFACTS))
    except NotAvailableError as error:
        pytest.skip(str(error))
    settings = SETTINGS | {
        "old.bootstrap.servers": old,
        "new.bootstrap.servers": new,
        "listeners": f"http://127.0.0.1:{free_port()}",
    }
    file = folder / "mirror.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    program = "org.apache.kafka.connect.mirror.MirrorMaker"
    command = [JAVA[0], "-Xmx512m", "-cp", libraries, program, str(file)]
    with (folder / "mirror.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def fill(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topic = NewTopic(TOPIC, 3, 1, config={"retention.ms": "86400000", "cleanup.policy": "compact"})
    admin.create_topics([topic])[TOPIC].result()
    producer = Producer({"bootstrap.servers": address, "compression.type": "zstd"})
    for number in range(RECORDS):
        value = None if number % 100 == 0 else f"value {number}"
        headers = {"number": str(number)}
        producer.produce(TOPIC, key=str(number), value=value, headers=headers, timestamp=1 + number)
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def read(address: str, topic: str, group: str, least: int) -> list[Record]:
    """Read at least so many records, and say so to the group."""
    options = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    options |= {"isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": address, **options})
    consumer.subscribe([topic])
    records: list[Record] = []

    def enough() -> bool:
        records.extend(map(_record, consumer.consume(1_000, 0.5)))
        return len(records) >= least

    wait_until(enough)
    consumer.commit(asynchronous=False)
    records.extend(map(_record, consumer.consume(1_000, 1)))
    consumer.close()
    return records


def _record(message: Message) -> Record:
    assert message.error() is None
    headers = tuple(message.headers() or ())
    partition, time_ms = message.partition(), message.timestamp()[1]
    return Record(partition or 0, message.key(), message.value(), headers, time_ms)


def committed(address: str, topic: str) -> dict[int, int]:
    asked = [ConsumerGroupTopicPartitions(GROUP)]
    admin = AdminClient({"bootstrap.servers": address})
    found = admin.list_consumer_group_offsets(asked)[GROUP].result().topic_partitions
    return {each.partition: each.offset for each in found if each.topic == topic}


def test_mirror_maker_moves_topics_and_groups_over(server: BrokerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "apache"
    folder.mkdir()
    with ApacheKafka(folder) as old:
        fill(old.kafka)
        read(old.kafka, TOPIC, GROUP, COMMITTED)
        with mirrored(old.kafka, server.kafka, folder) as mirror:
            admin = AdminClient({"bootstrap.servers": server.kafka})
            wait_until(lambda: COPY in admin.list_topics().topics)
            copies = read(server.kafka, COPY, "check", RECORDS)
            before = committed(old.kafka, TOPIC)
            wait_until(lambda: committed(server.kafka, COPY).keys() == before.keys())
            assert mirror.poll() is None
        originals = read(old.kafka, TOPIC, "check", RECORDS)
        assert Counter(copies) == Counter(originals)
        after = committed(server.kafka, COPY)
        assert all(0 < after[each] <= before[each] for each in before)
        resource = ConfigResource(ResourceType.TOPIC, COPY)
        settings = admin.describe_configs([resource])[resource].result()
        assert settings["cleanup.policy"].value == "compact"
        assert settings["retention.ms"].value == "86400000"
