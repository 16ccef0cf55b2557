"""The columns that a sink takes: those of Spark's Kafka sink, and the record's own time."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from penstock.pipeline.sink.errors import SinkError

_TEXT: Final = (StringType, BinaryType)
_TYPES: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "key": (_TEXT, "string or binary"),
    "value": (_TEXT, "string or binary"),
    "topic": ((StringType,), "string"),
    "partition": ((IntegerType,), "int"),
    "timestamp": ((TimestampType,), "timestamp"),
}


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise SinkError unless rows of a schema can be written; further columns are not looked at.

    `topic` is the option of that name.
    """
    if "value" not in schema.names:
        raise SinkError(
            f"there is no column value, only {', '.join(schema.names) or 'none'}: select what is "
            "to be written as value, such as df.selectExpr('to_json(struct(*)) AS value')"
        )
    if topic is None and "topic" not in schema.names:
        raise SinkError(
            "it is not said where to write: set the option topic, or add a column topic"
        )
    for each in schema.fields:
        types, words = _TYPES.get(each.name, ((DataType,), ""))
        if not isinstance(each.dataType, types):
            raise SinkError(_wrong(each.name, each.dataType, words))
        if each.name == "headers" and not _are_headers(each.dataType):
            words = "array<struct<key: string, value: binary>>"
            raise SinkError(_wrong(each.name, each.dataType, words))


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return [each.name for each in fields] == ["key", "value"] and all(
        isinstance(each.dataType, types)
        for each, types in zip(fields, ((StringType,), _TEXT), strict=True)
    )


def _wrong(name: str, kind: DataType, words: str) -> str:
    return f"column {name} is {kind.simpleString()}, and must be {words}: cast it, or leave it out"
