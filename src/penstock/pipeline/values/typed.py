"""Rows with typed columns: what the driver resolves, and what a task does with each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.pipeline.values.column_decoder import ColumnDecoder, Rejected
from penstock.pipeline.values.decoding import NULL_SPAN, Values
from penstock.pipeline.values.key_value import apart
from penstock.pipeline.values.options import SCHEMA_VERSION
from penstock.pipeline.values.schemas import ColumnSchema, resolve_again, resolve_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.pipeline.values.in_place import RowsInPlace
    from penstock.pipeline.values.options import ValueOptions
    from penstock.records.columns import Numbers

VALUE: Final = "value"
KEY: Final = "key"
REASON: Final = pa.field("reason", pa.string())
SCHEMA_ID: Final = pa.field("schemaId", pa.int32())


class Typed(NamedTuple):
    """A batch with typed columns, null where a record is not of its schema."""

    rows: pa.RecordBatch
    rejected: pa.RecordBatch | None
    """The records that are not, as they were, with the reason and the id of the schema, if any."""
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

    def apply(self, raw: RowsInPlace) -> Typed:
        """Return the batch with a column of each that is in place. Raises SchemaError."""
        rows = raw.rows
        versions = rows.column(SCHEMA_VERSION).to_numpy() if self._has_versions else None
        faults: dict[int, Rejected] = {}
        values = {name: raw.values(name) for name in raw.spans}
        if self._are_pairs and versions is not None:
            values, rejected = _apart(values, versions)
            faults |= {each.row: each for each in rejected}
        for name, each_value in values.items():
            column, rejected = self._column(name, each_value, versions)
            rows = rows.append_column(pa.field(name, column.type), column)
            for each in rejected:
                reason = f"{name}: {each.reason}" if name == KEY else each.reason
                faults.setdefault(each.row, each._replace(reason=reason))
        if not faults:
            return Typed(rows, None, [])
        places = sorted(faults)
        return Typed(rows, _with_reasons(raw, [faults[row] for row in places]), places)

    def _column(
        self, name: str, values: Values, versions: Numbers | None
    ) -> tuple[pa.Array, list[Rejected]]:
        decoder = self._decoders.get(name)
        return (values.binary(), []) if decoder is None else decoder.decode(values, versions)


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


def _apart(
    values: Mapping[str, Values], versions: Numbers
) -> tuple[dict[str, Values], list[Rejected]]:
    """Return keys and values apart, but for those that were sent without a schema."""
    said = versions >= 0
    data, pairs = values[VALUE]
    found = apart(Values(data, np.where(said, pairs, NULL_SPAN)))
    both = {
        name: Values(data, np.where(said, part, values[name].spans))
        for name, part in ((KEY, found.keys), (VALUE, found.values))
    }
    reason = "it is no key and value, each behind its length"
    return both, [Rejected(row, reason, int(versions[row])) for row in found.broken.tolist()]


def _with_reasons(raw: RowsInPlace, rejected: Sequence[Rejected]) -> pa.RecordBatch:
    taken = raw.gathered([each.row for each in rejected])
    reasons = pa.array([each.reason for each in rejected], REASON.type)
    # An id has 32 bits without a sign on the wire, and no registry gives out the upper half.
    ids = [each.schema_id for each in rejected]
    numbers = pa.array([None if n is None or n >> 31 else n for n in ids], SCHEMA_ID.type)
    return taken.append_column(REASON, reasons).append_column(SCHEMA_ID, numbers)
