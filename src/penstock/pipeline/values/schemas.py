"""What a column of keys or values holds: resolved on the driver, carried to the tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.pipeline.values.avro_decoder import record_type
from penstock.pipeline.values.avro_schema import parse_avro
from penstock.pipeline.values.conforming import arrow_struct, spark_struct
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.evolution import widened
from penstock.pipeline.values.json_schema import parse_json_schema
from penstock.pipeline.values.options import is_schema_file
from penstock.pipeline.values.protobuf import (
    compile_file,
    compile_proto,
    message_columns,
    native_descriptors,
)
from penstock.pipeline.values.pulsar_schemas import SCHEME, full_names, latest_schema
from penstock.pipeline.values.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.pipeline.values.options import ColumnOptions
    from penstock.pipeline.values.registry import RegisteredSchema

LARGEST_FILE: Final = 4 << 20
_DESCRIPTORS: Final = (".desc", ".pb", ".binpb", ".protoset")
_SUFFIXES: Final = (".avsc", ".avro", ".json", ".proto", *_DESCRIPTORS)
_MAIN_FILE: Final = "registered.proto"


class Encoding(StrEnum):
    """How values are written."""

    JSON = "JSON"
    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True)
class ColumnSchema:
    """The columns that one of key and value becomes, and how; small, and pickled to the tasks."""

    option: str
    encoding: Encoding
    struct: pa.StructType
    """As Spark checks them."""
    text: str = ""
    """The reader's schema in Avro's notation."""
    references: tuple[str, ...] = ()
    descriptors: bytes = b""
    """Protobuf's files, and the message that values are."""
    message: str = ""
    registry: str = ""
    """The URL of the registry whose ids values begin with; empty where they begin with none."""
    pulsar: str = ""
    """The URL of the broker whose versions messages name, instead of a registry's."""
    names: tuple[tuple[str, str], ...] = ()
    """What topics are called there; of an empty name the one that stands for all."""
    role: str = "value"
    """Of which of key and value it is there."""
    inline: bool = False
    """Whether both are in a message's value as one (`key_value.py`)."""


def resolve_column(options: ColumnOptions, topics: Sequence[str], role: str) -> ColumnSchema:
    """Find the schema that an option names; `role` is key or value. Raises SchemaError.

    Of a registry it is the newest one of the topic's subject, or of the subject that is named.
    """
    try:
        if options.schema.startswith(("http://", "https://")):
            return _from_registry(options, topics, role)
        if options.schema.startswith(SCHEME):
            return _from_broker(options, topics, role)
        path = Path(options.schema)
        if path.suffix.lower() in _SUFFIXES or is_schema_file(path):
            return _from_file(options, path)
        return _of_columns(options, parse_ddl(options.schema))
    except SchemaError as error:
        if str(error).startswith(f"{options.option}:"):
            raise
        raise SchemaError(f"{options.option}: {str(error).removeprefix('schema: ')}") from None


def resolve_again(
    before: ColumnSchema, options: ColumnOptions, topics: Sequence[str], role: str
) -> ColumnSchema:
    """Find the schema anew for the next batch of a stream, with all columns of the one before.

    New columns come behind the others, and types that hold more take the place of narrower ones.
    Raises SchemaError where a column has become something else.
    """
    now = resolve_column(options, topics, role)
    if now.struct == before.struct:
        return now
    return replace(now, struct=widened(before.struct, now.struct, options.option))


