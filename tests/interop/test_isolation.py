"""What a transaction of a Kafka producer shows to the real clients of all three."""

from __future__ import annotations

import asyncio

import apache_iggy
import confluent_kafka
import pulsar

from broker_process import BrokerProcess
from interop_clients import STREAM, create_topic
from patience import PATIENCE_SECONDS

COMMITTED = [b"before", b"committed 1", b"committed 2", b"after"]


def write_history(servers: str, topic: str) -> confluent_kafka.Producer:
    """Write what is committed and what is aborted, and leave a transaction open behind it."""
    plain = confluent_kafka.Producer({"bootstrap.servers": servers})
    first, second = (
        confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}{n}"})
        for n in range(2)
    )
    for producer in (first, second):
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()

    def write(producer: confluent_kafka.Producer, value: bytes) -> None:
        producer.produce(topic, value, partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0

    write(plain, b"before")
    write(first, b"aborted 1")
    write(second, b"committed 1")
    write(first, b"aborted 2")
    write(second, b"committed 2")
    second.commit_transaction(PATIENCE_SECONDS)
    first.abort_transaction(PATIENCE_SECONDS)
    write(plain, b"after")
    first.begin_transaction()
    write(first, b"open")
    return first


def seen_by_kafka(servers: str, topic: str, isolation: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "isolation",
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = consumer.consume(count, PATIENCE_SECONDS)
    _, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0))
    assert high
    consumer.close()
    return [message.value() for message in found]


def seen_by_pulsar(address: str, topic: str) -> list[bytes]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(address, logger=logger)
    name = f"persistent://public/default/{topic}-partition-0"
    reader = client.create_reader(name, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(PATIENCE_SECONDS * 1000).data())
    consumer = client.subscribe(name, "isolation", initial_position=pulsar.InitialPosition.Earliest)
    received = [consumer.receive(PATIENCE_SECONDS * 1000).data() for _ in found]
    client.close()
    assert received == found
    return found


async def seen_by_iggy(address: str, topic: str) -> list[bytes]:
    client = apache_iggy.IggyClient(address)
    await client.connect()
    await client.login_user("iggy", "iggy")
    polled = await client.poll_messages(
        STREAM,
        topic,
        consumer=apache_iggy.Consumer.Single("isolation"),
        polling_strategy=apache_iggy.PollingStrategy.Offset(0),
        count=100,
        auto_commit=False,
        partition_id=0,
    )
    return [message.payload() for message in polled]


def test_nobody_who_reads_what_is_committed_sees_the_rest(shared_server: BrokerProcess) -> None:
    topic = "isolation"
    create_topic(shared_server, topic)
    still_open = write_history(shared_server.kafka, topic)
    kafka = shared_server.kafka
    assert seen_by_kafka(kafka, topic, "read_committed", len(COMMITTED)) == COMMITTED
    everything = seen_by_kafka(kafka, topic, "read_uncommitted", 7)
    assert everything[-1] == b"open"
    assert set(COMMITTED) < set(everything)
    assert seen_by_pulsar(shared_server.pulsar, topic) == COMMITTED
    assert asyncio.run(seen_by_iggy(shared_server.iggy, topic)) == COMMITTED
    still_open.commit_transaction(PATIENCE_SECONDS)
    assert seen_by_kafka(kafka, topic, "read_committed", 5) == [*COMMITTED, b"open"]
    assert seen_by_pulsar(shared_server.pulsar, topic) == [*COMMITTED, b"open"]
    assert asyncio.run(seen_by_iggy(shared_server.iggy, topic)) == [*COMMITTED, b"open"]
