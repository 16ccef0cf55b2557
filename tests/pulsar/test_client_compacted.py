"""The compacted view of a topic that has to keep its messages, as real clients see it."""

from __future__ import annotations

import time

import pulsar
import pytest

from broker_process import BrokerProcess
from patience import wait_until
from penstock.clients.kafka.client import KafkaClient
from pulsar_messages import expect_nothing, payloads, read_all, receive

EARLIEST = pulsar.MessageId.earliest
SENT = [("a", b"a0"), ("b", b"b0"), ("c", b"c0"), ("a", b"a1"), ("c", None), ("d", b"d0")]
LEFT = [b"b0", b"a1", b"d0"]


def publish_and_compact(
    server: BrokerProcess, client: pulsar.Client, topic: str, *, batching: bool
) -> pulsar.Consumer:
    """Return a consumer that has acknowledged nothing."""
    waiting = client.subscribe(topic, "waiting")
    producer = client.create_producer(
        topic, batching_enabled=batching, batching_max_publish_delay_ms=60_000
    )
    for key, value in SENT:
        producer.send_async(value, None, partition_key=key)
    producer.flush()
    with KafkaClient(server.kafka) as admin:
        requested = str(time.time_ns() // 1_000_000)
        admin.alter_topic_config(topic, {"penstock.compaction.requested.ms": requested})
    wait_until(lambda: f"{topic}-0: its compacted view was made" in server.log)
    return waiting


@pytest.mark.parametrize("batching", [False, True])
def test_readers_and_subscriptions_find_the_last_of_each_key(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str, batching: bool
) -> None:
    early = client.subscribe(topic, "compacted", is_read_compacted=True)
    early.close()
    waiting = publish_and_compact(shared_server, client, topic, batching=batching)
    reader = client.create_reader(topic, EARLIEST, is_read_compacted=True)
    assert payloads(read_all(reader)) == LEFT
    ordinary = client.create_reader(topic, EARLIEST)
    everything = [value or b"" for _, value in SENT]
    assert payloads(read_all(ordinary)) == everything
    assert payloads(receive(waiting, len(SENT))) == everything
    consumer = client.subscribe(topic, "compacted", is_read_compacted=True)
    assert payloads(receive(consumer, len(LEFT))) == LEFT
    expect_nothing(consumer)


def test_what_is_acknowledged_of_a_batch_that_the_view_has_a_part_of_does_not_come_again(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    publish_and_compact(shared_server, client, topic, batching=True)
    consumer = client.subscribe(
        topic,
        "compacted",
        is_read_compacted=True,
        batch_index_ack_enabled=True,
        initial_position=pulsar.InitialPosition.Earliest,
    )
    for message in receive(consumer, len(LEFT)):
        consumer.acknowledge(message)
    consumer.close()
    consumer = client.subscribe(topic, "compacted", is_read_compacted=True)
    expect_nothing(consumer)
