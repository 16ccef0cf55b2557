"""What becomes of a table's columns when rows of another schema come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from penstock.pipeline.tables.interface import TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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


_RENAME: Final = "Give one of them another name: most engines know no upper and lower case"


class Evolution(NamedTuple):
    """What has to change in a table before rows can come."""

    added: list[pa.Field]
    changed: list[pa.Field]
    """Columns with wider types, or with more fields in what they nest."""


def check_names(columns: Iterable[pa.Field], location: str) -> None:
    """Raise TableError where two columns, or two fields of one, can't be told apart by engines."""
    if wrong := list(_twins("", (), columns)):
        raise TableError(f"{location} can't have these columns: {'; '.join(wrong)}. {_RENAME}")


def _twins(place: str, old: Iterable[pa.Field], new: Iterable[pa.Field]) -> Iterator[str]:
    """Yield what is wrong with new names: most engines know no upper and lower case."""
    there = {each.name for each in old}
    known = {name.lower(): name for name in there}
    for each in new:
        if each.name in there:
            continue
        other = known.setdefault(each.name.lower(), each.name)
        if other != each.name:
            yield f"{place}{each.name} and {place}{other} differ by case alone"
        if pa.types.is_struct(each.type):
            yield from _twins(f"{place}{each.name}.", (), each.type)


def evolution(table: pa.Schema, rows: pa.Schema, *, widens: bool, location: str) -> Evolution:
    """Return what has to change; raises TableError where the rows don't fit.

    A column or a nested field that the rows lack is null for them. One that is narrower than the
    table's is widened as it is written.
    """
    change = Evolution([], [])
    both = _Both(widens=widens)
    for field in rows:
        if field.name not in table.names:
            change.added.append(field.with_nullable(True))
            continue
        old = table.field(field.name)
        merged = both.of(field.name, old.type, field.type)
        if not _same(merged, old.type):
            change.changed.append(old.with_type(merged))
    both.check_fields("", table, rows)
    if both.wrong:
        advice = "Convert the columns, give them other names, or begin a new table"
        if both.could_widen:
            advice += "; Iceberg's columns can become wider"
        raise TableError(f"{location} can't take these rows: {'; '.join(both.wrong)}. {advice}")
    return change


class _Both:
    """Looks for types that hold what a table has and what comes."""

    def __init__(self, *, widens: bool) -> None:
        self._widens = widens
        self.wrong: list[str] = []
        self.could_widen = False

    def of(self, name: str, old: pa.DataType, new: pa.DataType) -> pa.DataType:
        """Return such a type; where there is none, the old one, and what is wrong is noted."""
        if _same(old, new) or is_wider(old, new):
            return old
        if pa.types.is_struct(old) and pa.types.is_struct(new):
            return self._of_structs(name, old, new)
        if pa.types.is_list(old) and pa.types.is_list(new):
            value = self.of(f"{name}.element", old.value_type, new.value_type)
            return pa.list_(old.value_field.with_type(value))
        if pa.types.is_map(old) and pa.types.is_map(new) and _same(old.key_type, new.key_type):
            item = self.of(f"{name}.value", old.item_type, new.item_type)
            return pa.map_(old.key_field, old.item_field.with_type(item))
        if is_wider(new, old):
            if self._widens:
                return new
            self.could_widen = True
        self.wrong.append(f"{name} is {old} in the table and {new} in the rows")
        return old

    def _of_structs(self, name: str, old: pa.StructType, new: pa.StructType) -> pa.DataType:
        self.check_fields(f"{name}.", old, new)
        there = {each.name: each for each in new}
        fields = [
            each.with_type(self.of(f"{name}.{each.name}", each.type, there[each.name].type))
            if each.name in there
            else each
            for each in old
        ]
        names = {each.name for each in old}
        return pa.struct(
            [*fields, *(each.with_nullable(True) for each in new if each.name not in names)]
        )

    def check_fields(self, place: str, old: Iterable[pa.Field], new: Iterable[pa.Field]) -> None:
        """Note the fields that must not be null and would be, and new ones that are there."""
        self.wrong += _twins(place, old, new)
        there = {each.name for each in new}
        self.wrong += [
            f"{place}{each.name} must not be null in the table and is missing from the rows"
            for each in old
            if not each.nullable and each.name not in there
        ]


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