def _from_file(options: ColumnOptions, path: Path) -> ColumnSchema:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise SchemaError(f"the file {path} has more than {LARGEST_FILE >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"the file {path} can't be read: {error.strerror}") from None
    if path.suffix == ".proto":
        return _of_message(options, compile_file(path))
    if path.suffix in _DESCRIPTORS:
        return _of_message(options, data)
    try:
        text = data.decode()
        declared = json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(
            f"the file {path} is neither Avro nor JSON Schema nor, by its ending, Protobuf"
        ) from None
    if path.suffix == ".avsc" or _is_avro(declared):
        return _of_avro(options, text, ())
    return _of_columns(options, parse_json_schema(text))


def _is_avro(declared: object) -> bool:
    return isinstance(declared, list) or (
        isinstance(declared, dict) and declared.get("type") == "record" and "fields" in declared
    )


def _from_registry(options: ColumnOptions, topics: Sequence[str], role: str) -> ColumnSchema:
    registry = Registry(options.schema, options.option)
    subjects = _subjects(options, [f"{topic}-{role}" for topic in topics])
    found = [_registered(options, registry.latest(subject)) for subject in subjects]
    return replace(_same(options, subjects, found), registry=options.schema)


def _from_broker(options: ColumnOptions, topics: Sequence[str], role: str) -> ColumnSchema:
    subjects = _subjects(options, topics)
    latest = [
        latest_schema(options.schema, options.option, full_names(subject), role)
        for subject in subjects
    ]
    first = _same(options, subjects, [_of_version(options, each) for each in latest])
    of = [""] if options.subject else topics
    names = tuple((topic, each.topic) for topic, each in zip(of, latest, strict=True))
    return replace(first, pulsar=options.schema, names=names, role=role)


def _subjects(options: ColumnOptions, of_topics: Sequence[str]) -> Sequence[str]:
    if options.subject:
        return [options.subject]
    if not of_topics:
        raise SchemaError(
            f"subscribePattern names no topic, and so no subject: give {options.option}Subject too"
        )
    return of_topics


def _of_version(options: ColumnOptions, schema: RegisteredSchema) -> ColumnSchema:
    if schema.kind == Encoding.PROTOBUF:
        descriptors, message = native_descriptors(schema.text)
        column = _of_message(replace(options, message=options.message or message), descriptors)
    else:
        column = replace(_of_avro(options, schema.text, ()), encoding=Encoding(schema.kind))
    return replace(column, inline=schema.inline)


def _same(
    options: ColumnOptions, subjects: Sequence[str], found: Sequence[ColumnSchema]
) -> ColumnSchema:
    """Return the first schema; raises SchemaError where another one has other columns."""
    first = found[0]
    for subject, other in zip(subjects, found, strict=True):
        known = (first.encoding, first.struct, first.inline)
        if (other.encoding, other.struct, other.inline) != known:
            raise SchemaError(
                f"the subjects {subjects[0]} and {subject} have other columns: read the topics "
                f"apart, or name one subject for all by {options.option}Subject"
            )
    return first


def _registered(options: ColumnOptions, schema: RegisteredSchema) -> ColumnSchema:
    references = tuple(each.text for each in schema.references)
    if schema.kind == Encoding.AVRO:
        column = _of_avro(options, schema.text, references)
    elif schema.kind == Encoding.JSON:
        named = {each.name: each.text for each in schema.references}
        column = _of_columns(options, parse_json_schema(schema.text, named))
    else:
        files = {each.name: each.text for each in schema.references}
        compiled = compile_proto({**files, _MAIN_FILE: schema.text}, _MAIN_FILE)
        column = _of_message(options, compiled)
    return column


def _of_columns(options: ColumnOptions, struct: pa.StructType) -> ColumnSchema:
    return ColumnSchema(options.option, Encoding.JSON, _checked(struct))


def _of_avro(options: ColumnOptions, text: str, references: tuple[str, ...]) -> ColumnSchema:
    struct = _checked(record_type(parse_avro(text, references)))
    return ColumnSchema(options.option, Encoding.AVRO, struct, text, references)


def _of_message(options: ColumnOptions, descriptors: bytes) -> ColumnSchema:
    message, struct = message_columns(descriptors, options.message)
    return ColumnSchema(
        options.option,
        Encoding.PROTOBUF,
        _checked(struct),
        descriptors=descriptors,
        message=message,
    )


def _checked(struct: pa.StructType) -> pa.StructType:
    """Return the columns as Spark has them, which sees no difference between `id` and `ID`."""
    if not struct.num_fields:
        raise SchemaError("the schema has no columns")
    _refuse_twins(struct, "")
    return arrow_struct(spark_struct(struct))


def _refuse_twins(of: pa.DataType, path: str) -> None:
    children = [of.field(place) for place in range(of.num_fields)]
    names = [each.name.lower() for each in children]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SchemaError(f"column {path}{name} is there twice but for upper and lower case")
        _refuse_twins(children[place].type, f"{path}{name}.")
