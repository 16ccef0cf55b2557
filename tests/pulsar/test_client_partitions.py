"""Topics with partitions, as real clients see them."""

from __future__ import annotations

from collections.abc import Callable

import pulsar
import pytest

from broker_process import BrokerProcess
from patience import wait_until
from pulsar_messages import RECEIVE_MS, numbered, payloads, publish, receive

FAILOVER = pulsar.ConsumerType.Failover


@pytest.fixture
def client(
    start_server: Callable[..., BrokerProcess], connect: Callable[[str], pulsar.Client]
) -> pulsar.Client:
    """A client of a broker whose new topics have four partitions."""
    return connect(start_server("--default-partitions", "4").pulsar)


def test_partitions_are_found_written_and_read(client: pulsar.Client, topic: str) -> None:
    name = f"persistent://public/default/{topic}"
    assert client.get_topic_partitions(topic) == [f"{name}-partition-{n}" for n in range(4)]
    consumer = client.subscribe(topic, "sub")
    ids = publish(client.create_producer(topic), numbered(100))
    assert {message_id.partition() for message_id in ids} == {0, 1, 2, 3}
    assert len({message_id.ledger_id() for message_id in ids}) == 4
    messages = receive(consumer, 100)
    assert sorted(payloads(messages)) == sorted(numbered(100))
    for message in messages:
        assert message.topic_name().startswith(f"{name}-partition-")
        assert message.topic_name().endswith(str(message.message_id().partition()))
        consumer.acknowledge(message)
    consumer.seek(pulsar.MessageId.earliest)
    assert len(receive(consumer, 100)) == 100


def test_a_key_stays_on_its_partition_in_order(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    producer = client.create_producer(topic, batching_enabled=True)
    for index in range(200):
        producer.send_async(str(index).encode(), None, partition_key=f"key {index % 10}")
    producer.flush()
    places: dict[str, set[int]] = {}
    last: dict[str, int] = {}
    for message in receive(consumer, 200):
        key, number = message.partition_key(), int(message.data())
        places.setdefault(key, set()).add(message.message_id().partition())
        assert last.get(key, -1) < number
        last[key] = number
    assert all(len(partitions) == 1 for partitions in places.values())


def test_failover_spreads_partitions_by_number_and_name(client: pulsar.Client, topic: str) -> None:
    """Trap 14: partition i goes to consumer i modulo n in the order of names."""
    consumers = [
        client.subscribe(topic, "sub", FAILOVER, consumer_name=f"name {n}") for n in range(2)
    ]
    producers = [client.create_producer(f"{topic}-partition-{n}") for n in range(4)]

    def spread() -> bool:
        for producer in producers:
            producer.send(b"x")
        seen: list[set[str]] = [set(), set()]

        def all_seen() -> bool:
            for index, consumer in enumerate(consumers):
                try:
                    seen[index].add(consumer.receive(50).topic_name()[-1])
                except pulsar.Timeout:
                    continue
            return len(seen[0] | seen[1]) == 4

        wait_until(all_seen)
        return seen == [{"0", "2"}, {"1", "3"}]

    wait_until(spread)


def test_a_reader_of_a_partition(client: pulsar.Client, topic: str) -> None:
    publish(client.create_producer(topic), numbered(8))
    reader = client.create_reader(f"{topic}-partition-2", pulsar.MessageId.earliest)
    assert reader.has_message_available()
    assert reader.read_next(RECEIVE_MS).message_id().partition() == 2


def test_the_bare_name_of_a_topic_with_partitions_is_no_topic(
    client: pulsar.Client, topic: str
) -> None:
    client.get_topic_partitions(topic)
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(f"{topic}-partition-4")
