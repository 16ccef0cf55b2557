"""Goal: topics are made, grown, described and deleted; each part of a request stands by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kafka_dialog import Dialog
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.config import TopicConfig
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.handlers.config_entries import topic_entries
from penstock.kafka.topic_configs import SETTING_OF_KEY, check_configs
from penstock.kafka.wire import ErrorCode, Struct, api


def topic(name: str = "orders", partitions: int = 1, replicas: int = -1, **fields: Any) -> Struct:
    asked: Struct = api("CreateTopics").request.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, **fields
    )
    return asked


def assignments(*nodes: list[int]) -> list[Struct]:
    kind = api("CreateTopics").request.CreatableReplicaAssignment
    return [kind(partition_index=index, broker_ids=ids) for index, ids in enumerate(nodes)]


def config(name: str, value: str | None) -> list[Struct]:
    return [api("CreateTopics").request.CreatableTopicConfig(name=name, value=value)]


def configs(values: dict[str, str]) -> list[Struct]:
    return [each for name, value in values.items() for each in config(name, value)]


async def create(dialog: Dialog, *topics: Struct, version: int = 7, **fields: Any) -> list[Struct]:
    response = await dialog.ask("CreateTopics", version, topics=list(topics), **fields)
    results: list[Struct] = response.topics
    return results


@pytest.mark.parametrize("version", range(8))
async def test_every_version_creates(dialog: Dialog, version: int) -> None:
    (result,) = await create(dialog, topic(partitions=3, replicas=1), version=version)
    assert result.error_code == 0
    made = dialog.broker.topics.by_kafka_name("orders")
    assert made is not None
    assert len(made.partitions) == 3
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {each.name for each in result.configs} == set(SETTING_OF_KEY)
    if version >= 7:
        assert result.topic_id == made.id


REFUSED = {
    "exists": (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
    "exists, no partitions": (topic("there", partitions=0), ErrorCode.TOPIC_ALREADY_EXISTS),
    "name": (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    "no partitions": (topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
    "too many partitions": (topic(partitions=10_001), ErrorCode.INVALID_PARTITIONS),
    "two replicas": (topic(replicas=2), ErrorCode.INVALID_REPLICATION_FACTOR),
    "no replicas": (topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
    "other node": (
        topic(partitions=-1, assignments=assignments([1])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "assignment and count": (topic(assignments=assignments([0])), ErrorCode.INVALID_REQUEST),
    "unknown key": (topic(configs=config("no.such", "1")), ErrorCode.INVALID_CONFIG),
    "bad value": (topic(configs=config("retention.ms", "soon")), ErrorCode.INVALID_CONFIG),
    "null value": (topic(configs=config("retention.ms", None)), ErrorCode.INVALID_CONFIG),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("validate_only", [True, False])
async def test_what_is_wrong_is_refused_and_the_rest_created(
    dialog: Dialog, name: str, validate_only: bool
) -> None:
    await dialog.create_topic("there")
    asked, code = REFUSED[name]
    bad, good = await create(dialog, asked, topic("good"), validate_only=validate_only)
    assert (bad.error_code, good.error_code) == (code, 0)
    assert bad.error_message
    assert good.error_message is None
    assert (dialog.broker.topics.by_kafka_name("good") is None) is validate_only


async def test_a_name_that_occurs_twice_is_refused_twice(dialog: Dialog) -> None:
    results = await create(dialog, topic("a"), topic("b"), topic("a"))
    codes = [each.error_code for each in results]
    assert codes == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", range(8))
async def test_counts_may_be_left_to_the_node(dialog: Dialog, version: int) -> None:
    """Also before version 4, which the specification has it from: Kafka 4 takes it, kafkajs asks
    for it.
    """
    (result,) = await create(dialog, topic(partitions=-1, replicas=-1), version=version)
    assert result.error_code == 0
    created = dialog.broker.topics.by_kafka_name("orders")
    assert created is not None
    assert len(created.partitions) == dialog.broker.settings.default_partitions


async def test_partitions_may_be_placed_where_no_count_is_given(dialog: Dialog) -> None:
    placed = topic("placed", partitions=-1, assignments=assignments([0], [0]))
    (result,) = await create(dialog, placed)
    assert (result.error_code, result.num_partitions) == (0, 2)


@pytest.mark.parametrize("version", range(7))
async def test_every_version_deletes(dialog: Dialog, version: int) -> None:
    await dialog.create_topic()
    asked = [api("DeleteTopics").request.DeleteTopicState(name="orders")]
    response = await dialog.ask("DeleteTopics", version, topics=asked, topic_names=["orders"])
    assert [(each.name, each.error_code) for each in response.responses] == [("orders", 0)]
    result = await dialog.produce(encode_batch([Record(b"v")]))
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_topics_are_deleted_by_id_and_doubtful_requests_refused(dialog: Dialog) -> None:
    topic_id = await dialog.create_topic()
    asked = api("DeleteTopics").request.DeleteTopicState
    response = await dialog.ask(
        "DeleteTopics",
        topics=[
            asked(name="orders", topic_id=topic_id),
            asked(name="missing"),
            asked(name=None, topic_id=uuid4()),
            asked(name="twice"),
            asked(name="twice"),
            asked(name=None, topic_id=topic_id),
        ],
    )
    assert [each.error_code for each in response.responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        0,
    ]
    assert response.responses[-1].name == "orders"


async def test_a_topic_made_again_is_another_one(dialog: Dialog) -> None:
    first = await dialog.create_topic()
    await dialog.produce(encode_batch([Record(b"v")]))
    await dialog.ask(
        "DeleteTopics", topics=[api("DeleteTopics").request.DeleteTopicState(name="orders")]
    )
    assert await dialog.create_topic() != first
    assert (await dialog.fetch(0)).high_watermark == 0


async def grow(dialog: Dialog, *asked: Any, **fields: Any) -> list[int]:
    kind = api("CreatePartitions").request.CreatePartitionsTopic
    topics = [kind(name=name, count=count, assignments=nodes) for name, count, nodes in asked]
    response = await dialog.ask("CreatePartitions", topics=topics, **fields)
    return [each.error_code for each in response.results]


async def test_topics_grow_and_never_shrink(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=2)
    node = api("CreatePartitions").request.CreatePartitionsAssignment
    assert await grow(dialog, ("orders", 4, None), validate_only=True) == [0]
    assert await grow(dialog, ("orders", 2, None), ("none", 2, None)) == [
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert await grow(dialog, ("orders", 3, [node(broker_ids=[7])])) == [
        ErrorCode.INVALID_REPLICA_ASSIGNMENT
    ]
    assert await grow(dialog, ("orders", 3, [node(broker_ids=[0])])) == [0]
    assert await grow(dialog, ("orders", 4, None)) == [0]
    assert await grow(dialog, ("orders", 9, None), ("orders", 9, None)) == [42, 42]
    assert (await dialog.produce(encode_batch([Record(b"v")]), partition=3)).error_code == 0


async def describe(dialog: Dialog, kind: int, name: str, **fields: Any) -> Struct:
    resource = api("DescribeConfigs").request.DescribeConfigsResource(
        resource_type=kind, resource_name=name, **{"configuration_keys": None, **fields}
    )
    response = await dialog.ask("DescribeConfigs", resources=[resource], include_synonyms=True)
    result: Struct = response.results[0]
    return result


async def test_every_key_of_a_topic_is_listed(dialog: Dialog) -> None:
    await dialog.create_topic(message_timestamp_after_max_ms="1000")
    result = await describe(dialog, 2, "orders")
    entries = {each.name: each for each in result.configs}
    assert set(entries) == set(SETTING_OF_KEY)
    ahead, policy = entries["message.timestamp.after.max.ms"], entries["cleanup.policy"]
    assert (ahead.value, ahead.config_source, ahead.config_type) == ("1000", 1, 5)
    assert [(each.value, each.source) for each in ahead.synonyms] == [("1000", 1), ("3600000", 5)]
    assert (policy.value, policy.config_source) == ("delete", 5)
    some = await describe(dialog, 2, "orders", configuration_keys=["cleanup.policy", "no.such"])
    assert [each.name for each in some.configs] == ["cleanup.policy"]
    everything = await describe(dialog, 2, "orders", configuration_keys=[])
    assert everything.configs == result.configs


async def test_the_first_version_says_what_is_a_default(dialog: Dialog) -> None:
    await dialog.create_topic(message_timestamp_after_max_ms="1000")
    resource = api("DescribeConfigs").request.DescribeConfigsResource(
        resource_type=2, resource_name="orders", configuration_keys=None
    )
    (result,) = (await dialog.ask("DescribeConfigs", 0, resources=[resource])).results
    entries = {each.name: each for each in result.configs}
    assert set(entries) == set(SETTING_OF_KEY)
    assert [name for name, each in entries.items() if not each.is_default] == [
        "message.timestamp.after.max.ms"
    ]


NOT_IN_EFFECT = {
    "preallocate": "true",
    "message.timestamp.before.max.ms": "1000",
    "min.insync.replicas": "2",
    "flush.messages": "1",
    "remote.storage.enable": "true",
}


@pytest.mark.parametrize("key", NOT_IN_EFFECT)
@pytest.mark.parametrize("validate_only", [True, False])
async def test_what_is_not_in_effect_is_refused_by_name(
    dialog: Dialog, key: str, validate_only: bool
) -> None:
    asked = topic(configs=config(key, NOT_IN_EFFECT[key]))
    (result,) = await create(dialog, asked, validate_only=validate_only)
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert result.error_message.startswith(f"{key} is {NOT_IN_EFFECT[key]}, which is not in effect")
    assert dialog.broker.topics.all() == []


HOLDS_ANYWAY = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "segment.bytes": "1073741824",
    "index.interval.bytes": "4096",
}
"""What deploy scripts, Debezium and ksqlDB write although it is so without."""


async def test_what_holds_anyway_is_taken_and_shown_as_set(
    dialog: Dialog, caplog: pytest.LogCaptureFixture
) -> None:
    (result,) = await create(dialog, topic(configs=configs(HOLDS_ANYWAY)))
    assert result.error_code == 0
    entries = {each.name: each for each in (await describe(dialog, 2, "orders")).configs}
    assert {name: entries[name].value for name in HOLDS_ANYWAY} == HOLDS_ANYWAY
    assert {entries[name].config_source for name in HOLDS_ANYWAY} == {1}
    for forever in ("retention.ms", "retention.bytes"):
        asked = topic(forever, configs=config(forever, str(2**63 - 1)))
        assert (await create(dialog, asked))[0].error_code == 0
    assert not caplog.messages


IN_EFFECT = {
    "cleanup.policy",
    "min.compaction.lag.ms",
    "segment.bytes",
    "segment.ms",
    "retention.ms",
}
INTERNAL_TOPICS = {
    "Connect and schema registries": {"cleanup.policy": "compact"},
    "Streams, repartitioning": {
        "cleanup.policy": "delete",
        "segment.bytes": "52428800",
        "retention.ms": "-1",
        "message.timestamp.type": "CreateTime",
    },
    "Streams 1.1 to 2.0, repartitioning": {
        "cleanup.policy": "delete",
        "segment.bytes": "52428800",
        "segment.index.bytes": "52428800",
        "segment.ms": "600000",
        "retention.ms": "-1",
    },
    "Streams, changelog": {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"},
    "Streams, changelog of windows": {
        "cleanup.policy": "compact,delete",
        "retention.ms": "90000000",
        "message.timestamp.type": "CreateTime",
    },
    "Streams, changelog of a versioned store": {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": "86400000",
    },
}


@pytest.mark.parametrize("purpose", INTERNAL_TOPICS)
async def test_clients_get_the_topics_that_they_cannot_work_without(
    dialog: Dialog, purpose: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = INTERNAL_TOPICS[purpose]
    (result,) = await create(dialog, topic("internal", configs=configs(asked)))
    assert result.error_code == 0
    entries = {each.name: each.value for each in (await describe(dialog, 2, "internal")).configs}
    assert {name: entries[name] for name in asked} == asked
    missed = {
        name.replace(".", "_")
        for name, value in asked.items()
        if (name, value) not in HOLDS_ANYWAY.items() and name not in IN_EFFECT
    }
    assert len(caplog.messages) == bool(missed)
    for warning in caplog.messages:
        assert warning.startswith("topic internal: ")
        assert all(f"{name}=" in warning for name in missed)
        assert "segments are closed" in warning


def test_values_are_kept_in_one_form() -> None:
    asked = {"cleanup.policy": " compact , delete", "retention.ms": "+90"}
    assert check_configs(asked.items()) == {
        "cleanup_policy": "compact,delete",
        "retention_ms": "90",
    }


async def test_the_broker_tells_its_own(dialog: Dialog) -> None:
    entries = {each.name: each.value for each in (await describe(dialog, 4, "0")).configs}
    assert entries["auto.create.topics.enable"] == "true"
    assert entries["num.partitions"] == "1"
    assert (await describe(dialog, 4, "")).configs == []


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (4, "1", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (16, "", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_what_has_no_configuration_is_refused(
    dialog: Dialog, kind: int, name: str, code: int
) -> None:
    assert (await describe(dialog, kind, name)).error_code == code


def test_every_default_is_a_value_that_may_be_written() -> None:
    defaults = topic_entries(TopicConfig.of({}, BrokerSettings()))
    kept = check_configs((entry.name, entry.value) for entry in defaults)
    assert kept == {SETTING_OF_KEY[entry.name]: entry.value for entry in defaults}


async def test_log_directories_tell_folder_and_sizes(dialog: Dialog, tmp_path: Path) -> None:
    await dialog.create_topic(partitions=2)
    sent = encode_batch([Record(b"value")])
    await dialog.produce(sent, partition=1)
    request = api("DescribeLogDirs").request
    asked = [
        request.DescribableLogDirTopic(topic="orders", partitions=[1, 5]),
        request.DescribableLogDirTopic(topic="missing", partitions=[0]),
    ]
    for version in range(6):
        (everything,) = (await dialog.ask("DescribeLogDirs", version, topics=None)).results
        assert Path(everything.log_dir) == tmp_path
        assert [len(each.partitions) for each in everything.topics] == [2]
        (some,) = (await dialog.ask("DescribeLogDirs", version, topics=asked)).results
        ((part,),) = (each.partitions for each in some.topics)
        assert (part.partition_index, part.partition_size) == (1, len(sent))
        if version >= 4:
            assert some.total_bytes > some.usable_bytes > 0
