"""The answer of each Kafka API, in each version, that says that all has failed."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from penstock.kafka.handlers import HANDLERS
from penstock.kafka.wire import ErrorCode, decode_response, encode_response
from penstock.kafka.wire.schema import Field
from penstock.testing.protocols.kafka import failed_reply

SERVED = [
    (handler.api, version)
    for handler in HANDLERS.values()
    for version in range(handler.versions.first, handler.versions.last + 1)
    if handler.api.name != "Metadata"
]
ID = uuid.uuid4()


def asked(request: Any, struct: Any, version: int) -> Any:
    """A request in which every field of its version is set, and every array has two elements."""
    made = getattr(request, struct.name)()
    for field in struct.fields:
        if version in field.versions and field.name != "forgotten_topics_data":
            setattr(made, field.name, value(request, field, version))
    return made


def value(request: Any, field: Field, version: int) -> Any:
    if field.is_array:
        return [one(request, field, version) for _ in range(2)]
    return one(request, field, version)


def one(request: Any, field: Field, version: int) -> Any:
    if field.struct is not None:
        return asked(request, field.struct, version)
    made = {
        "string": "name",
        "uuid": ID,
        "bool": True,
        "bytes": b"",
        "records": b"",
        "float64": 0.5,
    }
    return made.get(field.type, 3)


@pytest.mark.parametrize(("api", "version"), SERVED, ids=lambda each: getattr(each, "name", each))
def test_the_client_reads_the_error(api: Any, version: int) -> None:
    message = asked(api.request, api.request.root, version)
    reply = failed_reply(api, message, version, ErrorCode.NOT_COORDINATOR)
    frame = b"".join(map(bytes, encode_response(api, version, 1, reply)))
    _, read = decode_response(api, version, memoryview(frame))
    assert ErrorCode.NOT_COORDINATOR in codes(read), read


def codes(message: Any) -> set[int]:
    found = set()
    for name in getattr(message, "field_names", ()):
        held = getattr(message, name)
        if name in {"error_code", "partition_error_code"}:
            found.add(held)
        for each in held if isinstance(held, list) else [held]:
            found |= codes(each)
    return found


def test_each_partition_of_a_produce_is_named() -> None:
    (api,) = (api for api, version in SERVED if api.name == "Produce" and version == 9)
    request = asked(api.request, api.request.root, 9)
    request.topic_data[1].name = "other"
    request.topic_data[1].partition_data[1].index = 7
    reply = failed_reply(api, request, 9, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    found = [
        (topic.name, each.index, each.error_code)
        for topic in reply.responses
        for each in topic.partition_responses
    ]
    assert found == [("name", 3, 6), ("name", 3, 6), ("other", 3, 6), ("other", 7, 6)]


def test_a_fetch_fails_by_partition_and_not_as_a_session() -> None:
    (api,) = (api for api, version in SERVED if api.name == "Fetch" and version == 12)
    reply = failed_reply(api, asked(api.request, api.request.root, 12), 12, 6)
    assert reply.error_code == 0
    assert {each.error_code for topic in reply.responses for each in topic.partitions} == {6}
    assert failed_reply(api, api.request(), 12, 6).error_code == 6


def test_keys_and_groups_are_named() -> None:
    for name, version, array, field in (
        ("FindCoordinator", 4, "coordinators", "key"),
        ("DeleteGroups", 2, "results", "group_id"),
        ("DeleteTopics", 5, "responses", "name"),
        ("DescribeConfigs", 4, "results", "resource_name"),
    ):
        (api,) = (api for api, each in SERVED if api.name == name and each == version)
        reply = failed_reply(api, asked(api.request, api.request.root, version), version, 16)
        found = {(getattr(each, field), each.error_code) for each in getattr(reply, array)}
        assert found == {("name", 16)}
