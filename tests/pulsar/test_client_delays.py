"""Delayed delivery with Pulsar's own client: `deliver_at`, `deliver_after`, and dead letters."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pulsar
import pytest
from pulsar import ConsumerType, InitialPosition

from broker_process import BrokerProcess
from pulsar_messages import RECEIVE_MS, receive

SHARED, EXCLUSIVE = ConsumerType.Shared, ConsumerType.Exclusive
EARLIEST = InitialPosition.Earliest


def test_messages_come_at_their_time_once(client: pulsar.Client, topic: str) -> None:
    """Those without a time first; each with a time not before it, and with nothing counted."""
    consumer = client.subscribe(topic, "sub", SHARED, initial_position=EARLIEST)
    producer = client.create_producer(topic)
    began = time.time()
    due = {b"at": began + 0.8, b"after": began + 0.4, b"now": began, b"past": began}
    producer.send(b"at", deliver_at=int(1000 * due[b"at"]))
    producer.send(b"after", deliver_after=timedelta(milliseconds=400))
    producer.send(b"now")
    producer.send(b"past", deliver_at=int(1000 * began) - 5_000)
    seen = []
    for message in receive(consumer, 4):
        assert time.time() >= due[message.data()] - 0.001
        assert message.redelivery_count() == 0
        consumer.acknowledge(message)
        seen.append(message.data())
    assert sorted(seen[:2]) == [b"now", b"past"]
    assert seen[2:] == [b"after", b"at"]


def test_readers_and_exclusive_consumers_have_them_at_once(
    client: pulsar.Client, topic: str
) -> None:
    producer = client.create_producer(topic)
    producer.send(b"later", deliver_after=timedelta(days=1))
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert reader.read_next(RECEIVE_MS).data() == b"later"
    consumer = client.subscribe(topic, "sub", EXCLUSIVE, initial_position=EARLIEST)
    assert consumer.receive(RECEIVE_MS).data() == b"later"


@pytest.mark.parametrize("after", ["kill9", "stop"])
def test_a_restart_keeps_what_waits(
    server: BrokerProcess, connect: Callable[[str], pulsar.Client], after: str
) -> None:
    client = connect(server.pulsar)
    consumer = client.subscribe("t", "sub", SHARED, initial_position=EARLIEST)
    producer = client.create_producer("t")
    due = time.time() + 2.5
    producer.send(b"later", deliver_at=int(1000 * due))
    producer.send(b"now")
    message = consumer.receive(RECEIVE_MS)
    assert message.data() == b"now"
    consumer.acknowledge(message)
    getattr(server, after)()
    server.start()
    found = {}
    while b"later" not in found:  # What was acknowledged last may come again.
        message = consumer.receive(RECEIVE_MS)
        found[message.data()] = time.time(), message.redelivery_count()
        consumer.acknowledge(message)
    came, count = found[b"later"]
    assert came >= due - 0.001
    assert count == 0


def test_what_is_given_back_again_and_again_is_a_dead_letter(
    client: pulsar.Client, topic: str
) -> None:
    """Also of a delayed message; it is given back twice, and no delay counts as one of these."""
    policy = pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dead", "initial")
    consumer = client.subscribe(
        topic,
        "sub",
        SHARED,
        initial_position=EARLIEST,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=policy,
    )
    dead = client.subscribe(f"{topic}-dead", "watch", SHARED, initial_position=EARLIEST)
    client.create_producer(topic).send(b"bad", deliver_after=timedelta(milliseconds=200))
    for count in range(3):
        message = consumer.receive(RECEIVE_MS)
        assert message.redelivery_count() == count
        consumer.negative_acknowledge(message)
    letter = dead.receive(RECEIVE_MS)
    assert letter.data() == b"bad"
    assert letter.properties()["REAL_TOPIC"].endswith(topic)
