from __future__ import annotations

import json

import pyarrow as pa

from avro_values import field, record
from penstock.pipeline.values.avro_schema import arrow_of, parse_avro
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.debezium import Envelope, Operation, envelope_of

ROW = "id: BIGINT, name: STRING"
DDL = (
    f"before STRUCT<{ROW}>, after STRUCT<{ROW}>, op STRING, source STRUCT<ts_ms: BIGINT>, "
    "ts_ms BIGINT"
)


def test_an_envelope_is_found_with_and_without_its_schema() -> None:
    row, source = parse_ddl("id BIGINT, name STRING"), parse_ddl("ts_ms BIGINT")
    assert envelope_of(parse_ddl(DDL)) == Envelope((), row, source)
    wrapped = pa.struct([("schema", pa.string()), ("payload", parse_ddl(DDL))])
    assert envelope_of(wrapped) == Envelope(("payload",), row, source)


def test_an_envelope_of_avro_names_its_row_once() -> None:
    value = record(field("id", "int"), name="Value")
    schema = record(
        field("before", ["null", value], default=None),
        field("after", ["null", "Value"], default=None),
        field("op", "string"),
        name="Envelope",
    )
    found = envelope_of(arrow_of(parse_avro(json.dumps(schema))))
    assert found == Envelope((), pa.struct([("id", pa.int32())]), None)


def test_other_columns_are_no_envelope() -> None:
    for ddl in ("id INT", "after STRUCT<id: INT>, op STRING", "payload STRUCT<id: INT>"):
        assert envelope_of(parse_ddl(ddl)) is None
    uneven = "before STRUCT<id: INT>, after STRUCT<id: STRING>, op STRING"
    assert envelope_of(parse_ddl(uneven)) is None


def test_operations_have_their_letters() -> None:
    assert {each.value for each in Operation} == set("rcudtm")
