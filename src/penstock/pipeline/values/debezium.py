"""Debezium's envelope: typed columns that say what happened to a row of a database."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
from pyarrow import types


class Operation(StrEnum):
    """What the field `op` says."""

    READ = "r"
    """The row was there when the connector began: a snapshot."""
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"
    """The table was emptied; there is no row."""
    MESSAGE = "m"
    """Something that the database's log was told, and no row of a table."""


@dataclass(frozen=True)
class Envelope:
    """Where the parts of an envelope are, and the columns of the row that it is about."""

    path: tuple[str, ...]
    """The structs to go into from the value; `payload` where each message has its schema."""
    row: pa.StructType
    source: pa.StructType | None
    """Where the change comes from: `ts_ms`, `table`, the position in the database's log."""

    OPERATION = "op"
    BEFORE = "before"
    """The row as it was; null of one that is new, and where the database does not log it."""
    AFTER = "after"
    """The row as it is; null of one that is deleted."""
    SOURCE = "source"


def envelope_of(struct: pa.StructType) -> Envelope | None:
    """Return where the envelope is in the columns of a value; None where they are no such thing."""
    for path in ((), ("payload",)):
        of = struct
        for name in path:
            place = of.get_field_index(name)
            of = of.field(place).type if place >= 0 else pa.null()
        found = _envelope(of, path) if types.is_struct(of) else None
        if found is not None:
            return found
    return None


def _envelope(struct: pa.StructType, path: tuple[str, ...]) -> Envelope | None:
    fields = {each.name: each.type for each in struct.fields}
    after = fields.get(Envelope.AFTER)
    if after is None or not types.is_struct(after):
        return None
    if fields.get(Envelope.BEFORE) != after or fields.get(Envelope.OPERATION) != pa.string():
        return None
    source = fields.get(Envelope.SOURCE)
    return Envelope(path, after, source if source and types.is_struct(source) else None)
