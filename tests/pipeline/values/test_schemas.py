"""Which schema an option names, and which columns follow which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from avro_values import field, record
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.evolution import widened
from penstock.pipeline.values.json_schema import parse_json_schema
from penstock.pipeline.values.options import ColumnOptions
from penstock.pipeline.values.schemas import ColumnSchema, Encoding, resolve_column

JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"$ref": "#/$defs/place"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "state": {"enum": ["a", "b"]},
        "all": {"allOf": [{"$ref": "#/$defs/place"}, {"properties": {"b": {"type": "boolean"}}}]},
        "open": True,
    },
    "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def resolve(schema: str) -> ColumnSchema:
    return resolve_column(ColumnOptions("schema", schema, None, None), ["orders"], "value")


def test_json_schema_makes_columns() -> None:
    assert parse_json_schema(json.dumps(JSON_SCHEMA)) == parse_ddl(
        "id BIGINT, price DOUBLE, at TIMESTAMP, day DATE, tags ARRAY<STRING>, "
        "place STRUCT<city: STRING>, counts MAP<STRING, BIGINT>, either STRING, state STRING, "
        "all STRUCT<city: STRING, b: BOOLEAN>, open STRING"
    )


def laughs(levels: int) -> dict[str, Any]:
    inner = {
        f"l{n}": {"properties": {side: {"$ref": f"#/$defs/l{n + 1}"} for side in "ab"}}
        for n in range(levels)
    }
    return {"properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": inner | {f"l{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string"}, "columns need an object"),
        ({"properties": {"a": {"$ref": "#"}}}, "a part of itself"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "refers to '#/\\$defs/b', which is not"),
        ({"properties": {"a": {"$ref": "http://x/y"}}}, "refers to 'http://x/y', which is not"),
        (laughs(30), "more than 20000 types"),
    ],
)
def test_a_json_schema_that_can_not_be_says_why(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_json_schema(json.dumps(schema))


def test_files_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    avro, schema = tmp_path / "a.json", tmp_path / "b.json"
    avro.write_text(json.dumps(record(field("id", "int"))))
    schema.write_text(json.dumps(JSON_SCHEMA))
    assert resolve(str(avro)).encoding is Encoding.AVRO
    assert resolve(str(schema)).encoding is Encoding.JSON
    assert resolve("id INT").struct == pa.struct([("id", pa.int32())])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.avsc", None, "schema: the file .*a.avsc can't be read: No such file"),
        ("a.json", b"\xff", "is neither Avro nor JSON Schema nor, by its ending, Protobuf"),
        ("a.txt", b"id INT", "is neither Avro nor JSON Schema"),
        ("a.avsc", b'"int"', "columns need one of type record"),
        ("a.avsc", b'{"type":"record","name":"R","fields":[]}', "the schema has no columns"),
        ("a.desc", b"", "no Protobuf descriptor set"),
        ("a.json", b" " * (5 << 20), "has more than 4 MiB"),
    ],
)
def test_a_file_that_can_not_be_says_why(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SchemaError, match=message):
        resolve(str(path))


def test_columns_that_spark_takes_for_the_same_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"column p\.id is there twice but for upper"):
        resolve("p STRUCT<id: INT, ID: STRING>")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a INT", "a INT, b STRING", "a INT, b STRING"),
        ("a INT, b STRING", "b STRING", "a INT, b STRING"),
        ("a INT", "a BIGINT", "a BIGINT"),
        ("a BIGINT", "a INT", "a BIGINT"),
        ("a FLOAT, b TINYINT", "a DOUBLE, b INT", "a DOUBLE, b INT"),
        ("a DECIMAL(5,2)", "a DECIMAL(7,3)", "a DECIMAL(7,3)"),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<y: INT>>", "a ARRAY<STRUCT<x: INT, y: INT>>"),
        ("a MAP<STRING, INT>", "a MAP<STRING, BIGINT>", "a MAP<STRING, BIGINT>"),
    ],
)
def test_columns_widen(before: str, after: str, expected: str) -> None:
    assert widened(parse_ddl(before), parse_ddl(after), "schema") == parse_ddl(expected)


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        ("a INT", "a STRING", "a"),
        ("p STRUCT<x: BIGINT>", "p STRUCT<x: FLOAT>", r"p\.x"),
        ("a ARRAY<INT>", "a INT", "a"),
        ("a DECIMAL(5,2)", "a DECIMAL(5,3)", "a"),
        ("a MAP<STRING, DATE>", "a MAP<STRING, INT>", r"a\{\}"),
    ],
)
def test_columns_that_become_something_else_are_refused(before: str, after: str, path: str) -> None:
    with pytest.raises(SchemaError, match=rf"schema: column {path} was of type"):
        widened(parse_ddl(before), parse_ddl(after), "schema")
