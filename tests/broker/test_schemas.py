"""Goal: a topic's schemas last, in versions; what one producer writes the topic's other clients
read; and no schema, however it is made, keeps others waiting.
"""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_SECONDS
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.errors import (
    IncompatibleSchemaError,
    TooManySchemasError,
    UnknownSchemaError,
    UnknownTopicError,
)
from penstock.broker.schemas import avro, registry
from penstock.broker.schemas.schema import Schema, SchemaKind
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.topic import Topic

ORDERS = TopicName("public", "default", "orders")


class Client:
    """Whoever has schemas."""


CLIENT = Client()
STRING = Schema(SchemaKind.STRING, "String", b"", {})


def record(*fields: Any, name: str = "Order", kind: SchemaKind = SchemaKind.AVRO) -> Schema:
    declared = {"type": "record", "name": name, "fields": [field_of(field) for field in fields]}
    return Schema(kind, name, json.dumps(declared).encode(), {"a": "b"})


def field_of(field: Any) -> dict[str, Any]:
    return field if isinstance(field, dict) else {"name": field, "type": "long"}


def optional(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "long"], "default": None}


def key_value(key: str, value: str, definition: bytes = b"") -> Schema:
    data = struct.pack(">i", 0) + struct.pack(">i", len(definition)) + definition
    properties = {"key.schema.type": key, "value.schema.type": value}
    return Schema(SchemaKind.KEY_VALUE, "kv", data, properties)


async def topic_of(broker: Broker) -> Topic:
    return await broker.topics.get_or_create(ORDERS, 1)


async def test_versions_are_numbered_and_found_again(broker: Broker) -> None:
    topic, schemas = await topic_of(broker), broker.schemas
    assert schemas.latest(topic) is None
    first, second = record("id"), record("id", optional("more"))
    assert (await schemas.register(CLIENT, topic, first)).version == 0
    assert (await schemas.register(CLIENT, topic, second)).version == 1
    assert (await schemas.register(CLIENT, topic, first)).version == 0
    assert schemas.get(topic, 1).schema == second
    latest = schemas.latest(topic)
    assert latest is not None
    assert latest.version == 1
    for version in (-1, 2):
        with pytest.raises(UnknownSchemaError):
            schemas.get(topic, version)


async def test_versions_last_and_go_with_their_topic(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await topic_of(broker)
    for schema in (record("id"), record("id", optional("more"))):
        await broker.schemas.register(CLIENT, topic, schema)
    await broker.close()
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await topic_of(broker)
    assert broker.schemas.get(topic, 0).schema == record("id")
    assert (await broker.schemas.register(CLIENT, topic, record("id"))).version == 0
    held = broker.memory.metadata.used
    await broker.topics.delete(topic)
    assert broker.memory.metadata.used < held
    topic = await topic_of(broker)
    assert broker.schemas.latest(topic) is None
    assert (await broker.schemas.register(CLIENT, topic, STRING)).version == 0
    await broker.close()


async def test_the_same_schema_is_one_version_however_it_is_written(broker: Broker) -> None:
    topic = await topic_of(broker)
    made = await asyncio.gather(
        *(
            broker.schemas.register(CLIENT, topic, record("id")._replace(definition=definition))
            for definition in (
                b'{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}',
                b'{ "name":"Order", "type":"record", "fields":[{"type":"long","name":"id"}]}\n',
            )
        )
    )
    assert [version.version for version in made] == [0, 0]


async def test_clients_define_what_needs_no_definition_as_they_like(broker: Broker) -> None:
    topic = await topic_of(broker)
    await broker.schemas.register(CLIENT, topic, STRING)
    of_python = Schema(SchemaKind.STRING, "STRING", b"null", {})
    assert (await broker.schemas.register(CLIENT, topic, of_python)).version == 0


COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED"]}
MORE_COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "left", "type": ["null", "Tree"]}, {"name": "size", "type": "int"}],
}


@pytest.mark.parametrize(
    ("reader", "writer", "reads"),
    [
        ("long", "int", True),
        ("int", "long", False),
        ("double", "float", True),
        ("bytes", "string", True),
        ("string", "long", False),
        (["null", "long"], "int", True),
        (["null", "string"], "int", False),
        ("long", ["long", "int"], True),
        ("long", ["null", "long"], False),
        (["null", "long"], ["null", "long"], True),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, True),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, False),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "string"}, False),
        ({"type": "map", "values": "long"}, {"type": "array", "items": "long"}, False),
        (COLOURS, MORE_COLOURS, True),
        (COLOURS, {**COLOURS, "name": "Shade"}, False),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 4},
            True,
        ),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 5},
            False,
        ),
        (TREE, TREE, True),
        (TREE, {**TREE, "name": "Bush", "fields": [{"name": "size", "type": "int"}]}, False),
        ({"type": "string", "avro.java.string": "String"}, "string", True),
        ({"type": {"type": "int", "logicalType": "date"}}, "int", True),
    ],
)
def test_avro_reads(reader: object, writer: object, reads: bool) -> None:
    assert avro.can_read(avro.parse(reader), avro.parse(writer)) is reads


