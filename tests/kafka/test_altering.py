"""Goal: settings of topics change one by one, all of a request or none (KIP-339)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_dialog import Dialog
from penstock.kafka.wire import ErrorCode, Struct, api

TYPES = api("IncrementalAlterConfigs").request
SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(*changes: tuple[str, int, str | None], name: str = "orders", kind: int = 2) -> Struct:
    configs = [
        TYPES.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    return TYPES.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


async def alter(dialog: Dialog, *resources: Struct, **fields: Any) -> list[int]:
    response = await dialog.ask("IncrementalAlterConfigs", resources=list(resources), **fields)
    return [each.error_code for each in response.responses]


def explicit(dialog: Dialog) -> dict[str, str]:
    topic = dialog.broker.topics.by_kafka_name("orders")
    assert topic is not None
    return dict(topic.config.explicit)


async def test_settings_are_set_removed_extended_and_cut(dialog: Dialog) -> None:
    await dialog.create_topic(max_message_bytes="5000")
    assert await alter(
        dialog,
        resource(
            ("segment.bytes", SET, "2000000"),
            ("max.message.bytes", DELETE, None),
            ("cleanup.policy", APPEND, "compact"),
            ("flush.ms", DELETE, None),
        ),
    ) == [0]
    assert explicit(dialog) == {"segment_bytes": "2000000", "cleanup_policy": "delete,compact"}
    assert await alter(dialog, resource(("cleanup.policy", SUBTRACT, "delete"))) == [0]
    assert explicit(dialog)["cleanup_policy"] == "compact"
    assert await alter(dialog, resource(("cleanup.policy", SUBTRACT, "compact"))) == [0]
    assert explicit(dialog)["cleanup_policy"] == ""
    assert await alter(dialog, resource(("cleanup.policy", APPEND, "delete"))) == [0]
    assert explicit(dialog)["cleanup_policy"] == "delete"


REFUSED = {
    "unknown key": ((("no.such", SET, "1"),), ErrorCode.INVALID_CONFIG),
    "removing an unknown key": ((("no.such", DELETE, None),), ErrorCode.INVALID_CONFIG),
    "not in effect": ((("min.insync.replicas", SET, "2"),), ErrorCode.INVALID_CONFIG),
    "a negative size": ((("retention.bytes", SET, "-2"),), ErrorCode.INVALID_CONFIG),
    "a negative time": ((("retention.ms", SET, "-2"),), ErrorCode.INVALID_CONFIG),
    "no list": ((("segment.bytes", APPEND, "1"),), ErrorCode.INVALID_CONFIG),
    "no item of a list": ((("cleanup.policy", APPEND, "all"),), ErrorCode.INVALID_CONFIG),
    "null": ((("segment.bytes", SET, None),), ErrorCode.INVALID_REQUEST),
    "no operation": ((("segment.bytes", 9, "1"),), ErrorCode.INVALID_REQUEST),
    "twice": (
        (("segment.bytes", SET, "2000000"), ("segment.bytes", DELETE, None)),
        ErrorCode.INVALID_REQUEST,
    ),
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_all_changes_are_made_or_none(dialog: Dialog, why: str, validate_only: bool) -> None:
    await dialog.create_topic(max_message_bytes="5000")
    changes, code = REFUSED[why]
    asked = resource(("max.message.bytes", SET, "6000"), *changes)
    assert await alter(dialog, asked, validate_only=validate_only) == [code]
    assert explicit(dialog) == {"max_message_bytes": "5000"}


async def test_each_resource_stands_by_itself(dialog: Dialog) -> None:
    await dialog.create_topic()
    change = ("segment.bytes", SET, "2000000")
    assert await alter(
        dialog,
        resource(change, name="missing"),
        resource(change, name="0", kind=4),
        resource(change, name="twice"),
        resource(change, name="twice"),
        resource(change),
    ) == [3, 42, 42, 42, 0]
    assert explicit(dialog) == {"segment_bytes": "2000000"}


NODE = 4
OF_NODE = [
    ("0", [("leader.replication.throttled.rate", DELETE, None)], 0),
    ("", [("node.id", DELETE, None), ("no.such", DELETE, None)], 0),
    ("0", [], 0),
    ("9", [], ErrorCode.INVALID_REQUEST),
    ("0", [("log.cleaner.threads", SET, "2")], ErrorCode.INVALID_REQUEST),
    ("0", [("node.id", DELETE, None), ("advertised.listeners", APPEND, "a")], 42),
]


@pytest.mark.parametrize(("name", "changes", "code"), OF_NODE)
async def test_a_node_is_left_as_it_is(
    dialog: Dialog, name: str, changes: list[tuple[str, int, str | None]], code: int
) -> None:
    """The tool that moves partitions takes back what slows them down, also where nothing does."""
    assert await alter(dialog, resource(*changes, name=name, kind=NODE)) == [code]


async def test_validating_changes_nothing(dialog: Dialog) -> None:
    await dialog.create_topic()
    asked = resource(("segment.bytes", SET, "2000000"))
    assert await alter(dialog, asked, validate_only=True) == [0]
    assert explicit(dialog) == {}


async def test_changes_at_one_time_are_all_kept(dialog: Dialog) -> None:
    await dialog.create_topic()
    keys = {"segment.bytes": "2000000", "max.message.bytes": "7", "segment.ms": "8"}
    others = [Dialog(dialog.broker) for _ in keys]
    made = [
        alter(other, resource((key, SET, value)))
        for other, (key, value) in zip(others, keys.items(), strict=True)
    ]
    assert await asyncio.gather(*made) == [[0], [0], [0]]
    assert explicit(dialog) == {key.replace(".", "_"): value for key, value in keys.items()}


async def test_a_topic_may_stop_being_compacted(dialog: Dialog) -> None:
    await dialog.create_topic(cleanup_policy="compact", min_compaction_lag_ms="5")
    assert dialog.broker.topics.all()[0].config.compaction.is_on
    assert await alter(dialog, resource(("cleanup.policy", SET, "delete"))) == [0]
    assert explicit(dialog) == {"cleanup_policy": "delete", "min_compaction_lag_ms": "5"}
    assert dialog.broker.topics.all()[0].config.compaction.is_idle
