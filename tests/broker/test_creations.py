"""Goal: an address creates so many topics and groups at once and a second, in every protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import iggy_dialog
import kafka_dialog
import pulsar_peer
from penstock import limits
from penstock.allowance import Allowance, Allowances
from penstock.broker.broker import Broker
from penstock.broker.creations import Creations
from penstock.broker.errors import TopicsThrottledError
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.iggy.wire import requests
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode as IggyCode
from penstock.iggy.wire.identifiers import Identifier
from penstock.kafka.wire import ErrorCode, Struct, api
from penstock.pulsar.wire import pulsar_api_pb2 as pulsar_api

STREAM = Identifier("default")


@pytest.fixture
async def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Broker]:
    """One with two partitions and two groups to give to an address, and four to give at all."""
    for kind in ("PARTITIONS", "GROUPS"):
        for name, value in {
            f"ADDRESS_{kind}_CREATED_AT_ONCE": 2,
            f"ADDRESS_{kind}_CREATED_A_SECOND": 0.001,
            f"{kind}_CREATED_AT_ONCE": 4,
            f"{kind}_CREATED_A_SECOND": 0.001,
        }.items():
            monkeypatch.setattr(limits, name, value)
    broker = await Broker.open(tmp_path, BrokerSettings())
    yield broker
    await broker.close()


@pytest.fixture
async def full(broker: Broker) -> Broker:
    """One of which the address of the tests has created all that it may."""
    for name in ("a", "b"):
        await broker.topics.create(TopicName.from_kafka(name), 1, address="127.0.0.1")
    return broker


def test_address_and_all_have_an_allowance_each() -> None:
    now = 0.0
    creations = Creations(
        Allowances(2, 1, keys=10), Allowance(3, 1, now), TopicsThrottledError, lambda: now
    )
    creations.take("a", 2)
    with pytest.raises(TopicsThrottledError) as refused:
        creations.take("a")
    assert refused.value.seconds == 1
    creations.take("b")
    with pytest.raises(TopicsThrottledError):
        creations.take("c")  # Of all: what was refused has cost nobody anything.
    creations.take(None, 100)
    now = refused.value.seconds
    creations.take("a")


async def create(dialog: kafka_dialog.Dialog, version: int, name: str) -> Struct:
    asked = api("CreateTopics").request.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1
    )
    answer: Struct = await dialog.ask("CreateTopics", version, topics=[asked])
    return answer


async def test_kafka_hears_of_the_quota_and_of_the_time(full: Broker) -> None:
    dialog = kafka_dialog.Dialog(full)
    answer = await create(dialog, 7, "c")
    assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert answer.throttle_time_ms == limits.KAFKA_THROTTLE_SECONDS * 1000
    answer = await create(dialog, 5, "c")
    assert answer.topics[0].error_code == ErrorCode.POLICY_VIOLATION
    assert answer.throttle_time_ms == 0
    answer = await create(dialog, 7, "a")
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_kafka_partitions_count_too(full: Broker) -> None:
    asked = api("CreatePartitions").request.CreatePartitionsTopic(
        name="a", count=2, assignments=None
    )
    answer = await kafka_dialog.Dialog(full).ask("CreatePartitions", 3, topics=[asked])
    assert answer.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert answer.throttle_time_ms > 0


async def test_a_topic_that_metadata_may_not_create_is_missing(full: Broker) -> None:
    asked = api("Metadata").request.MetadataRequestTopic(name="c")
    answer = await kafka_dialog.Dialog(full).ask(
        "Metadata", topics=[asked], allow_auto_topic_creation=True
    )
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_pulsar_hears_of_too_many_requests(full: Broker) -> None:
    peer = pulsar_peer.Peer(full)
    await peer.connect()
    producer = pulsar_api.CommandProducer(topic="c", producer_id=1, request_id=1)
    kind = pulsar_api.BaseCommand.PRODUCER
    asked = pulsar_api.BaseCommand(type=kind, producer=producer)
    error = await peer.ask(asked, pulsar_api.BaseCommand.ERROR)
    assert error.error == pulsar_api.TooManyRequests
    assert "try again" in error.message


async def test_iggy_hears_of_too_many_topics_and_groups(full: Broker) -> None:
    await full.topics.create(TopicName.from_iggy("default", "t"), 1)
    dialog = iggy_dialog.Dialog(full)
    await dialog.log_in()
    topic = await dialog.ask(Command.CREATE_TOPIC, requests.CreateTopic(STREAM, 1, "another", {}))
    assert topic.rejected == IggyCode.TOO_MANY_TOPICS
    groups = [
        await dialog.ask(
            Command.CREATE_CONSUMER_GROUP,
            requests.CreateConsumerGroup(STREAM, Identifier("t"), name),
        )
        for name in ("g", "h", "i")
    ]
    assert [each.rejected for each in groups] == [0, 0, IggyCode.CANNOT_CREATE_CONSUMER_GROUP_INFO]


async def test_kafka_groups_of_an_address_are_counted(broker: Broker) -> None:
    dialog = kafka_dialog.Dialog(broker)

    async def join(group: str) -> int:
        protocol = api("JoinGroup").request.JoinGroupRequestProtocol(name="range", metadata=b"")
        answer = await dialog.ask(
            "JoinGroup",
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        return int(answer.error_code)

    joined = [await join(group) for group in ("g", "h", "i", "g")]
    there = ErrorCode.MEMBER_ID_REQUIRED
    assert joined == [there, there, ErrorCode.COORDINATOR_NOT_AVAILABLE, there]


async def test_a_topic_without_partitions_counts_as_one_with_a_partition(broker: Broker) -> None:
    for number in range(2):
        await broker.topics.create(
            TopicName("public", "default", str(number)), 0, address="192.0.2.1"
        )
    with pytest.raises(TopicsThrottledError):
        await broker.topics.create(TopicName("public", "default", "2"), 0, address="192.0.2.1")
