"""Goal: what tools ask of a cluster is answered as a Kafka of one node does."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from fastcrc.crc32 import iscsi as crc32c

from kafka_dialog import TOPIC, Dialog
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api, consumer_protocol


async def test_a_cursor_leads_through_all_partitions(dialog: Dialog) -> None:
    for name, partitions in (("b", 3), ("a", 2), ("c", 1)):
        await dialog.create_topic(name, partitions)
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = await dialog.ask(
            "DescribeTopicPartitions", topics=[], response_partition_limit=2, cursor=cursor
        )
        for topic in page.topics:
            seen += [(topic.name, each.partition_index) for each in topic.partitions]
        pages += 1
        cursor = None
        if page.next_cursor is not None:
            cursor = api("DescribeTopicPartitions").request.Cursor(
                topic_name=page.next_cursor.topic_name,
                partition_index=page.next_cursor.partition_index,
            )
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    assert pages == 3


async def test_topics_are_described_by_name(dialog: Dialog) -> None:
    topic_id = await dialog.create_topic("there")
    request = api("DescribeTopicPartitions").request
    names = ["there", "missing", "not/a/name", "there"]
    asked = [request.TopicRequest(name=name) for name in names]
    page = await dialog.ask("DescribeTopicPartitions", topics=asked, response_partition_limit=-7)
    found = {each.name: (each.error_code, each.topic_id) for each in page.topics}
    assert found == {
        "missing": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UUID(int=0)),
        "not/a/name": (ErrorCode.INVALID_TOPIC_EXCEPTION, UUID(int=0)),
        "there": (0, topic_id),
    }
    (partition,) = page.topics[-1].partitions
    assert (partition.isr_nodes, partition.eligible_leader_replicas) == ([0], [])
    before = request.Cursor(topic_name="there", partition_index=-1)
    page = await dialog.ask("DescribeTopicPartitions", topics=asked, cursor=before)
    assert [each.error_code for each in page.topics] == [ErrorCode.INVALID_REQUEST]


async def alter(dialog: Dialog, *configs: tuple[str, str | None], **fields: Any) -> int:
    request = api("AlterConfigs").request
    resource = request.AlterConfigsResource(
        resource_type=fields.pop("kind", 2),
        resource_name=TOPIC,
        configs=[request.AlterableConfig(name=name, value=value) for name, value in configs],
    )
    response = await dialog.ask("AlterConfigs", resources=[resource], **fields)
    code: int = response.responses[0].error_code
    return code


async def test_what_is_not_named_is_no_longer_set(dialog: Dialog) -> None:
    await dialog.create_topic(max_message_bytes="5000", segment_bytes="2000000")

    def explicit() -> dict[str, str]:
        (topic,) = dialog.broker.topics.all()
        return dict(topic.config.explicit)

    before = explicit()
    assert await alter(dialog, ("segment.bytes", "3000000"), validate_only=True) == 0
    assert await alter(dialog, ("segment.bytes", None)) == ErrorCode.INVALID_REQUEST
    assert await alter(dialog, ("no.such", "1")) == ErrorCode.INVALID_CONFIG
    assert await alter(dialog, ("min.insync.replicas", "2")) == ErrorCode.INVALID_CONFIG
    assert await alter(dialog, *[("segment.bytes", "1")] * 2) == ErrorCode.INVALID_REQUEST
    assert await alter(dialog, kind=4) == ErrorCode.INVALID_REQUEST
    assert explicit() == before
    assert await alter(dialog, ("segment.bytes", "3000000")) == 0
    assert explicit() == {"segment_bytes": "3000000"}


async def test_configurable_resources_are_listed(dialog: Dialog) -> None:
    await dialog.create_topic()

    async def listed(version: int, *types: int) -> list[tuple[int, str]]:
        response = await dialog.ask("ListConfigResources", version, resource_types=list(types))
        assert response.error_code == 0
        return sorted(
            (each.resource_type, each.resource_name) for each in response.config_resources
        )

    assert await listed(0) == []
    assert await listed(1) == [(2, TOPIC), (4, "0"), (8, "0")]
    assert await listed(1, 2, 2) == [(2, TOPIC)]
    assert await listed(1, 16, 32) == []
    unknown = await dialog.ask("ListConfigResources", resource_types=[2, 3])
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_producers_of_a_partition_are_described(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=2)
    batch = encode_batch([Record(b"a", timestamp_ms=1), Record(b"b", timestamp_ms=1)])
    # Producer id, epoch and base sequence of the header, with its checksum made anew.
    batch[43:57] = (7).to_bytes(8) + (3).to_bytes(2) + (0).to_bytes(4)
    batch[17:21] = crc32c(batch[21:]).to_bytes(4)
    assert (await dialog.produce(batch)).error_code == 0
    request = api("DescribeProducers").request
    asked = request.TopicRequest(name=TOPIC, partition_indexes=[0, 1, 2, 1])
    response = await dialog.ask("DescribeProducers", topics=[asked])
    codes = [each.error_code for each in response.topics[0].partitions]
    assert codes == [0, ErrorCode.INVALID_REQUEST, 3, ErrorCode.INVALID_REQUEST]
    (producer,) = response.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 1)


async def test_the_quorum_is_the_node(dialog: Dialog) -> None:
    request = api("DescribeQuorum").request
    asked = [
        request.TopicData(
            topic_name=name, partitions=[request.PartitionData(partition_index=index)]
        )
        for name, index in (("__cluster_metadata", 0), ("__cluster_metadata", 1), (TOPIC, 0))
    ]
    response = await dialog.ask("DescribeQuorum", topics=asked)
    metadata, *others = [each.partitions[0] for each in response.topics]
    assert (metadata.error_code, metadata.leader_id) == (0, 0)
    assert [each.replica_id for each in metadata.current_voters] == [0]
    assert [each.error_code for each in others] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert [each.listeners[0].port for each in response.nodes] == [9092]


@pytest.mark.parametrize(
    ("updates", "codes"),
    [
        ([("metadata.version", 30)], [0]),
        ([("metadata.version", 29)], [ErrorCode.INVALID_UPDATE_VERSION]),
        ([("share.version", 1), ("metadata.version", 30)], [ErrorCode.INVALID_UPDATE_VERSION, 0]),
        ([("metadata.version", 30)] * 2, [ErrorCode.INVALID_REQUEST] * 2),
    ],
)
async def test_features_stay_as_they_are(
    dialog: Dialog, updates: list[tuple[str, int]], codes: list[int]
) -> None:
    request = api("UpdateFeatures").request
    asked = [
        request.FeatureUpdateKey(feature=name, max_version_level=level) for name, level in updates
    ]
    old = await dialog.ask("UpdateFeatures", 1, feature_updates=asked)
    assert [each.error_code for each in old.results] == codes
    new = await dialog.ask("UpdateFeatures", 2, feature_updates=asked)
    assert new.error_code == old.error_code == codes[0]
    versions = await dialog.ask(
        "ApiVersions", client_software_name="a", client_software_version="1"
    )
    levels = {each.name: each.max_version_level for each in versions.finalized_features}
    assert levels == {"metadata.version": 30, "transaction.version": 2}
    assert {each.name for each in versions.supported_features} == set(levels)
    older = await dialog.ask(
        "ApiVersions", 3, client_software_name="a", client_software_version="1"
    )
    assert {each.name for each in older.finalized_features} == set(levels)
    assert {each.name for each in older.supported_features} == {"metadata.version"}


async def test_no_metrics_are_asked_for(dialog: Dialog) -> None:
    first = await dialog.ask("GetTelemetrySubscriptions")
    assert first.client_instance_id != UUID(int=0)
    assert first.requested_metrics == []
    again = await dialog.ask(
        "GetTelemetrySubscriptions", client_instance_id=first.client_instance_id
    )
    assert again == first
    pushed = {"client_instance_id": first.client_instance_id, "subscription_id": 0}
    assert (await dialog.ask("PushTelemetry", **pushed, terminating=True)).error_code == 0
    for wrong in ({"metrics": b"unasked"}, {"subscription_id": 9}):
        response = await dialog.ask("PushTelemetry", **{**pushed, **wrong})
        assert response.error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


async def forget(dialog: Dialog, group: str, *partitions: int) -> tuple[int, list[int]]:
    request = api("OffsetDelete").request
    topic = request.OffsetDeleteRequestTopic(
        name=TOPIC,
        partitions=[
            request.OffsetDeleteRequestPartition(partition_index=each) for each in partitions
        ],
    )
    response = await dialog.ask("OffsetDelete", group_id=group, topics=[topic])
    codes = [each.error_code for topic in response.topics for each in topic.partitions]
    return response.error_code, codes


async def commit(dialog: Dialog, *partitions: int) -> None:
    request = api("OffsetCommit").request
    topic = request.OffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[
            request.OffsetCommitRequestPartition(partition_index=each, committed_offset=1)
            for each in partitions
        ],
    )
    response = await dialog.ask(
        "OffsetCommit", 9, group_id="g", generation_id_or_member_epoch=-1, topics=[topic]
    )
    assert {each.error_code for each in response.topics[0].partitions} == {0}


def committed(dialog: Dialog) -> int:
    return sum(
        len(dialog.broker.offsets.of_owner(each)) for each in dialog.broker.offsets.owners("kafka")
    )


async def test_committed_offsets_are_forgotten_one_by_one(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=3)
    assert await forget(dialog, "", 0) == (ErrorCode.INVALID_GROUP_ID, [])
    assert await forget(dialog, "g", 0) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    await commit(dialog, 0, 1, 2)
    assert await forget(dialog, "g", 1, 1, 9) == (0, [0, 0, 3])
    assert committed(dialog) == 2


def subscribed_to(*topics: str, said: int = 0) -> bytes:
    """A member's metadata of the first version, which says that it is of another."""
    kind = consumer_protocol.subscription_type()
    first = consumer_protocol.encode(kind, kind(topics=list(topics), user_data=None), 0)
    return said.to_bytes(2) + first[2:]


