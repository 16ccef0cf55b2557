"""Goal: transactional producers of real clients work unchanged, and consumers of theirs see what is
committed and nothing else. Method: a broker as users run it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS

VALUES = [b"value-%d" % number for number in range(20)]


def create(server: BrokerProcess, *topics: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    for made in admin.create_topics([NewTopic(each, partitions) for each in topics]).values():
        made.result(PATIENCE_SECONDS)


def read(server: BrokerProcess, topic: str, isolation: str) -> list[bytes]:
    """Everything that there is, in the order of its values."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.kafka,
            "group.id": f"{topic}-{isolation}",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in (0, 1)])
    values: list[bytes] = []
    ended = 0
    while ended < 2:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        if message.error() is None:
            values.append(message.value())
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    return sorted(values)


def with_confluent(server: BrokerProcess, topic: str) -> None:
    producer = Producer({"bootstrap.servers": server.kafka, "transactional.id": topic})
    producer.init_transactions(PATIENCE_SECONDS)
    for committed in (True, False):
        producer.begin_transaction()
        for number, value in enumerate(VALUES):
            producer.produce(topic, value if committed else b"aborted", partition=number % 2)
        producer.flush(PATIENCE_SECONDS)
        if committed:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)


def with_kafka_python(server: BrokerProcess, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=server.kafka, transactional_id=topic)
    producer.init_transactions()
    for committed in (True, False):
        producer.begin_transaction()
        for number, value in enumerate(VALUES):
            sent = producer.send(topic, value if committed else b"aborted", partition=number % 2)
            sent.get(PATIENCE_SECONDS)
        if committed:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()


def with_aiokafka(server: BrokerProcess, topic: str) -> None:
    async def work() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=server.kafka, transactional_id=topic)
        await producer.start()
        async with producer.transaction():
            for number, value in enumerate(VALUES):
                await producer.send(topic, value, partition=number % 2)
        await producer.begin_transaction()
        for number, _ in enumerate(VALUES):
            await producer.send_and_wait(topic, b"aborted", partition=number % 2)
        await producer.abort_transaction()
        await producer.stop()

    asyncio.run(work())


@pytest.mark.parametrize("client", [with_confluent, with_kafka_python, with_aiokafka])
def test_what_is_committed_is_seen_and_nothing_else(
    shared_server: BrokerProcess, client: Callable[[BrokerProcess, str], None]
) -> None:
    topic = f"transactions-{client.__name__}"
    create(shared_server, topic)
    client(shared_server, topic)
    assert read(shared_server, topic, "read_committed") == sorted(VALUES)
    uncommitted = read(shared_server, topic, "read_uncommitted")
    assert uncommitted == sorted([*VALUES, *[b"aborted"] * len(VALUES)])


def test_librdkafka_reads_processes_and_writes_exactly_once(shared_server: BrokerProcess) -> None:
    create(shared_server, "transactions-in", "transactions-out")
    with_confluent(shared_server, "transactions-in")
    consumer = Consumer(
        {
            "bootstrap.servers": shared_server.kafka,
            "group.id": "transactions-copy",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["transactions-in"])
    producer = Producer({"bootstrap.servers": shared_server.kafka, "transactional.id": "copy"})
    producer.init_transactions(PATIENCE_SECONDS)
    copied = 0
    while copied < len(VALUES):
        messages = consumer.consume(7, 0.5)
        if not messages:
            continue
        for committed in (False, True):  # Each step is done once in vain.
            producer.begin_transaction()
            for message in messages:
                producer.produce("transactions-out", message.value(), partition=0)
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            )
            if committed:
                producer.commit_transaction(PATIENCE_SECONDS)
            else:
                producer.abort_transaction(PATIENCE_SECONDS)
        copied += len(messages)
    places = consumer.committed(consumer.assignment(), PATIENCE_SECONDS)
    assert sum(max(0, place.offset) for place in places) >= len(VALUES)
    consumer.close()
    assert read(shared_server, "transactions-out", "read_committed") == sorted(VALUES)


def test_librdkafka_is_fenced_by_its_successor(shared_server: BrokerProcess) -> None:
    create(shared_server, "transactions-fenced")
    settings = {"bootstrap.servers": shared_server.kafka, "transactional.id": "fenced"}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(PATIENCE_SECONDS)
    first.begin_transaction()
    first.produce("transactions-fenced", b"aborted", partition=0)
    first.flush(PATIENCE_SECONDS)
    second.init_transactions(PATIENCE_SECONDS)
    with pytest.raises(KafkaException) as refusal:
        first.commit_transaction(PATIENCE_SECONDS)
    assert refusal.value.args[0].fatal()
    second.begin_transaction()
    second.produce("transactions-fenced", b"committed", partition=0)
    second.commit_transaction(PATIENCE_SECONDS)
    assert read(shared_server, "transactions-fenced", "read_committed") == [b"committed"]


def test_aiokafka_commits_offsets_with_its_messages(shared_server: BrokerProcess) -> None:
    create(shared_server, "transactions-aio")

    async def work() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=shared_server.kafka, transactional_id="aio-offsets"
        )
        await producer.start()
        async with producer.transaction():
            await producer.send("transactions-aio", b"v", partition=0)
            place = AioTopicPartition("transactions-aio", 0)
            await producer.send_offsets_to_transaction({place: 17}, "aio-group")
        await producer.stop()

    asyncio.run(work())
    consumer = Consumer({"bootstrap.servers": shared_server.kafka, "group.id": "aio-group"})
    (place,) = consumer.committed([TopicPartition("transactions-aio", 0)], PATIENCE_SECONDS)
    assert place.offset == 17
    consumer.close()
