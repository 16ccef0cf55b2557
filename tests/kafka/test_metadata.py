"""Goal: clients learn topics as Kafka tells them, and missing ones come to be when they may."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kafka_dialog import Dialog, kafka_broker
from penstock.broker.topics.names import TopicName
from penstock.kafka.wire import ErrorCode, Struct, api


async def describe(
    dialog: Dialog, *names: str | UUID, version: int = 13, **fields: object
) -> Struct:
    request = api("Metadata").request
    topics = [
        request.MetadataRequestTopic(name=name)
        if isinstance(name, str)
        else request.MetadataRequestTopic(name=None, topic_id=name)
        for name in names
    ]
    return await dialog.ask("Metadata", version, topics=topics, **fields)


@pytest.mark.parametrize("version", range(14))
async def test_every_version_describes_a_topic(dialog: Dialog, version: int) -> None:
    topic_id = await dialog.create_topic(partitions=2)
    response = await describe(dialog, "orders", version=version)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (0, "127.0.0.1", 9092)
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, "orders")
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    for each in topic.partitions:
        assert (each.error_code, each.leader_id) == (0, 0)
        assert (each.replica_nodes, each.isr_nodes) == ([0], [0])
    if version >= 2:
        assert response.cluster_id == dialog.broker.cluster.id
    if version >= 10:
        assert topic.topic_id == topic_id


async def test_no_list_means_all_and_an_empty_one_none(dialog: Dialog) -> None:
    await dialog.create_topic("a")
    await dialog.create_topic("b")
    for version, topics, expected in ((0, [], 2), (1, [], 0), (1, None, 2), (13, None, 2)):
        response = await dialog.ask("Metadata", version, topics=topics)
        assert len(response.topics) == expected


@pytest.mark.parametrize("version", [0, 3, 4, 13])
async def test_a_missing_topic_is_created(dialog: Dialog, version: int) -> None:
    response = await describe(dialog, "new", "other", version=version)
    assert [(each.error_code, each.name) for each in response.topics] == [(0, "new"), (0, "other")]
    assert dialog.broker.topics.by_kafka_name("new") is not None


async def test_two_who_ask_for_a_missing_topic_get_the_same(dialog: Dialog) -> None:
    answers = await asyncio.gather(describe(dialog, "new"), describe(Dialog(dialog.broker), "new"))
    assert len({each.topics[0].topic_id for each in answers}) == 1


async def test_a_missing_topic_stays_missing_when_it_may_not_be_created(
    dialog: Dialog, tmp_path: Path
) -> None:
    response = await describe(dialog, "new", allow_auto_topic_creation=False)
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new")
    assert topic.partitions == []
    async with kafka_broker(tmp_path / "strict", auto_create_topics=False) as broker:
        response = await describe(Dialog(broker), "new")
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_defaults_of_the_node_make_the_topic(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path, default_partitions=3) as broker:
        response = await describe(Dialog(broker), "new")
        assert len(response.topics[0].partitions) == 3


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "n" * 250])
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_name_that_no_topic_may_have_is_refused(
    dialog: Dialog, name: str, allowed: bool
) -> None:
    response = await describe(dialog, "good", name, allow_auto_topic_creation=allowed)
    good, bad = response.topics
    assert (bad.error_code, bad.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)
    assert good.error_code == (0 if allowed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_topics_are_found_by_their_ids(dialog: Dialog) -> None:
    topic_id = await dialog.create_topic()
    response = await describe(dialog, topic_id, uuid4())
    known, unknown = response.topics
    assert (known.error_code, known.name, known.topic_id) == (0, "orders", topic_id)
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


async def test_an_id_goes_before_a_name(dialog: Dialog) -> None:
    """Java's Admin client leaves the name empty beside an id, instead of null."""
    topic_id = await dialog.create_topic()
    asked = api("Metadata").request.MetadataRequestTopic
    both = [asked(name="", topic_id=topic_id), asked(name="other", topic_id=uuid4())]
    response = await dialog.ask("Metadata", 13, topics=both, allow_auto_topic_creation=True)
    known, unknown = response.topics
    assert (known.error_code, known.name, known.topic_id) == (0, "orders", topic_id)
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert dialog.broker.topics.by_kafka_name("other") is None


async def test_topics_of_other_protocols_have_their_kafka_names(dialog: Dialog) -> None:
    await dialog.broker.topics.create(TopicName("public", "shop", "orders"), 2)
    response = await describe(dialog, "shop.orders")
    assert (response.topics[0].error_code, len(response.topics[0].partitions)) == (0, 2)


async def test_operations_are_told_only_to_who_asks(dialog: Dialog) -> None:
    await dialog.create_topic()
    silent = await describe(dialog, "orders", version=10)
    assert silent.topics[0].topic_authorized_operations == -(1 << 31)
    told = await describe(
        dialog,
        "orders",
        version=10,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    assert told.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert told.cluster_authorized_operations > 0


async def test_the_cluster_is_one_node(dialog: Dialog) -> None:
    for version in range(3):
        response = await dialog.ask("DescribeCluster", version)
        assert response.cluster_id == dialog.broker.cluster.id
        assert [(each.broker_id, each.port) for each in response.brokers] == [(0, 9092)]
    refused = await dialog.ask("DescribeCluster", 1, endpoint_type=2)
    assert refused.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