@pytest.mark.parametrize(
    ("protocol_type", "metadata", "answer"),
    [
        ("consumer", subscribed_to(TOPIC), (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])),
        ("consumer", subscribed_to("other"), (0, [0])),
        # As @platformatic/kafka writes it, without what version 1 has behind the topics.
        ("consumer", subscribed_to("other", said=1), (0, [0])),
        ("consumer", b"?", (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])),
        ("connect", subscribed_to(TOPIC), (ErrorCode.NON_EMPTY_GROUP, [])),
    ],
)
async def test_offsets_that_members_need_are_kept(
    dialog: Dialog, protocol_type: str, metadata: bytes, answer: tuple[int, list[int]]
) -> None:
    await dialog.create_topic()
    await commit(dialog, 0)
    request = api("JoinGroup").request
    protocol = request.JoinGroupRequestProtocol(name="range", metadata=metadata)
    joined = await dialog.ask(
        "JoinGroup",
        3,
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type=protocol_type,
        protocols=[protocol],
    )
    assert joined.error_code == 0
    assert await forget(dialog, "g", 0) == answer
    assert committed(dialog) == (0 if answer == (0, [0]) else 1)


NOT_THERE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_HERE = ErrorCode.INVALID_REPLICA_ASSIGNMENT
REASSIGNED = [
    ("orders", 0, [0], 0),
    ("orders", 0, [0, 1], NOT_HERE),
    ("orders", 0, [], NOT_HERE),
    ("orders", 0, [0, 0], NOT_HERE),
    ("orders", 0, [9], NOT_HERE),
    ("orders", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ("orders", 7, [0], NOT_THERE),
    ("orders", -1, None, NOT_THERE),
    ("none", 0, [0], NOT_THERE),
]
"""What Apache Kafka 4.3 answers on one node."""


@pytest.mark.parametrize("version", [0, 1])
async def test_a_partition_may_be_placed_where_it_is(dialog: Dialog, version: int) -> None:
    await dialog.create_topic()
    asked = api("AlterPartitionReassignments").request
    topics = [
        asked.ReassignableTopic(
            name=name,
            partitions=[asked.ReassignablePartition(partition_index=index, replicas=replicas)],
        )
        for name, index, replicas, _ in REASSIGNED
    ]
    response = await dialog.ask("AlterPartitionReassignments", version, topics=topics)
    answered = [
        (topic.name, partition.partition_index, partition.error_code)
        for topic in response.responses
        for partition in topic.partitions
    ]
    assert answered == [(name, index, code) for name, index, _, code in REASSIGNED]
    assert (response.error_code, response.error_message) == (0, None)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_partition_may_be_in_the_one_folder(dialog: Dialog, version: int) -> None:
    await dialog.create_topic(partitions=2)
    asked = api("AlterReplicaLogDirs").request
    here = str(dialog.broker.data_folder.absolute())
    places = [
        (here, TOPIC, [0, 1, 9]),
        ("/no/such", TOPIC, [1]),
        (here, "none", [0]),
        ("", "none", [1]),
    ]
    dirs = [
        asked.AlterReplicaLogDir(
            path=path, topics=[asked.AlterReplicaLogDirTopic(name=name, partitions=partitions)]
        )
        for path, name, partitions in places
    ]
    response = await dialog.ask("AlterReplicaLogDirs", version, dirs=dirs)
    answered = {
        (topic.topic_name, partition.partition_index): partition.error_code
        for topic in response.results
        for partition in topic.partitions
    }
    not_found = ErrorCode.LOG_DIR_NOT_FOUND
    assert answered == {
        (TOPIC, 0): 0,
        (TOPIC, 1): not_found,
        (TOPIC, 9): NOT_THERE,
        ("none", 0): NOT_THERE,
        ("none", 1): not_found,
    }


async def test_nothing_is_reassigned(dialog: Dialog) -> None:
    await dialog.create_topic()
    for topics in (None, []):
        response = await dialog.ask("ListPartitionReassignments", topics=topics)
        assert (response.error_code, response.topics) == (0, [])
