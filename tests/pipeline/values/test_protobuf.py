"""Protobuf into columns: what its own library wrote is what the columns hold."""

from __future__ import annotations

import base64
import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from located import located
from penstock.pipeline.values.column_decoder import ColumnDecoder
from penstock.pipeline.values.decoding import Decoded
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.options import ColumnOptions
from penstock.pipeline.values.protobuf import (
    LARGEST_UNCHECKED,
    ProtobufDecoder,
    compile_proto,
    message_columns,
    message_path,
    native_descriptors,
)
from penstock.pipeline.values.schemas import ColumnSchema, resolve_column
from schema_registry import framed, schema_registry

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Other { string text = 1; message Inner { int32 x = 1; } }
message Order {
  int64 id = 1; string name = 2; double price = 3; bool ok = 4; repeated string tags = 5;
  Place origin = 6; google.protobuf.Timestamp at = 7; optional int32 note = 8; uint64 large = 9;
  State state = 10; map<string, int32> counts = 11;
  oneof either { string left = 12; int32 right = 13; }
  repeated Place stops = 14; bytes raw = 15;
}
message Place { string city = 1; int32 zip = 2; }
enum State { NEW = 0; OLD = 1; }
"""
DESCRIPTORS = compile_proto({"order.proto": PROTO}, "order.proto")
ORDER = "shop.Order"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INT = st.integers(-(2**31), 2**31 - 1)
PLACES = st.fixed_dictionaries({"city": TEXT, "zip": INT})
ORDERS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "name": TEXT,
        "price": st.floats(allow_nan=False),
        "ok": st.booleans(),
        "tags": st.lists(TEXT, max_size=3),
        "large": st.integers(0, 2**64 - 1),
        "state": st.sampled_from(["NEW", "OLD"]),
        "stops": st.lists(PLACES, max_size=3),
        "raw": st.binary(max_size=5),
    },
    optional={"origin": PLACES, "note": INT, "left": TEXT},
)


def message_class(descriptors: bytes, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Order = message_class(DESCRIPTORS, ORDER)


def decode(*values: bytes) -> Decoded:
    return ProtobufDecoder(DESCRIPTORS, ORDER).decode(located(values))


@given(st.lists(ORDERS, max_size=6))
def test_columns_are_what_the_library_wrote(orders: list[dict[str, Any]]) -> None:
    rows, faults = decode(*(Order(**each).SerializeToString() for each in orders))
    assert not faults
    for found, order in zip(rows.to_pylist(), orders, strict=True):
        absent = {"origin": None, "note": None, "left": None, "right": None, "at": None}
        assert found == {"counts": [], **absent, **order}


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_whatever_comes_is_a_row_or_a_reason(values: list[bytes]) -> None:
    good = Order(id=7, tags=["a"]).SerializeToString()
    rows, faults = decode(good, *values, good)
    bad = {each.row for each in faults}
    assert [row is None for row in rows.to_pylist()] == [n in bad for n in range(len(values) + 2)]
    assert (rows[0].as_py()["id"], rows[-1].as_py()["id"]) == (7, 7)


def test_bad_messages_cost_their_own_rows() -> None:
    good = Order(id=1).SerializeToString()
    rows, faults = decode(good, b"\x12\x02\xff\xfe", good, good[:-1], b"", b"\xff" * 12, good)
    assert [each.row for each in faults] == [1, 3, 5]
    assert faults[0].reason == "it is no message: invalid UTF-8"
    assert [row and row["id"] for row in rows.to_pylist()] == [1, None, 1, None, 0, None, 1]


def test_deep_nesting_ends_in_a_reason_and_not_in_a_crash() -> None:
    for start in (b"\x0b", b"\xa3\x06", b"\x32\x0b"):
        _, (fault,) = decode(start * 1_000_000)
        assert fault.reason.startswith("it is no message")
        _, (fault,) = decode(start * (LARGEST_UNCHECKED // len(start)))
        assert fault.reason.startswith("it is no message")
    large = Order(name="x" * 1_000_000)
    rows, faults = decode(large.SerializeToString())
    assert not faults
    assert len(rows[0]["name"].as_py()) == 1_000_000


def test_messages_are_found_by_name_and_place() -> None:
    assert message_columns(DESCRIPTORS, None)[0] == "shop.Other"
    assert message_columns(DESCRIPTORS, "Order")[0] == ORDER
    assert message_path(DESCRIPTORS, ORDER) == (1,)
    assert message_path(DESCRIPTORS, "shop.Other.Inner") == (0, 0)
    with pytest.raises(SchemaError, match=r"has no message Nothing, but shop.Other, shop.Order"):
        message_columns(DESCRIPTORS, "Nothing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message", "protoc does not take a.proto"),
        ('syntax = "proto3"; import "missing.proto";', "missing.proto"),
        ('syntax = "proto3";', "declares no message"),
    ],
)
def test_a_file_that_can_not_be_says_why(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        message_columns(compile_proto({"a.proto": text}, "a.proto"), None)
    with pytest.raises(SchemaError, match="no path inside of its folder"):
        compile_proto({"../../a.proto": text}, "../../a.proto")
    with pytest.raises(SchemaError, match="no Protobuf descriptor set"):
        message_columns(b"nonsense", None)


def test_a_file_and_a_descriptor_set_make_the_same_columns(tmp_path: Path) -> None:
    source, compiled = tmp_path / "order.proto", tmp_path / "order.desc"
    source.write_text(PROTO)
    compiled.write_bytes(DESCRIPTORS)
    schemas = [resolve(str(path)) for path in (source, compiled)]
    assert schemas[0].struct == schemas[1].struct
    assert str(schemas[0].struct.field("large").type) == "decimal128(20, 0)"
    assert str(schemas[0].struct.field("at").type) == "timestamp[us, tz=UTC]"
    values = [Order(large=2**64 - 1).SerializeToString(), None]
    rows, rejected = ColumnDecoder(schemas[0]).decode(located(values))
    assert (int(rows[0]["large"].as_py()), rows[1].as_py(), rejected) == (2**64 - 1, None, [])


def resolve(schema: str) -> ColumnSchema:
    return resolve_column(ColumnOptions("schema", schema, None, ORDER), ["orders"], "value")


def test_the_wire_format_names_the_message() -> None:
    with schema_registry() as registry:
        number = registry.register("orders-value", PROTO, "PROTOBUF")
        schema = resolve(registry.url)
    order = Order(id=5).SerializeToString()
    values = [
        framed(number, order, b"\x02\x02"),
        framed(number, order, b"\0"),
        framed(number, order, b"\x04\0\0"),
        framed(number + 1, order, b"\x02\x02"),
        framed(number, b""),
    ]
    rows, rejected = ColumnDecoder(schema).decode(located(values))
    assert [row and row["id"] for row in rows.to_pylist()] == [5, None, None, 5, None]
    assert [each.row for each in rejected] == [1, 2, 4]
    assert rejected[0].reason == "it is another message of its file than shop.Order"


def native(files: bytes, **said: str) -> str:
    """Return a definition as Pulsar's clients write it."""
    packed = base64.b64encode(files).decode()
    root = {"rootMessageTypeName": ORDER, "rootFileDescriptorName": "order.proto"}
    return json.dumps({"fileDescriptorSet": packed, **root, **said})


