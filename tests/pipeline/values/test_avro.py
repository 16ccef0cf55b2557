"""Avro into columns: what fastavro has written is what the columns hold, and resolution's rules."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import random_avro
from avro_values import encode, field, record
from located import located
from penstock.pipeline.values.avro_decoder import AvroDecoder
from penstock.pipeline.values.avro_schema import arrow_of, parse_avro
from penstock.pipeline.values.decoding import Decoded
from penstock.pipeline.values.errors import SchemaError

ORIGIN = {
    "type": "record",
    "name": "Origin",
    "fields": [
        {"name": "city", "type": "string"},
        {"name": "zip", "type": ["null", "int"]},
    ],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "price", "type": "double"},
        {"name": "rate", "type": "float"},
        {"name": "ok", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "origin", "type": ["null", ORIGIN]},
        {"name": "stops", "type": {"type": "array", "items": "shop.Origin"}},
        {"name": "counts", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "either", "type": ["null", "string", "int", "shop.Origin"]},
    ],
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
INT = st.integers(-(2**31), 2**31 - 1)
ORIGINS = st.fixed_dictionaries({"city": TEXT, "zip": st.none() | INT})
RECORDS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "small": INT,
        "name": st.none() | TEXT,
        "price": st.floats(allow_nan=False),
        "rate": st.floats(width=32, allow_nan=False),
        "ok": st.booleans(),
        "raw": st.binary(max_size=8),
        "state": st.sampled_from(["NEW", "OLD"]),
        "four": st.binary(min_size=4, max_size=4),
        "tags": st.lists(TEXT, max_size=4),
        "origin": st.none() | ORIGINS,
        "stops": st.lists(ORIGINS, max_size=3),
        "counts": st.dictionaries(TEXT, st.none() | st.integers(-9, 9), max_size=3),
        "either": st.none() | TEXT | INT | ORIGINS,
    }
)


def decode(values: list[bytes], writer: Any, reader: Any = None) -> Decoded:
    schemas = [parse_avro(json.dumps(each)) for each in (writer, reader or writer)]
    return AvroDecoder(*schemas).decode(located(values))


def as_column(value: dict[str, Any]) -> dict[str, Any]:
    members: list[Any] = [None, None, None]
    either = value["either"]
    if either is not None:
        members[[str, int, dict].index(type(either))] = either
    union = None if either is None else {f"member{n}": each for n, each in enumerate(members)}
    return {**value, "counts": list(value["counts"].items()), "either": union}


@given(records=st.lists(RECORDS, max_size=6))
def test_columns_are_what_fastavro_wrote(records: list[dict[str, Any]]) -> None:
    rows, faults = decode(encode(SCHEMA, *records), SCHEMA)
    assert not faults
    assert rows.to_pylist() == [as_column(each) for each in records]


@given(writer=random_avro.SCHEMAS, data=st.data())
def test_columns_of_any_schema_are_what_fastavro_reads(writer: Any, data: st.DataObject) -> None:
    reader = data.draw(random_avro.readers(writer))
    encoded = encode(writer, *data.draw(st.lists(random_avro.values(writer), max_size=4)))
    parsed = [fastavro.parse_schema(json.loads(json.dumps(each))) for each in (writer, reader)]
    read = [fastavro.schemaless_reader(io.BytesIO(each), *parsed) for each in encoded]
    rows, faults = decode(encoded, writer, reader)
    assert not faults
    rows.validate(full=True)
    assert rows.to_pylist() == [random_avro.as_column(each, reader) for each in read]


@given(st.lists(st.binary(max_size=60), max_size=5), RECORDS, st.data())
def test_whatever_comes_is_a_row_or_a_reason(
    values: list[bytes], whole: dict[str, Any], data: st.DataObject
) -> None:
    (good,) = encode(SCHEMA, whole)
    cut = data.draw(st.integers(0, len(good) - 1))
    place, byte = data.draw(st.integers(0, len(good) - 1)), data.draw(st.integers(0, 255))
    changed = good[:place] + bytes([byte]) + good[place + 1 :]
    rows, faults = decode([*values, good[:cut], changed, good + b"x", good], SCHEMA)
    assert len(rows) == len(values) + 4
    bad = {each.row: each.reason for each in faults}
    assert len(values) in bad
    assert bad[len(values) + 2].startswith("bytes that are left behind its end")
    assert rows[-1].as_py() == as_column(whole)
    assert all(rows[row].as_py() is None for row in bad)


ARRAY = record(field("a", {"type": "array", "items": "null"}))
HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (ARRAY, HUGE + b"\0", "more elements than it has bytes"),
        (ARRAY, b"\x7f\0" + b"\0", "more elements than it has bytes"),
        (record(field("a", "string")), HUGE + b"abc", "a: it ends too early"),
        (record(field("a", "string")), b"\x01", "a: a size below zero"),
        (record(field("a", "string")), b"\x02\xff", "a: its bytes are no UTF-8"),
        (record(field("a", "int")), b"\x80\x80\x80\x80\x20", "a: a number out of the type's range"),
        (record(field("a", "long")), b"\xff" * 30, "a: a number out of the type's range"),
        (record(field("a", "boolean")), b"\x02", "a: a byte that can't stand there"),
        (record(field("a", ["null", "int"])), b"\x04", "a: an index"),
        (record(field("a", ["null", "int"])), b"\x01", "a: an index"),
        (record(field("a", SCHEMA["fields"][7]["type"])), b"\x04", "a: an index"),
        (record(field("a", "double")), b"1234567", "a: it ends too early"),
    ],
)
def test_a_bad_value_costs_its_own_row(schema: Any, value: bytes, reason: str) -> None:
    rows, (fault,) = decode([value], schema)
    assert reason in fault.reason
    assert rows.to_pylist() == [None]


def test_nothing_stays_of_a_record_that_ends_too_early() -> None:
    inner = {"type": "array", "items": {"type": "array", "items": "string"}}
    counts = {"type": "map", "values": {"type": "array", "items": ["null", ORIGIN]}}
    schema = record(field("a", inner), field("b", counts), field("c", "int"))
    ulm = {"city": "Ulm", "zip": 7}
    cut, whole = encode(
        schema,
        {"a": [["x"], [], ["y", "z"]], "b": {"k": [ulm, None], "l": [ulm]}, "c": 1},
        {"a": [[], ["s", "t"]], "b": {"m": [ulm]}, "c": 2},
    )
    values = [each for size in range(len(cut)) for each in (whole, cut[:size])]
    rows, faults = decode([*values, whole], schema)
    assert [each.row for each in faults] == list(range(1, len(values), 2))
    expected = {"a": [[], ["s", "t"]], "b": [("m", [ulm])], "c": 2}
    assert rows.to_pylist() == [expected, None] * len(cut) + [expected]


def test_blocks_with_sizes_are_read_as_others() -> None:
    schema = record(field("a", {"type": "array", "items": "int"}))
    rows, faults = decode([b"\x03\x04\x02\x04\x02\x06\x00"], schema)
    assert not faults
    assert rows.to_pylist() == [{"a": [1, 2, 3]}]


def test_logical_types() -> None:
    def logical(of: Any, name: str, **more: Any) -> dict[str, Any]:
        return {**(of if isinstance(of, dict) else {"type": of}), "logicalType": name, **more}

    twelve = {"type": "fixed", "name": "Wide", "size": 12}
    schema = record(
        field("day", logical("int", "date")),
        field("millis", logical("long", "timestamp-millis")),
        field("micros", logical("long", "timestamp-micros")),
        field("wall", logical("long", "local-timestamp-millis")),
        field("price", logical("bytes", "decimal", precision=12, scale=2)),
        field("wide", logical(twelve, "decimal", precision=28, scale=3)),
        field("id", logical("string", "uuid")),
    )
    moment = datetime(2024, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    values = [
        {
            "day": date(1969, 12, 31),
            "millis": moment,
            "micros": moment,
            "wall": moment.replace(tzinfo=None),
            "price": price,
            "wide": price * 10**9,
            "id": "0b5e8b32-8ab1-4c5c-9f3a-0c4d0a0f6a11",
        }
        for price in (Decimal("12.34"), Decimal("-0.01"), Decimal(0))
    ]
    rows, faults = decode(encode(schema, *values), schema)
    assert not faults
    found = rows.to_pylist()
    assert [each["price"] for each in found] == [each["price"] for each in values]
    assert [each["wide"] for each in found] == [each["wide"] for each in values]
    assert {(each["millis"], each["micros"]) for each in found} == {(moment, moment)}
    assert found[0]["wall"] == moment.replace(tzinfo=None)
    assert (found[0]["day"], found[0]["id"]) == (date(1969, 12, 31), values[0]["id"])


OLD = record(
    field("id", "int"),
    field("gone", {"type": "map", "values": {"type": "array", "items": "string"}}),
    field("kept", "string"),
    field("state", {"type": "enum", "name": "S", "symbols": ["A", "B", "C"]}),
    field("named", "float"),
)
NEW = record(
    field("kept", ["null", "bytes"]),
    field("id", "long"),
    field("state", {"type": "enum", "name": "S", "symbols": ["A", "Z"], "default": "Z"}),
    field("renamed", "double", aliases=["named"]),
    field("text", ["null", "string"], default=None),
    field("number", "int", default=7),
    field("list", {"type": "array", "items": "int"}, default=[1, 2]),
    field("inner", record(field("x", "string"), name="I"), default={"x": "y"}),
)


def test_an_older_schema_is_resolved_to_the_readers() -> None:
    old = [
        {"id": n, "gone": {"k": ["v"] * n}, "kept": f"k{n}", "state": "ABC"[n], "named": n + 0.5}
        for n in range(3)
    ]
    rows, faults = decode(encode(OLD, *old), OLD, NEW)
    assert not faults
    assert rows.to_pylist() == [
        {
            "kept": f"k{n}".encode(),
            "id": n,
            "state": "AZZ"[n],
            "renamed": n + 0.5,
            "text": None,
            "number": 7,
            "list": [1, 2],
            "inner": {"x": "y"},
        }
        for n in range(3)
    ]


@pytest.mark.parametrize(
    ("of", "default"),
    [({"type": "array", "items": "int"}, [1, 2]), ({"type": "map", "values": "int"}, {"k": 1})],
)
def test_no_row_has_a_default(of: Any, default: Any) -> None:
    stops = [record(field("x", "int"), *more, name="Stop") for more in ([], [field("y", of)])]
    stops[1]["fields"][1]["default"] = default
    old, new = (record(field("a", {"type": "array", "items": each})) for each in stops)
    rows, faults = decode(encode(old, {"a": []}), old, new)
    assert (rows.to_pylist(), faults) == ([{"a": []}], [])


def test_fields_are_resolved_as_fastavro_does() -> None:
    old = {"id": 1, "gone": {}, "kept": "k", "state": "B", "named": 0.25}
    (value,) = encode(OLD, old)
    named = json.loads(json.dumps(NEW))
    expected = fastavro.schemaless_reader(
        io.BytesIO(value), fastavro.parse_schema(OLD), fastavro.parse_schema(named)
    )
    rows, _ = decode([value], OLD, NEW)
    assert rows.to_pylist() == [expected]


@pytest.mark.parametrize(
    ("writer", "reader", "message"),
    [
        (field("a", "string"), field("a", "int"), "a is of type string in the writer's schema"),
        (field("a", "long"), field("a", "int"), "a is of type long"),
        (field("a", "int"), field("b", "int"), "has no b, and the reader's one has no default"),
        (field("a", ["int", "null"]), field("a", "string"), "a has another type"),
        (
            field("a", {"type": "fixed", "name": "F", "size": 2}),
            field("a", {"type": "fixed", "name": "F", "size": 3}),
            "a is of type fixed",
        ),
    ],
)
def test_a_schema_that_can_not_be_read_says_why(writer: Any, reader: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        decode([], record(writer), record(reader))


def test_a_branch_that_can_not_be_read_costs_the_records_that_have_it() -> None:
    writer = record(field("a", ["null", "int", "string"]))
    reader = record(field("a", ["null", "long"]))
    rows, (fault,) = decode(encode(writer, {"a": 1}, {"a": "x"}, {"a": None}), writer, reader)
    assert fault == (1, "a: a value of another type (byte 1)")
    assert rows.to_pylist() == [{"a": 1}, None, {"a": None}]


@pytest.mark.parametrize(
    ("wide", "narrow", "values"),
    [("long", "int", [2**40, 5]), ("double", "float", [0.1, 0.5, float("inf"), 2.0**-149])],
)
def test_a_union_of_two_numbers_is_the_wider_one(wide: str, narrow: str, values: list[Any]) -> None:
    schema = record(field("a", [narrow, wide]))
    encoded = encode(schema, *({"a": (wide, each)} for each in values))
    encoded += encode(schema, {"a": (narrow, values[-1])})
    rows, faults = decode(encoded, schema)
    assert not faults
    assert [each["a"] for each in rows.to_pylist()] == [*values, values[-1]]


@pytest.mark.parametrize("levels", [20, 64, 65, 120])
def test_lists_nest_as_deep_as_the_kernel_has_room_for(levels: int) -> None:
    deep: Any = "int"
    for _ in range(levels):
        deep = {"type": "array", "items": deep}
    writer, reader = record(field("x", deep), field("a", "int")), record(field("a", "int"))
    value = b"\x02" * levels + b"\x02" + b"\0" * levels + b"\x04"
    if levels > 64:
        with pytest.raises(SchemaError, match="nest at most 64 levels"):
            decode([value], writer, reader)
    else:
        assert decode([value], writer, reader).rows.to_pylist() == [{"a": 2}]


def doubling(levels: int) -> dict[str, Any]:
    """Each record has the one before in it twice: few names, and 2 ** levels columns."""
    inner: Any = "int"
    for level in range(levels):
        name = f"L{level}"
        inner = record(
            field("a", inner), field("b", inner if level == 0 else f"L{level - 1}"), name=name
        )
    return dict(inner)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"type":"record"', "no JSON"),
        ("[" * 100_000, "nested too deeply|no JSON"),
        ('"missing"', "does not define its type 'missing'"),
        ('{"type":"record","name":"R"}', "has no fields"),
        ('{"type":"record","name":"R","fields":[{"type":"int"}]}', "has no name"),
        (json.dumps(record(field("a", "int"), field("a", "int"))), "a field twice"),
        (json.dumps(record(field("a", "R"))), "a part of itself"),
        (json.dumps(doubling(40)), "more than"),
        ('[["int"]]', "a union"),
    ],
)
def test_a_schema_that_can_not_be_says_why(schema: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        arrow_of(parse_avro(schema))
