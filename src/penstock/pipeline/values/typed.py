"""Rows with typed columns: what the driver resolves, and what a task does with each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline.values.column_decoder import ColumnDecoder, Rejected
from penstock.pipeline.values.key_value import apart
from penstock.pipeline.values.options import SCHEMA_VERSION
from penstock.pipeline.values.schemas import ColumnSchema, resolve_again, resolve_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.pipeline.values.options import ValueOptions
    from penstock.records.columns import Numbers

VALUE: Final = "value"
KEY: Final = "key"
REASON: Final = pa.field("reason", pa.string())
SCHEMA_ID: Final = pa.field("schemaId", pa.int32())


class Typed(NamedTuple):
    """A batch with typed columns, null where a record is not of its schema."""

    rows: pa.RecordBatch
    rejected: pa.RecordBatch
    """The records that are not, as they were, with the reason and the id of the schema."""
    places: list[int]
    """Which rows they are."""


@dataclass(frozen=True)
class TypedColumns:
    """The schemas of the columns that are typed; small, and pickled to the tasks."""

    value: ColumnSchema | None
    key: ColumnSchema | None

    def schema(self, raw: pa.Schema) -> pa.Schema:
        """Return a schema of rows with these columns in place of those of bytes."""
        for name, column in self.columns():
            raw = raw.set(raw.get_field_index(name), pa.field(name, column.struct))
        return raw

    def columns(self) -> list[tuple[str, ColumnSchema]]:
        """Return the typed columns by their names."""
        both = ((KEY, self.key), (VALUE, self.value))
        return [(name, column) for name, column in both if column is not None]

    @property
    def have_versions(self) -> bool:
        """Whether rows must say the version that each value was written with."""
        return any(column.pulsar for _, column in self.columns())


class Typing:
    """What a task does with each of its batches, all of one topic; it keeps the decoders."""

    def __init__(self, columns: TypedColumns, topic: str = "") -> None:
        self._has_versions = columns.have_versions
        self._are_pairs = any(column.inline for _, column in columns.columns())
        self._decoders = {name: ColumnDecoder(column, topic) for name, column in columns.columns()}

    def apply(self, raw: pa.RecordBatch) -> Typed:
        """Return the batch with typed columns. Raises SchemaError."""
        rows = raw
        versions = raw.column(SCHEMA_VERSION).to_numpy() if self._has_versions else None
        faults: dict[int, Rejected] = {}
        if self._are_pairs and versions is not None:
            rows, rejected = _apart(raw, versions)
            faults |= {each.row: each for each in rejected}
        for name, decoder in self._decoders.items():
            place = rows.schema.get_field_index(name)
            column, rejected = decoder.decode(rows.column(place), versions)
            rows = rows.set_column(place, pa.field(name, column.type), column)
            for each in rejected:
                reason = f"{name}: {each.reason}" if name == KEY else each.reason
                faults.setdefault(each.row, each._replace(reason=reason))
        places = sorted(faults)
        return Typed(rows, _with_reasons(raw, [faults[row] for row in places]), places)


def resolve(
    options: ValueOptions, topics: Sequence[str], before: TypedColumns | None = None
) -> TypedColumns:
    """Find the schemas, on the driver; with those of the last batch, the columns only widen.

    Raises SchemaError.
    """
    found: dict[str, Any] = {VALUE: None, KEY: None}
    for role, wanted in ((VALUE, options.value), (KEY, options.key)):
        known = getattr(before, role, None)
        if wanted is not None:
            found[role] = (
                resolve_column(wanted, topics, role)
                if known is None
                else resolve_again(known, wanted, topics, role)
            )
    return TypedColumns(**found)


def without(rows: pa.RecordBatch, places: Sequence[int]) -> pa.RecordBatch:
    """Leave out some rows."""
    if not places:
        return rows
    kept = np.ones(rows.num_rows, np.bool_)
    kept[list(places)] = False
    return rows.filter(pa.array(kept))


def _apart(raw: pa.RecordBatch, versions: Numbers) -> tuple[pa.RecordBatch, list[Rejected]]:
    """Return the rows with keys and values apart, but for those that were sent without a schema."""
    said = pa.array(versions >= 0)
    pairs = raw.column(VALUE)
    found = apart(pc.if_else(said, pairs, pa.scalar(None, pairs.type)))
    rows = raw
    for name, part in ((KEY, found.keys), (VALUE, found.values)):
        column = pc.if_else(said, part, raw.column(name))
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    reason = "it is no key and value, each behind its length"
    return rows, [Rejected(row, reason, int(versions[row])) for row in found.broken.tolist()]


def _with_reasons(raw: pa.RecordBatch, rejected: Sequence[Rejected]) -> pa.RecordBatch:
    taken = raw.take(pa.array([each.row for each in rejected], pa.int64()))
    reasons = pa.array([each.reason for each in rejected], REASON.type)
    # An id has 32 bits without a sign on the wire, and no registry gives out the upper half.
    ids = [each.schema_id for each in rejected]
    numbers = pa.array([None if n is None or n >> 31 else n for n in ids], SCHEMA_ID.type)
    return taken.append_column(REASON, reasons).append_column(SCHEMA_ID, numbers)
