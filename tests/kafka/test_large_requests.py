"""Goal: a request with many elements is answered as any other one, and others go on meanwhile.

Method: passes of the event loop are counted between a request and its answer: one request that is
carried out in one go leaves a handful.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka_dialog import TOPIC, Dialog
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import api

MANY = 5_000


def batch(value: bytes) -> bytearray:
    return encode_batch([Record(value)])


def topics(name: str, struct: str, **fields: object) -> list[Any]:
    """One topic with many partitions; `struct` is how the names of both structs of an API begin."""
    request = api(name).request
    topic_type = getattr(request, f"{struct}Topic")
    parts = [getattr(request, f"{struct}Partition")(**fields) for _ in range(MANY)]
    topic_field = "name" if hasattr(topic_type(), "name") else "topic"
    return [topic_type(**{topic_field: TOPIC, "partitions": parts})]


def metadata() -> dict[str, object]:
    topic_type = api("Metadata").request.MetadataRequestTopic
    asked = [topic_type(name=f"missing-{number}") for number in range(MANY)]
    return {"topics": asked, "allow_auto_topic_creation": False}


def describe_configs() -> dict[str, object]:
    resource_type = api("DescribeConfigs").request.DescribeConfigsResource
    return {
        "resources": [
            resource_type(
                resource_type=32, resource_name=f"group-{number}", configuration_keys=None
            )
            for number in range(MANY)
        ]
    }


def create_topics() -> dict[str, object]:
    topic_type = api("CreateTopics").request.CreatableTopic
    bad = [topic_type(name=f"no name {number}", num_partitions=1) for number in range(MANY)]
    return {"topics": bad, "timeout_ms": 1000}


def offset_fetch() -> dict[str, object]:
    request = api("OffsetFetch").request
    topic = request.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0] * MANY)
    return {"group_id": "group", "topics": [topic]}


Check = Callable[[Any], int]
"""Counts what was answered."""

REQUESTS: dict[str, tuple[int, Callable[[], dict[str, object]], Check]] = {
    "Metadata": (9, metadata, lambda answer: len(answer.topics)),
    "DescribeConfigs": (4, describe_configs, lambda answer: len(answer.results)),
    "CreateTopics": (5, create_topics, lambda answer: len(answer.topics)),
    "FindCoordinator": (
        4,
        lambda: {"coordinator_keys": [f"group-{number}" for number in range(MANY)]},
        lambda answer: len(answer.coordinators),
    ),
    "DescribeGroups": (
        5,
        lambda: {"groups": [f"group-{number}" for number in range(MANY)]},
        lambda answer: len(answer.groups),
    ),
    "DeleteGroups": (
        2,
        lambda: {"groups_names": [f"group-{number}" for number in range(MANY)]},
        lambda answer: len(answer.results),
    ),
    "OffsetFetch": (7, offset_fetch, lambda answer: len(answer.topics[0].partitions)),
    "ListOffsets": (
        5,
        lambda: {"topics": topics("ListOffsets", "ListOffsets", timestamp=-1)},
        lambda answer: len(answer.topics[0].partitions),
    ),
    "OffsetForLeaderEpoch": (
        4,
        lambda: {"topics": topics("OffsetForLeaderEpoch", "OffsetForLeader")},
        lambda answer: len(answer.topics[0].partitions),
    ),
    "OffsetCommit": (
        7,
        lambda: {
            "group_id": "group",
            "generation_id_or_member_epoch": -1,
            "topics": topics("OffsetCommit", "OffsetCommitRequest"),
        },
        lambda answer: len(answer.topics[0].partitions),
    ),
    "Fetch": (
        11,
        lambda: {
            "max_wait_ms": 0,
            "max_bytes": 1,
            "topics": topics("Fetch", "Fetch"),
        },
        lambda answer: len(answer.responses[0].partitions),
    ),
}


async def passes_until(answer: asyncio.Future[Any]) -> int:
    passes = 0
    while not answer.done():
        await asyncio.sleep(0)
        passes += 1
    return passes


@pytest.mark.parametrize("name", REQUESTS)
async def test_others_go_on_while_many_elements_are_asked(dialog: Dialog, name: str) -> None:
    await dialog.create_topic()
    version, fields, count = REQUESTS[name]
    answer = dialog.send(name, version, **fields())
    # A step is a millisecond: less than all of this takes anywhere.
    assert await passes_until(answer) > 12
    assert count(await answer) == MANY


async def test_batches_of_a_large_produce_and_of_the_one_behind_it_are_in_order(
    dialog: Dialog,
) -> None:
    await dialog.create_topic()
    large = dialog.send("Produce", 9, **dialog.produce_fields(*[(0, batch(b"first"))] * 600))
    small = dialog.send("Produce", 9, **dialog.produce_fields((0, batch(b"second"))))
    answers = (await large).responses[0].partition_responses
    assert [each.base_offset for each in answers] == list(range(600))
    assert (await small).responses[0].partition_responses[0].base_offset == 600


async def test_more_elements_than_any_request_may_have_close_the_connection(
    dialog: Dialog,
) -> None:
    keys = ["x"] * 100_001
    with pytest.raises(Exception, match="too many elements"):
        await dialog.ask("FindCoordinator", 4, coordinator_keys=keys)
