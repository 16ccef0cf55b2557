"""Orders as JSON and as Avro, each with what declares its columns."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, Final

import fastavro

ORDER: Final = (
    "id BIGINT, name STRING, price DOUBLE, ok BOOLEAN, tags ARRAY<STRING>, "
    "origin STRUCT<city: STRING, zip: INT>, note STRING"
)
"""The columns of an order, as Spark writes them down."""

AVRO_ORDER: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "ok", "type": "boolean"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "origin",
            "type": {
                "type": "record",
                "name": "Origin",
                "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": "int"}],
            },
        },
        {"name": "note", "type": ["null", "string"]},
    ],
}

SCHEMA_ID: Final = 100_000
"""Of Avro's schema, in the registry that stands in for a real one."""

WIRE_FORMAT: Final = b"\0" + SCHEMA_ID.to_bytes(4, "big")
"""What stands before each value in Confluent's wire format."""


def as_json(rows: int) -> Iterator[bytes]:
    return (json.dumps(order(number)).encode() for number in range(rows))


def as_avro(rows: int) -> Iterator[bytes]:
    schema = fastavro.parse_schema(json.loads(json.dumps(AVRO_ORDER)))
    for number in range(rows):
        value = io.BytesIO()
        fastavro.schemaless_writer(value, schema, order(number))
        yield WIRE_FORMAT + value.getvalue()


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"user {number}",
        "price": number * 1.25,
        "ok": number % 2 == 0,
        "tags": ["first", "second"],
        "origin": {"city": "Ulm", "zip": number % 99_999},
        "note": None,
    }
