"""Goal: settings and partitions of a topic are changed under the names that a person knows."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
)

from broker_process import BrokerProcess
from command_line import Penstock
from patience import PATIENCE_SECONDS

SET, APPEND = AlterConfigOpType.SET, AlterConfigOpType.APPEND


def settings(penstock: Penstock, topic: str) -> dict[str, str]:
    described = json.loads(penstock("topic", "describe", topic, "-f", "json").stdout)
    config: dict[str, str] = described["config"]
    return config


@pytest.mark.parametrize(
    ("name", "value", "key", "kept"),
    [
        ("max.message.bytes", "5000", "max.message.bytes", "5000"),
        ("max_message_bytes", "5000", "max.message.bytes", "5000"),
        ("maxMessageSize", "5000", "max.message.bytes", "5000"),
        ("segment_size", "2 MiB", "segment.bytes", "2097152"),
        ("retentionTimeInMinutes", "3", "retention.ms", "180000"),
        ("retentionSizeInMB", "-1", "retention.bytes", "-1"),
        ("messageTTLInSeconds", "7", "penstock.message.ttl.ms", "7000"),
        ("message_expiry", "never", "retention.ms", "-1"),
        ("compression_algorithm", "gzip", "penstock.compression.label", "gzip"),
        ("durability", "persisted", "penstock.flush", "acknowledged"),
    ],
)
def test_a_setting_has_a_name_in_each_protocol(
    penstock: Penstock, topic: str, name: str, value: str, key: str, kept: str
) -> None:
    default = settings(penstock, topic)[key]
    told = json.loads(
        penstock("topic", "alter", topic, "--set", f"{name}={value}", "-f", "json").stdout
    )
    assert told["settings"] == [{"setting": key, "before": default, "after": kept}]
    assert settings(penstock, topic)[key] == kept
    table = penstock("topic", "alter", topic, "--unset", name).stdout
    assert table.split() == ["SETTING", "BEFORE", "AFTER", key, kept, default]
    assert settings(penstock, topic)[key] == default


def test_a_topic_is_created_under_any_names(penstock: Penstock) -> None:
    penstock("topic", "create", "cli-named", "--config", "segment_size=4MiB")
    assert settings(penstock, "cli-named")["segment.bytes"] == str(4 << 20)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "--set KEY=VALUE or --unset KEY"),
        (["--set", "segment.bytes"], 2, "KEY=VALUE"),
        (["--set", "no.such=1"], 2, 'a topic has no setting "no.such"'),
        (["--unset", "no.such"], 2, 'a topic has no setting "no.such"'),
        (["--set", "segment_size=many"], 2, "in Iggy it is: bytes at which a new segment begins"),
        (["--set", "durability=replicated"], 2, "sets nothing"),
        (["--set", "messageTTLInSeconds=soon"], 2, "in Pulsar it is a number"),
        (["--set", "retention.ms=-2"], 1, "an integer from -1"),
        (["--set", "retention.bytes=-2"], 1, "an integer from -1"),
        (["--set", "segment_size=2MiB", "--set", "segment.bytes=9"], 2, "a second time"),
        (["--set", "segment.bytes=2097152", "--unset", "segment_size"], 2, "by the same command"),
        (["--set", "min.insync.replicas=2"], 1, "there is one replica"),
        (["--set", "segment.bytes=12"], 1, "an integer from 1048576"),
    ],
)
def test_what_is_refused_says_what_is_needed(
    penstock: Penstock, topic: str, words: list[str], code: int, said: str
) -> None:
    before = settings(penstock, topic)
    assert said in penstock("topic", "alter", topic, *words, code=code).stderr
    assert settings(penstock, topic) == before


def test_partitions_are_added(penstock: Penstock, topic: str) -> None:
    told = penstock("topic", "add-partitions", topic, "2", "-f", "json").stdout
    assert json.loads(told) == {"topic": topic, "added": 2, "partitions": 5}
    assert penstock("topic", "add-partitions", topic, "1").stdout == (
        f"added 1 partition to {topic}, which has 6\n"
    )
    refused = penstock("topic", "add-partitions", topic, "100000", code=1).stderr
    assert "a topic has 1 to 10,000 partitions" in refused
    assert (
        "there is no such topic"
        in penstock("topic", "alter", "none", "--unset", "flush.ms", code=1).stderr
    )


def test_a_topic_is_ended_for_good(penstock: Penstock, topic: str) -> None:
    penstock("topic", "terminate", topic, code=1)
    assert settings(penstock, topic)["penstock.terminated"] == "false"
    assert penstock("topic", "terminate", topic, "--yes").stdout == f"terminated {topic}\n"
    assert settings(penstock, topic)["penstock.terminated"] == "true"
    words = ("topic", "alter", topic, "--set", "penstock.terminated=false")
    assert "can't be taken back" in penstock(*words, code=1).stderr


def test_what_a_real_client_changes_is_shown(
    penstock: Penstock, topic: str, shared_server: BrokerProcess
) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("segment.bytes", "3000000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
        ],
    )
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(timeout=PATIENCE_SECONDS)
    assert settings(penstock, topic)["segment.bytes"] == "3000000"
    assert settings(penstock, topic)["cleanup.policy"] == "delete,compact"
    for done in admin.create_partitions([NewPartitions(topic, 4)]).values():
        done.result(timeout=PATIENCE_SECONDS)
    assert penstock("topic", "add-partitions", topic, "1").stdout.endswith("which has 5\n")