def test_names_are_found_in_their_namespaces() -> None:
    declared = {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "colour", "type": COLOURS},
            {"name": "other", "type": "Colour"},
            {"name": "same", "type": "shop.Colour"},
        ],
    }
    fields = avro.parse(declared).fields
    assert fields["colour"].type is fields["other"].type is fields["same"].type


def test_what_a_failed_branch_counted_on_is_forgotten() -> None:
    def both(last: str) -> list[Any]:
        # Inner is readable only if Outer is, which its own last field decides.
        inner = {"type": "record", "name": "Inner", "fields": [{"name": "o", "type": "Outer"}]}
        fields = [{"name": "i", "type": inner}, {"name": "x", "type": last}]
        return [{"type": "record", "name": "Outer", "fields": fields}, "Inner"]

    reader, writer = avro.parse(both("int")), avro.parse(both("string"))
    assert not avro.can_read(reader, writer)


@pytest.mark.parametrize(
    "new",
    [
        STRING,
        record("id", "more"),
        record(),
        record({"name": "id", "type": "string"}),
        record("id", kind=SchemaKind.JSON),
    ],
    ids=["another kind", "a field more", "a field less", "another type", "json"],
)
async def test_what_would_break_readers_is_refused(broker: Broker, new: Schema) -> None:
    topic = await topic_of(broker)
    await broker.schemas.register(CLIENT, topic, record("id"))
    with pytest.raises(IncompatibleSchemaError):
        await broker.schemas.register(CLIENT, topic, new)
    assert len(broker.schemas.get(topic, 0).schema.definition) > 0
    with pytest.raises(UnknownSchemaError):
        broker.schemas.get(topic, 1)


async def test_a_reader_needs_to_read_and_no_more(broker: Broker) -> None:
    topic = await topic_of(broker)
    await broker.schemas.check_reader(CLIENT, topic, STRING)
    await broker.schemas.register(CLIENT, topic, record("id", "more"))
    await broker.schemas.check_reader(CLIENT, topic, record("id", name="Other"))
    await broker.schemas.check_reader(CLIENT, topic, record("id", "more"))
    for schema in (record("less"), STRING):
        with pytest.raises(IncompatibleSchemaError):
            await broker.schemas.check_reader(CLIENT, topic, schema)


async def test_keys_and_values_are_held_against_theirs(broker: Broker) -> None:
    topic = await topic_of(broker)
    value = record("id").definition
    await broker.schemas.register(CLIENT, topic, key_value("STRING", "AVRO", value))
    more = record("id", optional("more")).definition
    assert (
        await broker.schemas.register(CLIENT, topic, key_value("STRING", "AVRO", more))
    ).version == 1
    for schema in (
        key_value("INT32", "AVRO", value),
        key_value("STRING", "AVRO", record("x").definition),
        key_value("STRING", "KEY_VALUE"),
        key_value("STRING", "NOTHING"),
        key_value("STRING", "STRING")._replace(definition=b"\0\0"),
        key_value("STRING", "STRING")._replace(definition=bytes(9)),
        key_value("STRING", "STRING")._replace(definition=b"\xff" * 3 + b"\x7f" + bytes(4)),
    ):
        with pytest.raises(IncompatibleSchemaError):
            await broker.schemas.register(CLIENT, topic, schema)


async def test_messages_of_protobuf_keep_their_name(broker: Broker) -> None:
    def native(name: str, more: str = "") -> Schema:
        data = json.dumps({"rootMessageTypeName": name, "fileDescriptorSet": more}).encode()
        return Schema(SchemaKind.PROTOBUF_NATIVE, "p", data, {})

    topic = await topic_of(broker)
    await broker.schemas.register(CLIENT, topic, native("shop.Order"))
    assert (await broker.schemas.register(CLIENT, topic, native("shop.Order", "more"))).version == 1
    for schema in (native("shop.Bill"), native("shop.Order")._replace(definition=b"[]")):
        with pytest.raises(IncompatibleSchemaError):
            await broker.schemas.register(CLIENT, topic, schema)


async def test_json_of_before_avro_may_come_along(broker: Broker) -> None:
    def old(name: str) -> Schema:
        data = json.dumps({"type": "object", "id": name, "properties": {}}).encode()
        return Schema(SchemaKind.JSON, "j", data, {})

    topic = await topic_of(broker)
    await broker.schemas.register(CLIENT, topic, old("urn:Order"))
    with pytest.raises(IncompatibleSchemaError):
        await broker.schemas.register(CLIENT, topic, old("urn:Bill"))
    new = record("id", kind=SchemaKind.JSON)
    assert (await broker.schemas.register(CLIENT, topic, new)).version == 1


