"""Rows of bytes in, typed rows out, as the options of the read say: what a task calls."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from penstock.pipeline.values.conforming import arrow_struct, spark_struct
from penstock.pipeline.values.dead_letters import STORED, DeadLetters, prepare_folder
from penstock.pipeline.values.errors import ParseError
from penstock.pipeline.values.flattening import flattened_schema
from penstock.pipeline.values.options import (
    DEAD_LETTER,
    ON_PARSE_ERROR,
    SCHEMA_VERSION,
    OnParseError,
)
from penstock.pipeline.values.typed import KEY, VALUE, TypedColumns, Typing, resolve, without

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.pipeline.values.in_place import RowsInPlace
    from penstock.pipeline.values.options import ValueOptions
    from penstock.pipeline.values.origin import Origin


_PLACE: Final = ("topic", "partition", "offset")
"""Columns by which an error says which record is meant."""


@dataclass(frozen=True)
class TypedReading:
    """The typed columns of a read, and what happens to records that are not of their schema.

    Small, and pickled to the tasks.
    """

    columns: TypedColumns
    on_parse_error: OnParseError = OnParseError.FAIL
    folder: Path | None = None

    def stored(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that batches must have for rows of these to be made of them."""
        needed = [*columns, *_PLACE]
        if self.columns.have_versions:
            needed += [KEY, VALUE, SCHEMA_VERSION]
        if self.folder is not None:
            needed += STORED
        return list(dict.fromkeys(needed))

    @property
    def in_place(self) -> list[str]:
        """Return the columns of bytes that batches have in place."""
        typed = [name for name, _ in self.columns.columns()]
        return [KEY, VALUE] if self.columns.have_versions else typed

    def rows(
        self, batches: Iterable[RowsInPlace], schema: pa.Schema, origin: Origin
    ) -> Iterator[pa.RecordBatch]:
        """Yield each batch with typed columns, and with none but those of `schema`.

        Raises ParseError and SchemaError.
        """
        typing = Typing(self.columns, origin.topic)
        of = self.columns.schema(schema)
        letters = DeadLetters(self.folder, origin) if self.folder else nullcontext(None)
        with letters as dead:
            for raw in batches:
                rows, rejected, places = typing.apply(raw)
                if rejected is not None:
                    if self.on_parse_error is OnParseError.FAIL:
                        raise _unreadable(rejected)
                    if dead is not None:
                        dead.add(rejected)
                if self.on_parse_error is not OnParseError.NULL:
                    rows = without(rows, places)
                if rows.num_rows:
                    yield rows.select(of.names)


def resolve_reading(
    options: ValueOptions,
    topics: Sequence[str],
    declared: StructType | None = None,
    before: TypedReading | None = None,
) -> TypedReading:
    """Find the schemas of a read, on the driver, and make the folder of dead letters.

    Spark plans with the columns that it was told first, which are those `declared`: what the
    registry has got since then is left out until the next read. Where Spark has no part in the
    columns, they widen from what they were `before`. Raises SchemaError.
    """
    if options.dead_letter is not None:
        prepare_folder(options.dead_letter)
    columns = resolve(options, topics, before.columns if before else None)
    if declared is not None:
        columns = _as_declared(columns, declared)
    return TypedReading(columns, options.on_parse_error, options.dead_letter)


def typed_schema(raw: StructType, options: ValueOptions, topics: Sequence[str]) -> StructType:
    """Return the columns of a read as Spark plans with them. Raises SchemaError."""
    typed = {
        name: spark_struct(column.struct) for name, column in resolve(options, topics).columns()
    }
    return StructType(
        [StructField(each.name, typed.get(each.name, each.dataType)) for each in raw.fields]
    )


def flattened_columns(typed: StructType) -> StructType:
    """Return the columns of a flattened read as Spark plans with them. Raises SchemaError."""
    return spark_struct(pa.struct(list(flattened_schema(pa.schema(arrow_struct(typed))))))


def typed_columns(flattened: StructType, names: Sequence[str]) -> StructType:
    """Return the columns, of these names, that those of a flattened read are made of."""
    fields = len(flattened.fields) - len(names) + 1
    value, others = StructType(flattened.fields[:fields]), iter(flattened.fields[fields:])
    return StructType(
        [StructField(name, value if name == VALUE else next(others).dataType) for name in names]
    )


def _as_declared(columns: TypedColumns, declared: StructType) -> TypedColumns:
    changed: dict[str, Any] = {}
    for name, column in columns.columns():
        changed[name] = replace(column, struct=arrow_struct(_struct(declared, name)))
    return replace(columns, **changed)


def _struct(declared: StructType, name: str) -> StructType:
    of = declared[name].dataType
    assert isinstance(of, StructType), "Spark plans with what the source said"
    return of


def _unreadable(rejected: pa.RecordBatch) -> ParseError:
    first = rejected.slice(0, 1).to_pylist()[0]
    number = first["schemaId"]
    schema = f" (schema {number})" if number is not None else ""
    return ParseError(
        f"{first['topic']}-{first['partition']} offset {first['offset']} is not of its "
        f"schema{schema}: {first['reason']}. Set {ON_PARSE_ERROR} to {OnParseError.NULL} or "
        f"{DEAD_LETTER} to a folder to read on without such records"
    )
