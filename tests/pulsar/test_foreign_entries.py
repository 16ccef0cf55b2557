"""What Kafka clients wrote has the same ids for every Pulsar client, and they can be used."""

from __future__ import annotations

import confluent_kafka
import pulsar
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from pulsar_messages import expect_nothing, numbered, payloads, publish, read_all, receive

COUNT = 60
EARLIEST = pulsar.InitialPosition.Earliest


@pytest.fixture
def written(shared_server: BrokerProcess, client: pulsar.Client, topic: str) -> str:
    """A partition with Kafka's batches, then Pulsar's, then Kafka's again."""
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE_SECONDS)
    partition = f"{topic}-partition-0"
    write_with_kafka(shared_server, topic, numbered(20))
    producer = client.create_producer(partition, batching_enabled=True, batching_max_messages=7)
    publish(producer, numbered(20, 20))
    write_with_kafka(shared_server, topic, numbered(20, 40))
    return partition


def write_with_kafka(server: BrokerProcess, topic: str, values: list[bytes]) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": server.kafka, "linger.ms": 50, "batch.num.messages": 6}
    )
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_SECONDS) == 0


def offset_of(message_id: pulsar.MessageId) -> int:
    return int(message_id.entry_id() + max(message_id.batch_index(), 0))


def test_ids_are_offsets(client: pulsar.Client, written: str) -> None:
    messages = receive(client.subscribe(written, "sub", initial_position=EARLIEST), COUNT)
    assert payloads(messages) == numbered(COUNT)
    assert [offset_of(message.message_id()) for message in messages] == list(range(COUNT))


@pytest.mark.parametrize("start", [0, 3, 19, 20, 33, 40, 58])
def test_a_reader_begins_anywhere(client: pulsar.Client, written: str, start: int) -> None:
    consumer = client.subscribe(written, "sub", initial_position=EARLIEST)
    message = receive(consumer, start + 1)[-1]
    reader = client.create_reader(written, message.message_id())
    assert payloads(read_all(reader)) == numbered(COUNT - start - 1, start + 1)
    assert offset_of(consumer.get_last_message_id()) == COUNT - 1
    consumer.seek(message.message_id())
    assert payloads(receive(consumer, COUNT - start - 1)) == numbered(COUNT - start - 1, start + 1)


def test_holes_in_foreign_batches_stay_open(client: pulsar.Client, written: str) -> None:
    options = {
        "initial_position": EARLIEST,
        "consumer_type": pulsar.ConsumerType.Shared,
        "batch_index_ack_enabled": True,
    }
    consumer = client.subscribe(written, "sub", **options)
    for index, message in enumerate(receive(consumer, COUNT)):
        if index % 4:
            consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(written, "sub", **options)
    assert payloads(receive(again, COUNT // 4)) == numbered(COUNT)[::4]
    expect_nothing(again)
