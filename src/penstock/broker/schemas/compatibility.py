"""Which schema may follow which: Pulsar's strategy FULL, held against the last version.

JSON, AVRO, PROTOBUF   each reads what the other one wrote
KEY_VALUE              so do their keys, and their values
PROTOBUF_NATIVE        the message is called the same
all others             the kind is the same
"""

from __future__ import annotations

from typing import Any

from penstock.broker.errors import IncompatibleSchemaError
from penstock.broker.schemas.schema import (
    STRUCTURES,
    Schema,
    SchemaKind,
    document,
    key_and_value,
)


def check_schema(schema: Schema) -> None:
    """Raise IncompatibleSchemaError where it is no schema of its kind."""
    if schema.kind in STRUCTURES:
        declared = document(schema.definition)
        if not _is_json_schema(schema, declared):
            from penstock.broker.schemas import avro  # noqa: PLC0415  # few topics have one

            avro.parse(declared)
    elif schema.kind is SchemaKind.KEY_VALUE:
        key, value, _ = key_and_value(schema)
        check_schema(key)
        check_schema(value)
    elif schema.kind is SchemaKind.PROTOBUF_NATIVE:
        _message_name(schema)


def check_follows(new: Schema, last: Schema) -> None:
    """Raise IncompatibleSchemaError where either can't read what the other one wrote."""
    check_reads(new, last)
    check_reads(last, new)


def check_reads(reader: Schema, writer: Schema) -> None:
    """Raise IncompatibleSchemaError where a schema can't read what another one wrote."""
    if reader.kind is not writer.kind:
        raise IncompatibleSchemaError(
            f"a schema of type {reader.kind} can't read what one of type {writer.kind} writes"
        )
    if not _reads(reader, writer):
        raise IncompatibleSchemaError(
            f"the {reader.kind} schema {reader.name[:100]!r} can't read all that "
            f"{writer.name[:100]!r} writes: fields that are added or removed need a default value"
        )


def _reads(reader: Schema, writer: Schema) -> bool:
    if reader.kind in STRUCTURES:
        return _reads_structure(reader, writer)
    if reader.kind is SchemaKind.KEY_VALUE:
        read, written = key_and_value(reader), key_and_value(writer)
        check_reads(read.key, written.key)
        check_reads(read.value, written.value)
    if reader.kind is SchemaKind.PROTOBUF_NATIVE:
        return _message_name(reader) == _message_name(writer)
    return True


def _reads_structure(reader: Schema, writer: Schema) -> bool:
    wanted, there = document(reader.definition), document(writer.definition)
    was_before_avro = [_is_json_schema(reader, wanted), _is_json_schema(writer, there)]
    if all(was_before_avro):
        return bool(wanted.get("id") == there.get("id"))
    from penstock.broker.schemas import avro  # noqa: PLC0415  # few topics have one

    # One of both is from before clients said in Avro's notation what their JSON is.
    return any(was_before_avro) or avro.can_read(avro.parse(wanted), avro.parse(there))


def _is_json_schema(schema: Schema, declared: Any) -> bool:
    """Whether it is what clients of before 2.1 defined JSON by: in the notation of JSON Schema."""
    return (
        schema.kind is SchemaKind.JSON
        and isinstance(declared, dict)
        and declared.get("type") == "object"
    )


def _message_name(schema: Schema) -> str:
    declared = document(schema.definition)
    name = declared.get("rootMessageTypeName") if isinstance(declared, dict) else None
    if not isinstance(name, str):
        raise IncompatibleSchemaError("the schema does not say which message it is of")
    return name.rpartition(".")[2]
