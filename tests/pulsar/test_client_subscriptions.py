"""Subscriptions as real clients use them."""

from __future__ import annotations

import re

import pulsar
import pytest

from patience import wait_until
from pulsar_messages import (
    RECEIVE_MS,
    expect_nothing,
    numbered,
    payloads,
    publish,
    receive,
)

EARLIEST = pulsar.InitialPosition.Earliest
EXCLUSIVE = pulsar.ConsumerType.Exclusive
SHARED = pulsar.ConsumerType.Shared
FAILOVER = pulsar.ConsumerType.Failover


def test_latest_and_earliest(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"before")
    latest = client.subscribe(topic, "latest")
    earliest = client.subscribe(topic, "earliest", initial_position=EARLIEST)
    producer.send(b"after")
    assert payloads(receive(latest, 1)) == [b"after"]
    assert payloads(receive(earliest, 2)) == [b"before", b"after"]


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER], ids=str)
def test_what_was_acknowledged_does_not_come_again(
    client: pulsar.Client, topic: str, kind: pulsar.ConsumerType
) -> None:
    consumer = client.subscribe(topic, "sub", consumer_type=kind)
    publish(client.create_producer(topic), numbered(10))
    for message in receive(consumer, 6):
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "sub", consumer_type=kind)
    assert payloads(receive(again, 4)) == numbered(4, 6)
    expect_nothing(again)


def test_holes_stay_open(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    publish(client.create_producer(topic), numbered(10))
    for index, message in enumerate(receive(consumer, 10)):
        if index % 2:
            consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "sub")
    assert payloads(receive(again, 5)) == numbered(10)[::2]


def test_a_cumulative_acknowledgement_takes_all_before(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    publish(client.create_producer(topic), numbered(10))
    consumer.acknowledge_cumulative(receive(consumer, 7)[-1])
    consumer.close()
    assert payloads(receive(client.subscribe(topic, "sub"), 3)) == numbered(3, 7)


def test_a_cumulative_acknowledgement_inside_a_batch(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", batch_index_ack_enabled=True)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=1000
    )
    publish(producer, numbered(10))
    consumer.acknowledge_cumulative(receive(consumer, 7)[-1])
    consumer.close()
    again = client.subscribe(topic, "sub", batch_index_ack_enabled=True)
    assert payloads(receive(again, 3)) == numbered(3, 7)


def test_a_cumulative_acknowledgement_without_batch_indexes_means_the_batch_before(
    client: pulsar.Client, topic: str
) -> None:
    """The client names entry - 1, which is an offset inside the batch before."""
    consumer = client.subscribe(topic, "sub")
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=1000
    )
    publish(producer, numbered(10))
    publish(producer, numbered(10, 10))
    consumer.acknowledge_cumulative(receive(consumer, 15)[-1])
    consumer.close()
    assert payloads(receive(client.subscribe(topic, "sub"), 10)) == numbered(10, 10)


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED], ids=str)
def test_acknowledged_messages_of_a_batch_do_not_come_again(
    client: pulsar.Client, topic: str, kind: pulsar.ConsumerType
) -> None:
    options = {"consumer_type": kind, "batch_index_ack_enabled": True}
    consumer = client.subscribe(topic, "sub", **options)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=1000
    )
    ids = publish(producer, numbered(100))
    assert {message_id.entry_id() for message_id in ids} == {0}
    for index, message in enumerate(receive(consumer, 100)):
        if index % 3:
            consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "sub", **options)
    assert payloads(receive(again, 34)) == numbered(100)[::3]
    expect_nothing(again)


def test_shared_divides_and_loses_nothing(client: pulsar.Client, topic: str) -> None:
    consumers = [client.subscribe(topic, "sub", SHARED, receiver_queue_size=10) for _ in range(3)]
    publish(client.create_producer(topic), numbered(300))
    received: list[bytes] = []
    shares = [0, 0, 0]

    def drain() -> bool:
        for index, consumer in enumerate(consumers):
            try:
                message = consumer.receive(20)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            received.append(message.data())
            shares[index] += 1
        return len(received) == 300

    wait_until(drain)
    assert sorted(received) == sorted(numbered(300))
    assert all(shares)


def test_a_shared_consumer_that_leaves_gives_back_without_counting(
    client: pulsar.Client, topic: str
) -> None:
    first = client.subscribe(topic, "sub", SHARED)
    publish(client.create_producer(topic), numbered(5))
    receive(first, 5)
    second = client.subscribe(topic, "sub", SHARED)
    first.close()
    messages = receive(second, 5)
    assert payloads(messages) == numbered(5)
    assert {message.redelivery_count() for message in messages} == {0}


def test_negative_acknowledgements_count(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", SHARED, negative_ack_redelivery_delay_ms=100)
    publish(client.create_producer(topic), numbered(3))
    first, second, third = receive(consumer, 3)
    consumer.acknowledge(first)
    consumer.acknowledge(third)
    message = second
    for count in range(1, 4):
        consumer.negative_acknowledge(message)
        message = consumer.receive(RECEIVE_MS)
        assert (message.data(), message.redelivery_count()) == (b"message 1", count)
    consumer.acknowledge(message)
    expect_nothing(consumer)


def test_a_negative_acknowledgement_in_a_batch_brings_the_open_messages(
    client: pulsar.Client, topic: str
) -> None:
    consumer = client.subscribe(
        topic,
        "sub",
        SHARED,
        negative_ack_redelivery_delay_ms=100,
        batch_index_ack_enabled=True,
    )
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=1000
    )
    publish(producer, numbered(10))
    messages = receive(consumer, 10)
    for message in messages[:7]:
        consumer.acknowledge(message)
    for message in messages[7:]:
        consumer.negative_acknowledge(message)
    again = receive(consumer, 3)
    assert payloads(again) == numbered(3, 7)
    assert {message.redelivery_count() for message in again} == {1}


