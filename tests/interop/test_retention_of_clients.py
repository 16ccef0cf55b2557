"""Goal: each protocol's own client sees what its settings say is to go, and what is to stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import apache_iggy
import confluent_kafka
import pulsar
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS, wait_until

MIB = 1 << 20
LARGE = bytes(600_000)
"""Of these one fills a segment."""


@pytest.fixture
def server(start_server: Callable[..., BrokerProcess]) -> BrokerProcess:
    return start_server("--retention-check-ms", "100", "--segment-bytes", "1MiB")


@pytest.fixture
def client(server: BrokerProcess) -> Iterator[pulsar.Client]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(server.pulsar, logger=logger)
    yield client
    client.shutdown()


def alter(server: BrokerProcess, topic: str, **settings: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource("TOPIC", topic, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": server.kafka})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)


def produce(server: BrokerProcess, topic: str, *ages_seconds: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.kafka, "linger.ms": 0})
    for age in ages_seconds:
        stamp = int((time.time() - age) * 1000)
        producer.produce(topic, LARGE, timestamp=stamp, partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0


def beginning(server: BrokerProcess, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.kafka, "group.id": "any"})
    place = confluent_kafka.TopicPartition(topic, 0)
    first, _ = consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS)
    consumer.close()
    return int(first)


def test_kafka_sees_the_beginning_move(server: BrokerProcess) -> None:
    produce(server, "by-age", 9_000, 8_000, 100, 100)
    produce(server, "by-size", *[0] * 6)
    alter(server, "by-age", retention_ms="3600000")
    alter(server, "by-size", retention_bytes=str(2 * MIB))
    wait_until(lambda: beginning(server, "by-age") == 2)
    wait_until(lambda: beginning(server, "by-size") == 2)
    server.kill9()
    server.start()
    # It is seen a moment before it is durable.
    wait_until(lambda: (beginning(server, "by-age"), beginning(server, "by-size")) == (2, 2))


async def test_iggy_sees_messages_expire_and_topics_stay_small(server: BrokerProcess) -> None:
    client = apache_iggy.IggyClient(server.iggy)
    await client.connect()
    await client.login_user("iggy", "iggy")
    await client.create_stream("s")
    options = {"segment_size": "1 MiB", "message_expiry": "1 s"}
    await client.create_topic("s", "expiring", 1, options=options)
    options = {"segment_size": "1 MiB", "max_topic_size": "2 MiB"}
    await client.create_topic("s", "small", 2, options=options)
    message = apache_iggy.SendMessage
    for number in range(10):
        for topic, partition in (("expiring", 0), ("small", number % 2)):
            batch = [message("x" * 600_000)]
            await client.send_messages(
                "s", topic, apache_iggy.Partitioning.partition_id(partition), batch
            )

    async def size(name: str) -> int:
        found = await client.get_topic("s", name)
        assert found is not None
        return int(found.size)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while await size("expiring") or await size("small") > 2 * MIB:
        assert time.monotonic() < deadline
    assert await size("small") > MIB


def test_pulsar_keeps_what_is_not_acknowledged(
    server: BrokerProcess, client: pulsar.Client
) -> None:
    consumer = client.subscribe("kept", "s")
    for topic in ("kept", "free"):
        producer = client.create_producer(topic)
        for _ in range(3):
            producer.send(LARGE)
        alter(server, topic, retention_ms="0")
    wait_until(lambda: beginning(server, "free") == 3)
    assert beginning(server, "kept") == 0
    for _ in range(3):
        consumer.acknowledge(consumer.receive(PATIENCE_SECONDS * 1000))
    wait_until(lambda: beginning(server, "kept") == 3)


def test_what_is_too_old_reaches_no_pulsar_consumer(
    server: BrokerProcess, client: pulsar.Client
) -> None:
    client.subscribe("expiring", "s").close()
    producer = client.create_producer("expiring")
    for _ in range(3):
        producer.send(b"old", event_timestamp=2_000_000_000_000)
    alter(server, "expiring", penstock_message_ttl_ms="0")
    wait_until(lambda: "3 messages of subscription s are acknowledged" in server.log)
    alter(server, "expiring", penstock_message_ttl_ms="-1")
    producer.send(b"new")
    assert client.subscribe("expiring", "s").receive(PATIENCE_SECONDS * 1000).data() == b"new"


def test_pulsar_producers_wait_for_who_is_behind(
    server: BrokerProcess, client: pulsar.Client
) -> None:
    consumer = client.subscribe("quota", "s")
    producer = client.create_producer("quota", send_timeout_millis=0)
    for _ in range(3):
        producer.send(bytes(1_000))
    alter(server, "quota", penstock_backlog_quota_bytes="1000")
    wait_until(lambda: not producer.is_connected())
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededError):
        client.create_producer("quota")
    alter(server, "quota", penstock_backlog_quota_policy="producer_exception")
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
        client.create_producer("quota")
    alter(server, "quota", penstock_backlog_quota_policy="producer_request_hold")
    for _ in range(3):
        consumer.acknowledge(consumer.receive(PATIENCE_SECONDS * 1000))
    wait_until(producer.is_connected)
    producer.send(b"again")
    assert consumer.receive(PATIENCE_SECONDS * 1000).data() == b"again"


def test_the_oldest_messages_go_where_the_quota_evicts(
    server: BrokerProcess, client: pulsar.Client
) -> None:
    client.subscribe("evicted", "s").close()
    producer = client.create_producer("evicted")
    for number in range(5):
        producer.send(b"%d" % number + bytes(1_000))
    policy = "consumer_backlog_eviction"
    alter(
        server,
        "evicted",
        penstock_backlog_quota_policy=policy,
        penstock_backlog_quota_bytes="3000",
    )
    wait_until(lambda: "the oldest messages count as acknowledged" in server.log)
    first = client.subscribe("evicted", "s").receive(PATIENCE_SECONDS * 1000)
    assert first.data()[:1] in {b"3", b"4"}