def nested(levels: int) -> bytes:
    return b'{"type":"array","items":' * levels + b'"int"' + b"}" * levels


def chain(length: int) -> bytes:
    """Records that each hold the one before it by its name."""
    first = {"type": "record", "name": "R0", "fields": [{"name": "g", "type": "int"}]}
    rest = [
        {"type": "record", "name": f"R{i}", "fields": [{"name": "f", "type": f"R{i - 1}"}]}
        for i in range(1, length)
    ]
    return json.dumps([first, *rest]).encode()


@pytest.mark.parametrize(
    "definition",
    [
        b"",
        b"{",
        b"\xff",
        b"7",
        b"{}",
        b"null",
        b'"Order"',
        b'{"type":"record","name":"R"}',
        b'{"type":"record","fields":[]}',
        b'{"type":"record","name":"R","fields":[{}]}',
        b'{"type":"record","name":"R","fields":[{"name":"f","type":"Nowhere"}]}',
        b'{"type":"fixed","name":"F"}',
        b'{"type":"fixed","name":"int","size":4}',
        b'{"type":"array"}',
        b"[" * 50_000,
        nested(1_000),
        b"[" + b'"int",' * 30_000 + b'"int"]',
    ],
)
async def test_what_is_no_schema_is_refused(broker: Broker, definition: bytes) -> None:
    topic = await topic_of(broker)
    with pytest.raises(IncompatibleSchemaError):
        await broker.schemas.register(CLIENT, topic, Schema(SchemaKind.AVRO, "x", definition, {}))
    assert broker.schemas.latest(topic) is None


@pytest.mark.parametrize(
    "definition",
    [chain(500), b"[" + b'"int",' * 300 + b'"string",' * 100 + b'"null"]'],
    ids=["deep", "wide"],
)
async def test_what_takes_long_to_compare_is_refused(broker: Broker, definition: bytes) -> None:
    topic = await topic_of(broker)
    schema = Schema(SchemaKind.AVRO, "x", definition, {})
    await broker.schemas.register(CLIENT, topic, schema)
    other = schema._replace(definition=definition.replace(b'"int"', b'{"type":"int","x":1}', 1))
    with pytest.raises(IncompatibleSchemaError, match="too complex"):
        await broker.schemas.register(CLIENT, topic, other)


async def test_schemas_are_bounded(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = await topic_of(broker)
    large = STRING._replace(properties={"k": "v" * limits.SCHEMA_BYTES})
    with pytest.raises(IncompatibleSchemaError, match="bytes"):
        await broker.schemas.register(CLIENT, topic, large)
    monkeypatch.setattr(limits, "SCHEMA_VERSIONS", 2)
    await broker.schemas.register(CLIENT, topic, record("id"))
    await broker.schemas.register(CLIENT, topic, record("id", optional("a")))
    with pytest.raises(TooManySchemasError):
        await broker.schemas.register(CLIENT, topic, record("id", optional("b")))
    monkeypatch.setattr(limits, "SCHEMA_VERSIONS", 3)
    monkeypatch.setattr(limits, "SCHEMAS_BYTES", 3_000)
    with pytest.raises(TooManySchemasError):
        await broker.schemas.register(CLIENT, topic, record("id", optional("b")))


async def test_a_topic_that_is_deleted_meanwhile_keeps_nothing(broker: Broker) -> None:
    topic = await topic_of(broker)
    held = broker.memory.metadata.used
    registering = asyncio.ensure_future(broker.schemas.register(CLIENT, topic, STRING))
    await asyncio.sleep(0)
    broker.schemas.forget(topic)
    with pytest.raises(UnknownTopicError):
        await registering
    assert broker.memory.metadata.used == held


async def test_huge_schemas_keep_nobody_from_its_turn(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: clients with schemas that take long, a hundred of them."""
    topic = await topic_of(broker)
    going_on, left = threading.Event(), threading.Event()
    check = registry.check_schema

    def slow(schema: Schema) -> None:
        if schema.name == "huge":
            going_on.set()
            assert left.wait(PATIENCE_SECONDS)
        check(schema)

    monkeypatch.setattr(registry, "check_schema", slow)
    huge = record("id", name="huge")._replace(properties={"k": "v" * 100_000})
    clients = [Client() for _ in range(100)]
    waiting = [
        asyncio.ensure_future(broker.schemas.register(client, topic, huge)) for client in clients
    ]
    assert await asyncio.to_thread(going_on.wait, PATIENCE_SECONDS)
    ordinary = record("id")._replace(properties={"k": "v" * 5_000})
    assert (await broker.schemas.register(CLIENT, topic, ordinary)).version == 0
    left.set()
    await asyncio.gather(*waiting)
