"""What a schema is: the type of a topic's values, and how it is defined."""

from __future__ import annotations

import hashlib
import json
import struct
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.broker.errors import IncompatibleSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping


class SchemaKind(StrEnum):
    """Under the names that Pulsar gives them, in its HTTP interface and in properties too."""

    BYTES = "BYTES"
    STRING = "STRING"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"
    AVRO = "AVRO"
    BOOLEAN = "BOOLEAN"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    KEY_VALUE = "KEY_VALUE"
    INSTANT = "INSTANT"
    LOCAL_DATE = "LOCAL_DATE"
    LOCAL_TIME = "LOCAL_TIME"
    LOCAL_DATE_TIME = "LOCAL_DATE_TIME"
    PROTOBUF_NATIVE = "PROTOBUF_NATIVE"
    EXTERNAL = "EXTERNAL"


STRUCTURES: Final = frozenset({SchemaKind.JSON, SchemaKind.AVRO, SchemaKind.PROTOBUF})
"""Those that are defined by a record in Avro's notation."""
_DEFINED: Final = STRUCTURES | {
    SchemaKind.PROTOBUF_NATIVE,
    SchemaKind.KEY_VALUE,
    SchemaKind.EXTERNAL,
}
"""All others are named by their kind alone. Clients differ in what they define them as: Java's by
nothing, Python's by `null`."""

_KIND: Final = "{}.schema.type"
_PROPERTIES: Final = "{}.schema.properties"
_ENCODING: Final = "kv.encoding.type"
_LENGTH: Final = struct.Struct(">i")


class Schema(NamedTuple):
    """As a client wrote it."""

    kind: SchemaKind
    name: str
    definition: bytes
    properties: Mapping[str, str]

    @property
    def size(self) -> int:
        """Return how many bytes it has."""
        texts = [self.name, *self.properties, *self.properties.values()]
        return len(self.definition) + sum(len(text.encode()) for text in texts)


class KeyAndValue(NamedTuple):
    """What a schema of kind KEY_VALUE is made of, and whether the key is outside of the payload."""

    key: Schema
    value: Schema
    encoding: str


def document(definition: bytes) -> Any:
    """Return what a definition in JSON says. Raises IncompatibleSchemaError."""
    try:
        return json.loads(definition)
    except (ValueError, RecursionError) as error:
        raise IncompatibleSchemaError("the schema's definition is no JSON") from error


def key_and_value(schema: Schema) -> KeyAndValue:
    """Take a schema of kind KEY_VALUE apart. Raises IncompatibleSchemaError."""
    key, rest = _cut(schema.definition)
    value, rest = _cut(rest)
    if rest:
        raise IncompatibleSchemaError("there is more in the schema than a key and a value")
    return KeyAndValue(
        _part(schema, "key", key),
        _part(schema, "value", value),
        schema.properties.get(_ENCODING, "INLINE"),
    )


def digest(schema: Schema) -> str:
    """Return what is the same for schemas that say the same. Raises IncompatibleSchemaError."""
    return hashlib.sha256(repr(_said(schema)).encode()).hexdigest()


def _said(schema: Schema) -> tuple[object, ...]:
    kind, definition = schema.kind, schema.definition
    if kind in STRUCTURES:
        return kind.value, json.dumps(document(definition), sort_keys=True)
    if kind is SchemaKind.KEY_VALUE:
        key, value, encoding = key_and_value(schema)
        return kind.value, _said(key), _said(value), encoding
    return (kind.value, definition) if kind in _DEFINED else (kind.value,)


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Return the part that begins with its length, and what follows it."""
    if len(data) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data)
        end = _LENGTH.size + max(length, 0)  # -1 where there is nothing
        if end <= len(data):
            return data[_LENGTH.size : end], data[end:]
    raise IncompatibleSchemaError("the schema of a key or of a value is cut off")


def _part(schema: Schema, part: str, definition: bytes) -> Schema:
    name = schema.properties.get(_KIND.format(part), "BYTES")
    if name not in SchemaKind.__members__ or name == SchemaKind.KEY_VALUE:
        raise IncompatibleSchemaError(f"the schema's {part} is of no kind that can be a {part}")
    return Schema(SchemaKind[name], part, definition, {})