def test_a_dead_letter_leaves_after_its_last_redelivery(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(
        topic,
        "sub",
        SHARED,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(
            max_redeliver_count=2, dead_letter_topic=f"{topic}-dead", initial_subscription_name="d"
        ),
    )
    publish(client.create_producer(topic), [b"poison"])
    for count in range(3):
        message = consumer.receive(RECEIVE_MS)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)
    expect_nothing(consumer, 600)
    dead = client.subscribe(f"{topic}-dead", "d").receive(RECEIVE_MS)
    assert dead.data() == b"poison"


@pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER], ids=str)
def test_redelivery_on_exclusive_and_failover_starts_over(
    client: pulsar.Client, topic: str, kind: pulsar.ConsumerType
) -> None:
    consumer = client.subscribe(topic, "sub", kind)
    publish(client.create_producer(topic), numbered(10))
    consumer.acknowledge(receive(consumer, 10)[0])
    consumer.redeliver_unacknowledged_messages()
    again = receive(consumer, 9)
    assert payloads(again) == numbered(9, 1)
    assert {message.redelivery_count() for message in again} == {0}


def test_a_second_exclusive_consumer_is_busy(client: pulsar.Client, topic: str) -> None:
    client.subscribe(topic, "sub")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "sub")


def test_the_kind_may_change_only_without_consumers(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "sub", SHARED)
    consumer.close()
    client.subscribe(topic, "sub", SHARED)


def test_failover_goes_on_with_the_next_consumer(client: pulsar.Client, topic: str) -> None:
    consumers = {
        name: client.subscribe(topic, "sub", FAILOVER, consumer_name=name) for name in ("a", "b")
    }
    producer = client.create_producer(topic)
    publish(producer, numbered(5))
    received: dict[str, list[pulsar.Message]] = {"a": [], "b": []}

    def first_batch() -> bool:
        for name, consumer in consumers.items():
            try:
                received[name].append(consumer.receive(50))
            except pulsar.Timeout:
                continue
        return max(map(len, received.values())) >= 5

    wait_until(first_batch)
    active = max(received, key=lambda name: len(received[name]))
    other = {"a": "b", "b": "a"}[active]
    assert not received[other]
    for message in received[active][:3]:
        consumers[active].acknowledge(message)
    consumers[active].close()
    assert payloads(receive(consumers[other], 2)) == numbered(2, 3)


def test_unsubscribe_forgets(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", initial_position=EARLIEST)
    publish(client.create_producer(topic), numbered(3))
    consumer.acknowledge_cumulative(receive(consumer, 3)[-1])
    consumer.unsubscribe()
    again = client.subscribe(topic, "sub", initial_position=EARLIEST)
    assert payloads(receive(again, 3)) == numbered(3)


def test_a_shared_subscription_with_other_consumers_is_not_deleted(
    client: pulsar.Client, topic: str
) -> None:
    first = client.subscribe(topic, "sub", SHARED)
    client.subscribe(topic, "sub", SHARED)
    with pytest.raises(pulsar.PulsarException):
        first.unsubscribe()


def test_a_queue_of_size_zero_gets_one_message_at_a_time(client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "sub", receiver_queue_size=0)
    publish(client.create_producer(topic), numbered(5))
    assert payloads([consumer.receive() for _ in range(5)]) == numbered(5)


def test_a_large_backlog_flows_through_a_small_queue(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=True, max_pending_messages=5000)
    publish(producer, numbered(5000))
    consumer = client.subscribe(topic, "sub", initial_position=EARLIEST, receiver_queue_size=10)
    received = []
    for _ in range(5000):
        message = consumer.receive(RECEIVE_MS)
        received.append(message.data())
        consumer.acknowledge(message)
    assert received == numbered(5000)


def test_a_pattern_finds_topics(client: pulsar.Client, topic: str) -> None:
    for number in range(3):
        client.create_producer(f"{topic}-{number}-found").send(str(number).encode())
    client.create_producer(f"{topic}-lost").send(b"no")
    consumer = client.subscribe(
        re.compile(f"persistent://public/default/{topic}-.*-found"),
        "sub",
        initial_position=EARLIEST,
    )
    assert sorted(payloads(receive(consumer, 3))) == [b"0", b"1", b"2"]
    expect_nothing(consumer)


def test_a_namespace_of_ones_own(client: pulsar.Client, topic: str) -> None:
    name = f"persistent://acme/shop/{topic}"
    client.create_producer(name).send(b"there")
    consumer = client.subscribe(name, "sub", initial_position=EARLIEST)
    assert consumer.receive(RECEIVE_MS).topic_name() == name


def test_names_are_not_free_for_all(client: pulsar.Client, topic: str) -> None:
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(f"{topic}-partition-0")
    with pytest.raises(pulsar.InvalidConfiguration):
        client.subscribe(topic, "pulsar.repl.x")
