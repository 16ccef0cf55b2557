"""What a task makes of the rows that it reads, so that they are rows of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.tables.interface import NO_ENVELOPE, ChangeForm, TableError
from penstock.pipeline.values.debezium import envelope_of
from penstock.pipeline.values.flattening import flattened, flattened_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.values.reading import TypedReading


@dataclass(frozen=True)
class Shape:
    """The columns of a table's new rows, and how they come about; pickled to the tasks."""

    schema: pa.Schema
    typed: TypedReading | None = None
    """How values are parsed; None where rows are written as they are."""
    path: tuple[str, ...] = ()
    """Where in a parsed value the struct is whose fields are columns."""

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the source has read as rows of the table."""
        if self.typed is None:
            yield from batches
            return
        for batch in batches:
            yield flattened(batch, self.path)


def shape_of(options: SourceOptions, changes: ChangeForm, before: Shape | None = None) -> Shape:
    """Find the shape of the rows of a read, on the driver; from that of the batch before it widens.

    Raises SchemaError, and TableError where the rows are no changes of this form.
    """
    raw = arrow_schema(options.columns)
    if options.values is None:
        return Shape(raw)
    from penstock.pipeline.values.reading import resolve_reading  # noqa: PLC0415  # if it is needed

    known = before.typed if before else None
    reading = resolve_reading(options.values, options.topics, before=known)
    typed = reading.columns.schema(raw)
    path = _path(typed) if changes is ChangeForm.DEBEZIUM else ()
    return Shape(flattened_schema(typed, path), reading, path)


def _path(typed: pa.Schema) -> tuple[str, ...]:
    envelope = envelope_of(typed.field("value").type)
    if envelope is None:
        raise TableError(NO_ENVELOPE)
    return envelope.path
