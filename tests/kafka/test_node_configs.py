"""Goal: what consoles read of the broker and of groups is what this broker does, and says who
decided it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dialog import Dialog, kafka_broker
from penstock.broker.settings import Flush
from penstock.broker.topics.settings import SETTINGS
from penstock.kafka.handlers.config_entries import NODE_KEYS
from penstock.kafka.handlers.node_meanings import MEANINGS
from penstock.kafka.topic_configs import SETTING_OF_KEY
from penstock.kafka.wire import ErrorCode, Struct, api
from penstock.log import LogConfig

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
OF_TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
SEGMENT_BYTES = 64 << 20


async def entries(
    dialog: Dialog, kind: int, name: str, version: int = 4, **asked: bool
) -> dict[str, Struct]:
    resource = api("DescribeConfigs").request.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    response = await dialog.ask(
        "DescribeConfigs", version, resources=[resource], include_synonyms=True, **asked
    )
    (result,) = response.results
    assert result.error_code == 0
    found = {entry.name: entry for entry in result.configs}
    assert len(found) == len(result.configs), "no key is listed twice"
    return found


def chain(entry: Struct) -> list[tuple[str, str, int]]:
    return [(each.name, each.value, each.source) for each in entry.synonyms]


WHAT_CONSOLES_READ = {
    "auto.create.topics.enable": "true",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "broker.id": "0",
    "compression.type": "producer",
    "default.replication.factor": "1",
    "delete.topic.enable": "true",
    "group.coordinator.rebalance.protocols": "classic",
    "inter.broker.protocol.version": "4.3-IV0",
    "listeners": "PLAINTEXT://:9092",
    "log.cleaner.enable": "true",
    "log.cleanup.policy": "delete",
    "log.message.timestamp.type": "CreateTime",
    "log.retention.bytes": "-1",
    "log.retention.hours": "-1",
    "log.retention.ms": "-1",
    "log.segment.bytes": str(1 << 30),
    "message.max.bytes": "1048588",
    "min.insync.replicas": "1",
    "node.id": "0",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "penstock.flush": "acknowledged",
    "sasl.enabled.mechanisms": "",
    "unclean.leader.election.enable": "false",
}


@pytest.mark.parametrize("version", range(1, 5))
async def test_the_keys_of_the_broker_say_what_it_does(tmp_path: Path, version: int) -> None:
    async with kafka_broker(tmp_path) as broker:
        found = await entries(Dialog(broker), BROKER, "0", version)
    assert {name: found[name].value for name in WHAT_CONSOLES_READ} == WHAT_CONSOLES_READ
    assert Path(found["log.dirs"].value) == tmp_path
    assert set(NODE_KEYS.values()) <= set(found)
    assert set(NODE_KEYS) <= set(SETTING_OF_KEY)
    assert all(entry.read_only for entry in found.values())
    assert all(
        (entry.value, entry.config_source) == chain(entry)[0][1:] for entry in found.values()
    )


async def test_keys_say_what_they_mean_to_who_asks(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic("orders")
        of_topic = await entries(dialog, TOPIC, "orders", include_documentation=True)
        of_node = await entries(dialog, BROKER, "0", include_documentation=True)
        of_group = await entries(dialog, GROUP, "g", include_documentation=True)
        unasked = await entries(dialog, TOPIC, "orders")
    meanings = {key: SETTINGS[name].meaning for key, name in SETTING_OF_KEY.items()}
    assert {name: entry.documentation for name, entry in of_topic.items()} == meanings
    assert {key: of_node[node_key].documentation for key, node_key in NODE_KEYS.items()} == {
        key: meanings[key] for key in NODE_KEYS
    }
    assert all(entry.documentation for entry in of_node.values())
    assert {entry.documentation for entry in of_group.values()} <= set(MEANINGS.values())
    assert {entry.documentation for entry in unasked.values()} == {None}


async def test_a_subscription_to_metrics_asks_for_none(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        found = await entries(Dialog(broker), CLIENT_METRICS, "any")
    values = {name: entry.value for name, entry in found.items()}
    assert values == {"interval.ms": "300000", "match": "", "metrics": ""}
    assert {entry.config_source for entry in found.values()} == {DEFAULT}


async def test_what_an_operator_set_is_told_from_a_default(tmp_path: Path) -> None:
    set_by_operator = {
        "auto_create_topics": False,
        "default_partitions": 6,
        "flush": Flush.WRITTEN,
        "log": LogConfig(segment_bytes=SEGMENT_BYTES),
    }
    async with kafka_broker(tmp_path, **set_by_operator) as broker:
        dialog = Dialog(broker)
        found = await entries(dialog, BROKER, "0")
        await dialog.create_topic("plain")
        await dialog.create_topic("small", segment_bytes="1048576")
        plain = await entries(dialog, TOPIC, "plain")
        small = await entries(dialog, TOPIC, "small")
    assert chain(found["num.partitions"]) == [
        ("num.partitions", "6", STATIC_BROKER),
        ("num.partitions", "1", DEFAULT),
    ]
    assert found["auto.create.topics.enable"].config_source == STATIC_BROKER
    assert found["message.max.bytes"].config_source == DEFAULT
    of_node = [
        ("log.segment.bytes", str(SEGMENT_BYTES), STATIC_BROKER),
        ("log.segment.bytes", str(1 << 30), DEFAULT),
    ]
    assert chain(found["log.segment.bytes"]) == of_node
    assert plain["segment.bytes"].config_source == STATIC_BROKER
    assert chain(plain["segment.bytes"]) == of_node
    assert chain(small["segment.bytes"]) == [("segment.bytes", "1048576", OF_TOPIC), *of_node]
    assert plain["penstock.flush"].value == "written"


async def test_what_is_asked_for_twice_is_refused_each_time(tmp_path: Path) -> None:
    kind = api("DescribeConfigs").request.DescribeConfigsResource
    asked = [(BROKER, "0"), (GROUP, "0"), (BROKER, "0")]
    resources = [
        kind(resource_type=each, resource_name=name, configuration_keys=None)
        for each, name in asked
    ]
    async with kafka_broker(tmp_path) as broker:
        response = await Dialog(broker).ask("DescribeConfigs", resources=resources)
    assert [(each.error_code, len(each.configs)) for each in response.results] == [
        (ErrorCode.INVALID_REQUEST, 0),
        (ErrorCode.NONE, 2),
        (ErrorCode.INVALID_REQUEST, 0),
    ]


async def test_any_group_has_its_keys(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        found = await entries(Dialog(broker), GROUP, "readers")
    assert {name: entry.value for name, entry in found.items()} == {
        "consumer.heartbeat.interval.ms": "5000",
        "consumer.session.timeout.ms": "45000",
    }
    for name, entry in found.items():
        assert chain(entry) == [(f"group.{name}", entry.value, DEFAULT)]
        assert entry.read_only, "nothing changes it"
