"""What consumers tell each other, against kafka-python's reading of it."""

from __future__ import annotations

from struct import pack

import pytest

from kafka_golden import golden_frame
from penstock.kafka.wire import MalformedMessageError, consumer_protocol, decode_request


@pytest.mark.parametrize("client", ["aiokafka", "confluent_kafka", "kafka_python"])
def test_subscriptions_and_assignments_of_real_clients(client: str) -> None:
    _, join = decode_request(golden_frame(client, "JoinGroup"))
    for protocol in join.protocols:
        subscription = consumer_protocol.decode(
            consumer_protocol.subscription_type(), protocol.metadata
        )
        assert subscription.topics == ["golden"]
    _, sync = decode_request(golden_frame(client, "SyncGroup"))
    assignment = consumer_protocol.decode(
        consumer_protocol.assignment_type(), sync.assignments[0].assignment
    )
    (topic,) = assignment.assigned_partitions
    assert (topic.topic, topic.partitions) == ("golden", [0])


@pytest.mark.parametrize("version", range(4))
def test_round_trip(version: int) -> None:
    subscription = consumer_protocol.subscription_type()
    message = subscription(topics=["a", "b"], user_data=b"x")
    encoded = consumer_protocol.encode(subscription, message, version)
    assert encoded.startswith(pack(">hi", version, 2))
    assert consumer_protocol.decode(subscription, encoded) == message


def test_a_newer_version_is_read_as_the_newest() -> None:
    assignment = consumer_protocol.assignment_type()
    encoded = consumer_protocol.encode(assignment, assignment())
    assert consumer_protocol.decode(assignment, b"\x00\x09" + encoded[2:] + b"new") == assignment()


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x00\x00"])
def test_bytes_that_are_neither(data: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        consumer_protocol.decode(consumer_protocol.assignment_type(), data)