def test_files_of_pulsars_schemas_are_in_any_order() -> None:
    files = {
        "a.proto": 'syntax = "proto3"; import "b.proto"; message A { B of = 1; }',
        "b.proto": 'syntax = "proto3"; import "c.proto"; message B { C of = 1; }',
        "c.proto": 'syntax = "proto3"; message C { int32 id = 1; }',
    }
    compiled = compile_proto(files, "a.proto")
    parsed = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
    for order in permutations(parsed):
        mixed = descriptor_pb2.FileDescriptorSet(file=order).SerializeToString()
        said = native(mixed, rootMessageTypeName="A", rootFileDescriptorName="a.proto")
        assert message_columns(*native_descriptors(said)) == message_columns(compiled, "A")


def test_what_is_no_schema_of_pulsars_is_said() -> None:
    cycle = descriptor_pb2.FileDescriptorSet()
    for name, other in (("order.proto", "b"), ("b", "order.proto")):
        cycle.file.add(name=name, dependency=[other])
    missing = native(DESCRIPTORS, rootFileDescriptorName="none.proto")
    for definition in ("", "[]", "{}", native(b"\xff"), missing, native(cycle.SerializeToString())):
        with pytest.raises(SchemaError, match="it is no schema of kind PROTOBUF_NATIVE: "):
            native_descriptors(definition)
