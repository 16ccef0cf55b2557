"""Schemas as Pulsar's clients say them, and what producers and consumers do with those of a topic.

A topic's versions are numbered from 0, and say so on the wire in eight bytes. Those of a partition
are those of its topic. A non-persistent topic lasts no longer than its users and keeps none.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock.broker.errors import UnknownSchemaError
from penstock.broker.schemas.schema import Schema, SchemaKind
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.records.pulsar.metadata_pb2 import KeyValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.broker.topics.own_topic import OwnTopic
    from penstock.broker.topics.partition import Partition
    from penstock.pulsar.client import Client

_KINDS: Final[Mapping[int, SchemaKind]] = {
    api.Schema.Type.Value("None"): SchemaKind.BYTES,
    api.Schema.String: SchemaKind.STRING,
    api.Schema.Json: SchemaKind.JSON,
    api.Schema.Protobuf: SchemaKind.PROTOBUF,
    api.Schema.Avro: SchemaKind.AVRO,
    api.Schema.Bool: SchemaKind.BOOLEAN,
    api.Schema.Int8: SchemaKind.INT8,
    api.Schema.Int16: SchemaKind.INT16,
    api.Schema.Int32: SchemaKind.INT32,
    api.Schema.Int64: SchemaKind.INT64,
    api.Schema.Float: SchemaKind.FLOAT,
    api.Schema.Double: SchemaKind.DOUBLE,
    api.Schema.Date: SchemaKind.DATE,
    api.Schema.Time: SchemaKind.TIME,
    api.Schema.Timestamp: SchemaKind.TIMESTAMP,
    api.Schema.KeyValue: SchemaKind.KEY_VALUE,
    api.Schema.Instant: SchemaKind.INSTANT,
    api.Schema.LocalDate: SchemaKind.LOCAL_DATE,
    api.Schema.LocalTime: SchemaKind.LOCAL_TIME,
    api.Schema.LocalDateTime: SchemaKind.LOCAL_DATE_TIME,
    api.Schema.ProtobufNative: SchemaKind.PROTOBUF_NATIVE,
    api.Schema.External: SchemaKind.EXTERNAL,
}
_TYPES: Final = {kind: number for number, kind in _KINDS.items()}
_VERSION: Final = struct.Struct(">q")


def schema_of(said: api.Schema) -> Schema | None:
    """Return the schema that a client said; None where it said none, or takes whatever the topic
    has. Raises RefusedError.
    """
    if not said.HasField("type") and said.ListFields():
        raise RefusedError(api.IncompatibleSchema, "the schema is of a type that is not known here")
    if not said.HasField("type") or said.type == api.Schema.AutoConsume:
        return None
    kind = _KINDS[said.type]
    properties = {pair.key: pair.value for pair in said.properties}
    return Schema(kind, said.name, said.schema_data, properties)


def typed_schema_of(said: api.Schema) -> Schema | None:
    """Return the same, but None where a client said plain bytes too. Raises RefusedError."""
    schema = schema_of(said)
    return None if schema is not None and schema.kind is SchemaKind.BYTES else schema


def encode_schema(schema: Schema) -> api.Schema:
    """Return a schema as clients hear it."""
    pairs = [KeyValue(key=key, value=value) for key, value in schema.properties.items()]
    # Proto2 has the number of an enum's value where types have the value.
    return api.Schema(
        name=schema.name,
        schema_data=schema.definition,
        type=_TYPES[schema.kind],  # type: ignore[arg-type]
        properties=pairs,
    )


def encode_version(version: int) -> bytes:
    """Return how a version is said."""
    return _VERSION.pack(version)


def decode_version(said: bytes) -> int:
    """Return the version that a client said. Raises UnknownSchemaError."""
    if len(said) != _VERSION.size:
        raise UnknownSchemaError(f"a schema's version has {_VERSION.size} bytes")
    return int(_VERSION.unpack(said)[0])


def refuse_schema(said: api.Schema) -> None:
    """Refuse the schema of a producer or a consumer whose topic keeps none. Raises RefusedError."""
    if typed_schema_of(said) is not None:
        raise RefusedError(
            api.NotAllowedError,
            "a non-persistent topic keeps no schema: send and receive bytes, and encode them "
            "yourself",
        )


async def version_to_write(client: Client, topic: OwnTopic, said: api.Schema) -> bytes:
    """Return what a producer with this schema writes beside its messages, once it is durable.

    Raises RefusedError and BrokerError. A producer that says none may write to any topic, as with
    Pulsar's broker unless it is told to enforce schemas. That of the Go client may say that it
    writes plain bytes: readers there ask for the version of that.
    """
    return await _version_of(client, topic, schema_of(said))


async def version_to_go_on_with(client: Client, topic: OwnTopic, said: api.Schema) -> bytes:
    """Return the same of some messages of a producer, which may be plain bytes on any topic."""
    return await _version_of(client, topic, typed_schema_of(said))


async def _version_of(client: Client, topic: OwnTopic, schema: Schema | None) -> bytes:
    if schema is None:
        return b""
    return encode_version((await client.broker.schemas.register(client, topic, schema)).version)


async def check_to_read(
    client: Client, partition: Partition, said: api.Schema, *, is_used: bool
) -> None:
    """Check that a consumer with this schema can read what producers with schemas write.

    A topic that is not used yet gets it for its own. Where one has messages and no schema, as those
    of other protocols, the consumer is let in: what it makes of them is its own. Raises
    RefusedError and BrokerError.
    """
    schema = typed_schema_of(said)
    if schema is None:
        return
    topic, schemas = partition.topic, client.broker.schemas
    is_empty = partition.end_offset == partition.start_offset
    if is_empty and not is_used and schemas.latest(topic) is None:
        await schemas.register(client, topic, schema)
    else:
        await schemas.check_reader(client, topic, schema)
