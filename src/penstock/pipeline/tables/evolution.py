"""What becomes of a table's columns when rows of another schema come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from penstock.pipeline.tables.interface import TableError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

WIDENED: Final[AbstractSet[tuple[str, str]]] = {
    ("int8", "int16"),
    ("int8", "int32"),
    ("int8", "int64"),
    ("int16", "int32"),
    ("int16", "int64"),
    ("int32", "int64"),
    ("float", "double"),
}
"""Types, by Arrow's names, of which each value of the first is one of the second."""


class Evolution(NamedTuple):
    """What has to change in a table before rows can come."""

    added: list[pa.Field]
    widened: list[pa.Field]


def evolution(table: pa.Schema, rows: pa.Schema, *, widens: bool, location: str) -> Evolution:
    """Return what has to change; raises TableError where the rows don't fit.

    A column that the rows lack is null for them. One that is narrower than the table's is widened
    as it is written.
    """
    change = Evolution([], [])
    wrong: list[str] = []
    for field in rows:
        if field.name not in table.names:
            change.added.append(field.with_nullable(True))
            continue
        old = table.field(field.name).type
        if _same(old, field.type) or is_wider(old, field.type):
            continue
        if widens and is_wider(field.type, old):
            change.widened.append(field)
        else:
            wrong.append(f"{field.name} is {old} in the table and {field.type} in the rows")
    wrong += [
        f"{field.name} must not be null in the table and is missing from the rows"
        for field in table
        if not field.nullable and field.name not in rows.names
    ]
    if wrong:
        raise TableError(
            f"{location} can't take these rows: {'; '.join(wrong)}. Convert the columns, give them "
            "other names, or begin a new table"
        )
    return change


def is_wider(wide: pa.DataType, narrow: pa.DataType) -> bool:
    """Whether each value of a type is one of another type too."""
    if pa.types.is_decimal128(wide) and pa.types.is_decimal128(narrow):
        return bool(wide.scale == narrow.scale and wide.precision > narrow.precision)
    return (str(narrow), str(wide)) in WIDENED


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Compare types as files know them: names and nullability of what is nested say nothing."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return [each.name for each in one] == [each.name for each in other] and all(
            _same(each.type, other.field(each.name).type) for each in one
        )
    if pa.types.is_map(one) and pa.types.is_map(other):
        return _same(one.key_type, other.key_type) and _same(one.item_type, other.item_type)
    return bool(one == other)
