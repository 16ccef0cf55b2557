"""How a table is cut into parts: by a column's value, or by the day or hour of a time (UTC)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline.file_names import FILE_NAME_BYTES
from penstock.pipeline.tables.interface import TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.pipeline.tables.interface import Values

_EXPRESSION: Final = re.compile(r"(?:(?P<function>\w+)\()?(?P<column>[^()]+?)(?P<end>\))?")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name for the folder of rows without a value, which all readers of such folders know."""


class Transform(StrEnum):
    """What of a column's value decides."""

    IDENTITY = "identity"
    DAY = "day"
    HOUR = "hour"


@dataclass(frozen=True)
class PartitionField:
    """One column that decides to which part a row belongs."""

    column: str
    transform: Transform

    @property
    def name(self) -> str:
        """Its name in the table: Iceberg's own for a transform."""
        identity = self.transform is Transform.IDENTITY
        return self.column if identity else f"{self.column}_{self.transform}"

    @property
    def is_derived(self) -> bool:
        """Whether it is no column of the rows themselves."""
        return self.transform is not Transform.IDENTITY

    @property
    def type(self) -> pa.DataType:
        """The type of a derived column."""
        return pa.date32() if self.transform is Transform.DAY else pa.string()

    def of(self, rows: pa.RecordBatch) -> pa.Array:
        """Return its value for each row."""
        column = rows.column(self.column)
        match self.transform:
            case Transform.DAY:
                return column.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
            case Transform.HOUR:
                # Arrow's %S holds fractions, and no other part does.
                return pc.strftime(column.cast(pa.timestamp("s"), safe=False), "%Y-%m-%d-%H")
        return column


def parse_partitions(expressions: Sequence[str], schema: pa.Schema) -> tuple[PartitionField, ...]:
    """Return what expressions such as `topic`, `day(timestamp)` and `hour(timestamp)` say.

    Raises TableError where they do not fit the schema.
    """
    fields = tuple(map(parse_partition, expressions))
    for field in fields:
        _check(field, schema)
    return fields


def parse_partition(expression: str) -> PartitionField:
    """Return what one expression says; raises TableError."""
    found = _EXPRESSION.fullmatch(expression.replace(" ", ""))
    function = (found and found["function"]) or "identity"
    function = "day" if function == "date" else function
    if (
        found is None
        or bool(found["function"]) != bool(found["end"])
        or function not in {*Transform}
    ):
        raise TableError(
            f"a table can't be partitioned by {expression!r}: give a column, day(column) or "
            "hour(column)"
        )
    return PartitionField(found["column"], Transform(function))


def _check(field: PartitionField, schema: pa.Schema) -> None:
    wanted = f"a table can't be partitioned by {field.name}"
    if field.column not in schema.names:
        raise TableError(f"{wanted}: its columns are {', '.join(schema.names)}")
    kind = schema.field(field.column).type
    if field.is_derived and not pa.types.is_timestamp(kind):
        raise TableError(f"{wanted}: {field.column} is {kind}, and no time")
    if not field.is_derived and not _names_a_part(kind):
        raise TableError(
            f"{wanted}, which is {kind}: columns of text, whole numbers, dates and truth values can"
        )


def _names_a_part(kind: pa.DataType) -> bool:
    is_kind = (
        pa.types.is_string,
        pa.types.is_signed_integer,
        pa.types.is_date32,
        pa.types.is_boolean,
    )
    return any(is_it(kind) for is_it in is_kind)


def with_derived(fields: Sequence[PartitionField], schema: pa.Schema) -> pa.Schema:
    """Return a schema with the columns that fields derive, where it lacks them."""
    for field in fields:
        if field.name not in schema.names:
            schema = schema.append(pa.field(field.name, field.type))
    return schema


def parted(
    fields: Sequence[PartitionField], rows: pa.RecordBatch
) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Yield the rows of each part, in their order, with the columns that fields derive."""
    if not fields:
        yield (), rows
        return
    for field in fields:
        if field.name not in rows.schema.names:
            rows = rows.append_column(field.name, field.of(rows))
    texts = [_texts(rows.column(field.name)) for field in fields]
    numbered = pa.StructArray.from_arrays(texts, [field.name for field in fields])
    codes = _codes(texts)
    for code in range(len(codes.dictionary)):
        chosen = pc.equal(codes.indices, code)
        first = pc.index(chosen, True).as_py()
        yield tuple(numbered[first].as_py().values()), rows.filter(chosen)


def _texts(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _codes(texts: Sequence[pa.Array]) -> pa.DictionaryArray:
    marked = [pc.fill_null(pc.binary_join_element_wise("=", each, ""), "") for each in texts]
    return pc.binary_join_element_wise(*marked, "\0").dictionary_encode()


def check_folders(expressions: Sequence[str], parts: Iterable[Values]) -> None:
    """Raise TableError where a part's value is too long for the name of its folder."""
    for values in parts:
        for folder in hive_folder(expressions, values).split("/"):
            if len(folder) > FILE_NAME_BYTES:
                name, _, value = folder.partition("=")
                raise TableError(
                    f"a folder can't be named by all of the value {unquote(value)[:40]!r}... in "
                    f"{unquote(name)}, by which the table is partitioned: a name has "
                    f"{FILE_NAME_BYTES} bytes, and three for each character that is no letter or "
                    "digit. Begin another table without these parts, or with --table-format delta "
                    "or iceberg"
                )


def hive_folder(expressions: Sequence[str], values: Values) -> str:
    """Return the folder of a part, as Hive and all who read its layout name it."""
    pairs = zip(map(parse_partition, expressions), values, strict=True) if values else ()
    return "".join(
        f"{quote(field.name, safe='')}={_NULL if value is None else quote(value, safe='')}/"
        for field, value in pairs
    )
