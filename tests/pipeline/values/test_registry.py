"""Schemas from a registry: values of several versions in one batch, and a registry that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from avro_values import encode, field, record
from located import located
from penstock.pipeline.values import registry as client
from penstock.pipeline.values.column_decoder import ColumnDecoder, Rejected
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.options import ColumnOptions
from penstock.pipeline.values.registry import RegistryError
from penstock.pipeline.values.schemas import ColumnSchema, resolve_again, resolve_column
from schema_registry import SchemaRegistry, framed, schema_registry

FIRST = record(field("id", "int"), field("name", "string"))
SECOND = record(
    field("id", "long"), field("name", "string"), field("note", ["null", "string"], default=None)
)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    client.schema_by_id.cache_clear()
    with schema_registry() as running:
        yield running


def resolve(registry: SchemaRegistry, *topics: str, **more: Any) -> ColumnSchema:
    options = ColumnOptions(
        "schema", more.pop("url", registry.url), **{"subject": None, **more}, message=None
    )
    return resolve_column(options, topics or ("orders",), "value")


def decode(schema: ColumnSchema, *values: bytes | None) -> tuple[list[Any], list[Rejected]]:
    rows, rejected = ColumnDecoder(schema).decode(located(values))
    assert rows.type == schema.struct
    return rows.to_pylist(), rejected


def test_versions_in_one_batch_are_read_as_the_newest(registry: SchemaRegistry) -> None:
    old = registry.register("orders-value", FIRST)
    new = registry.register("orders-value", SECOND)
    schema = resolve(registry)
    (first,) = encode(FIRST, {"id": 1, "name": "a"})
    (second,) = encode(SECOND, {"id": 2**40, "name": "b", "note": "c"})
    values = [
        framed(new, second),
        framed(old, first),
        None,
        framed(new, second),
        framed(old, first),
    ]
    rows, rejected = decode(schema, *values)
    assert not rejected
    newer = {"id": 2**40, "name": "b", "note": "c"}
    older = {"id": 1, "name": "a", "note": None}
    assert rows == [newer, older, None, newer, older]
    assert registry.requests.count(f"/schemas/ids/{old}") == 1


def test_what_is_not_in_the_format_or_of_no_schema_costs_its_own_row(
    registry: SchemaRegistry,
) -> None:
    number = registry.register("orders-value", FIRST)
    other = registry.register("other", record(field("name", "bytes")))
    strings = registry.register("text", {"type": "object"}, "JSON")
    schema = resolve(registry)
    (good,) = encode(FIRST, {"id": 1, "name": "a"})
    values = [
        b"",
        b"\0\0\0",
        b"\1" + framed(number, good)[1:],
        framed(number, good),
        framed(77, good),
        framed(other, b"\x02a"),
        framed(strings, b"{}"),
        framed(number, good[:-1]),
    ]
    rows, rejected = decode(schema, *values)
    assert [row is None for row in rows] == [n != 3 for n in range(8)]
    reasons = {each.row: (each.reason, each.schema_id) for each in rejected}
    assert all("does not begin with a schema's id" in reasons[row][0] for row in (0, 1, 2))
    assert "has no /schemas/ids/77: Schema not found" in reasons[4][0]
    assert reasons[5][0].startswith(f"schema {other} can't be read with that of the reader")
    assert f"schema {strings} is of type JSON" in reasons[6][0]
    assert reasons[7] == ("name: it ends too early (byte 2)", number)


def test_json_schema_and_references(registry: SchemaRegistry) -> None:
    address = {"type": "object", "properties": {"city": {"type": "string"}}}
    registry.register("address", address, "JSON")
    order = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "to": {"$ref": "address.json"}},
    }
    references = [{"name": "address.json", "subject": "address", "version": 1}]
    number = registry.register("orders-value", order, "JSON", references)
    schema = resolve(registry)
    rows, rejected = decode(schema, framed(number, b'{"id": 1, "to": {"city": "Ulm"}}'))
    assert (rows, rejected) == ([{"id": 1, "to": {"city": "Ulm"}}], [])


def test_avro_references(registry: SchemaRegistry) -> None:
    inner = record(field("city", "string"), name="Address")
    registry.register("address", inner)
    outer = record(field("to", "Address"))
    references = [{"name": "Address", "subject": "address", "version": 1}]
    number = registry.register("orders-value", outer, references=references)
    rows, rejected = decode(resolve(registry), framed(number, b"\x06Ulm"))
    assert (rows, rejected) == ([{"to": {"city": "Ulm"}}], [])


def test_topics_with_other_columns_are_told_apart(registry: SchemaRegistry) -> None:
    registry.register("a-value", FIRST)
    registry.register("b-value", FIRST)
    registry.register("c-value", SECOND)
    assert resolve(registry, "a", "b").struct.names == ["id", "name"]
    with pytest.raises(SchemaError, match=r"a-value and c-value have other columns.*schemaSubject"):
        resolve(registry, "a", "c")
    assert resolve(registry, "a", "c", subject="a-value").struct.names == ["id", "name"]


def test_columns_widen_from_batch_to_batch(registry: SchemaRegistry) -> None:
    options = ColumnOptions("schema", registry.url, None, None)
    registry.register("orders-value", FIRST)
    before = resolve_column(options, ["orders"], "value")
    registry.register("orders-value", record(*SECOND["fields"][:1], *SECOND["fields"][2:]))
    after = resolve_again(before, options, ["orders"], "value")
    assert [(each.name, str(each.type)) for each in after.struct.fields] == [
        ("id", "int64"),
        ("name", "string"),
        ("note", "string"),
    ]
    newest = registry.subjects["orders-value"][-1]
    rows, rejected = decode(after, framed(newest, b"\x02\x02\x02x"))
    assert (rows, rejected) == ([{"id": 1, "name": None, "note": "x"}], [])
    registry.register("orders-value", record(field("id", "string")))
    with pytest.raises(SchemaError, match="schema: column id was of type int64 and is of type str"):
        resolve_again(after, options, ["orders"], "value")


def test_a_name_and_a_password_are_sent_and_never_said(registry: SchemaRegistry) -> None:
    url = registry.url.replace("http://", "http://me:p%40ss@")
    with pytest.raises(RegistryError) as raised:
        resolve(registry, url=url)
    assert registry.authorization == "Basic bWU6cEBzcw=="
    assert "p@ss" not in str(raised.value)
    assert "p%40ss" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html><body>Hello</body></html>", "is no schema registry: it answers '<html>"),
        (200, b"[1]", "is no schema registry"),
        (200, b"{}", "answers without a schema: is it a schema registry"),
        (200, b"[" * 100_000, "is no schema registry"),
        (200, b'{"schema": "\\"int\\"", "schemaType": "XML"}', "of the unknown type XML"),
        (200, b'{"schema": "\\"int\\""}', "columns need one of type record"),
        (200, b'{"schema": "{", "id": 1}', "schema: the Avro schema is no JSON"),
        (200, b'{"schema": "{}", "references": [7]}', "a reference names 7"),
        (200, b'{"schema": "%s"}' % (b"x" * (5 << 20)), "answers more than 4 MiB"),
        (401, b"{}", "lets nobody in without the right name and password"),
        (500, b"oh", "answers 500 to /subjects/orders-value/versions/latest"),
        (404, b"Not Found", "answers 404"),
    ],
)
def test_a_registry_that_answers_nonsense(
    registry: SchemaRegistry,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: bytes,
    message: str,
) -> None:
    monkeypatch.setattr(client, "_RETRY_SECONDS", (0.0, 0.0))
    registry.status, registry.body = status, body
    with pytest.raises(SchemaError, match=message) as raised:
        resolve(registry)
    assert str(raised.value).startswith("schema:")
    assert len(registry.requests) == (3 if status == 500 else 1)


def test_a_registry_that_is_away_or_slow(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_RETRY_SECONDS", (0.0, 0.0))
    with pytest.raises(
        RegistryError, match=r"127\.0\.0\.1:1 does not answer.*Start it, or correct sch"
    ):
        resolve(registry, url="http://127.0.0.1:1")
    with pytest.raises(RegistryError, match="does not answer"):
        resolve(registry, url="http://no.such.host.invalid")
    monkeypatch.setattr(client, "DEADLINE_SECONDS", 0)
    registry.body, registry.delay_seconds = b" " * (1 << 20), 0.01
    with pytest.raises(RegistryError, match="takes more than 0 s for one schema"):
        resolve(registry)


def test_a_missing_subject(registry: SchemaRegistry) -> None:
    with pytest.raises(RegistryError, match="has no /subjects/orders-value/versions/latest"):
        resolve(registry)


def test_references_that_never_end(registry: SchemaRegistry) -> None:
    def refer(subject: str) -> list[Any]:
        return [{"name": subject, "subject": subject, "version": 1}]

    registry.register("a", record(), references=refer("b"))
    registry.register("b", record(), references=refer("a"))
    registry.register("orders-value", record(), references=refer("a"))
    with pytest.raises(RegistryError, match="the schema a 1 refers to itself by its references"):
        resolve(registry)
    for number in range(150):
        registry.register(f"n{number}", record(), references=refer(f"n{number + 1}"))
    registry.register("long-value", record(), references=refer("n0"))
    with pytest.raises(RegistryError, match="refers to more than 100"):
        resolve(registry, "long")


def test_json_of_a_schema_is_what_the_registry_has(registry: SchemaRegistry) -> None:
    number = registry.register("orders-value", FIRST)
    known = client.Registry(registry.url, "schema").by_id(number)
    assert (json.loads(known.text), known.kind, known.references) == (FIRST, "AVRO", ())


def test_a_pattern_of_topics_has_no_subject(registry: SchemaRegistry) -> None:
    registry.register("orders-value", FIRST)
    named = ColumnOptions("schema", registry.url, "orders-value", None)
    assert resolve_column(named, (), "value").struct.names == ["id", "name"]
    unnamed = ColumnOptions("schema", registry.url, None, None)
    with pytest.raises(SchemaError, match=r"schema: subscribePattern.*schemaSubject"):
        resolve_column(unnamed, (), "value")
