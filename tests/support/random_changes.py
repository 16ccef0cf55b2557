"""What a connector of Debezium's says of a table of a database, whose columns change meanwhile.

A history has stages, each with its columns, what is said in it, and the rows that a table has then
which follows: those of the database, with all columns that there ever were.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import pyarrow as pa
from hypothesis import strategies as st

from penstock.pipeline.values.ddl import parse_ddl
from random_json import NAMES, TYPES, Type, as_column, ddl_of, objects, values

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[Any, ...]

KEYS = st.dictionaries(
    st.sampled_from(["id", "a.b", "key 2"]),
    st.sampled_from(["INT", "BIGINT", "STRING", "BOOLEAN"]),
    min_size=1,
    max_size=2,
)
_CHANGES_MAX = 12
_KEYS_MAX = 4


class Message(NamedTuple):
    partition: int
    key: bytes
    value: bytes | None


class Stage(NamedTuple):
    columns: dict[str, Type]
    messages: list[Message]
    schema: pa.StructType
    """All columns that there ever were, with all of their fields."""
    table: list[Row]

    @property
    def ddl(self) -> str:
        row = f"STRUCT<{ddl_of(self.columns)}>"
        return f"op STRING, before {row}, after {row}"


class History(NamedTuple):
    keys: list[str]
    partitions: int
    stages: list[Stage]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draw what happens to a table that begins empty."""
    kinds = draw(KEYS)
    pool = st.lists(st.tuples(*map(values, kinds.values())), min_size=1, max_size=_KEYS_MAX)
    database = _Database(list(kinds), draw(pool), draw(st.integers(1, 2)))
    others = draw(st.dictionaries(NAMES, TYPES, max_size=4))
    stages = []
    for _ in range(draw(st.integers(1, 3))):
        columns = dict(draw(st.permutations([*kinds.items(), *others.items()])))
        database.begin(columns)
        changes = draw(st.lists(st.integers(0, 4), max_size=_CHANGES_MAX))
        messages = [each for change in changes for each in database.change(draw, change)]
        schema = parse_ddl(ddl_of(database.ever))
        stages.append(Stage(columns, messages, schema, database.rows(schema)))
        others = draw(later(database.ever, others))
    return History(list(kinds), database.partitions, stages)


@dataclass
class _Known:
    """A row of the database."""

    sent: Row
    """As JSON says it."""
    kept: Row
    """As the columns of its time keep it."""


class _Database:
    def __init__(self, keys: list[str], pool: list[Key], partitions: int) -> None:
        self.keys = keys
        self.partitions = partitions
        self.ever: dict[str, Type] = {}
        """All columns that there were, with all of their fields."""
        self._pool = pool
        self._rows: dict[Key, _Known] = {}
        self._columns: dict[str, Type] = {}

    def begin(self, columns: dict[str, Type]) -> None:
        """Have these columns from now on."""
        self._columns = columns
        self.ever = both(self.ever, columns)

    def rows(self, schema: pa.StructType) -> list[Row]:
        """Return the rows, with all fields of a schema."""
        return [filled(each.kept, schema) for each in self._rows.values()]

    def change(self, draw: st.DrawFn, kind: int) -> list[Message]:
        """Draw a change, and return what is said of it."""
        if kind == 4:
            return [self._message(self._pool[0], {"op": "m", "message": {"prefix": "p"}})]
        key = draw(st.sampled_from(self._pool))
        if key not in self._rows:
            return [self._set(draw, key, draw(st.sampled_from("cr")), None)]
        if kind == 0:
            return self._delete(draw, key)
        other = draw(st.sampled_from(self._pool))
        if kind == 1 and other not in self._rows:
            return self._move(draw, key, other)
        # A database may say nothing of the row as it was where its key stays.
        before = draw(st.sampled_from([self._rows[key].sent, None]))
        return [self._set(draw, key, "u", before)]

    def _set(self, draw: st.DrawFn, key: Key, op: str, before: Row | None) -> Message:
        row = {**draw(objects(self._columns)), **dict(zip(self.keys, key, strict=True))}
        row = dict(draw(st.permutations(list(row.items()))))
        self._rows[key] = _Known(row, as_column(row, parse_ddl(ddl_of(self._columns))))
        envelope = {"op": op, "before": before, "after": row, "ts_ms": 1, "source": {"lsn": 7}}
        return self._message(key, dict(draw(st.permutations(list(envelope.items())))))

    def _delete(self, draw: st.DrawFn, key: Key) -> list[Message]:
        gone = self._rows.pop(key).sent
        # Of what is deleted a database says all columns, or those of the key alone.
        before = draw(st.sampled_from([gone, {name: gone[name] for name in self.keys}]))
        said = {"op": "d", "before": before}
        if draw(st.booleans()):
            said["after"] = None
        tombstones = [Message(self._partition(key), self._name(key), None)] * draw(
            st.integers(0, 1)
        )
        return [self._message(key, said), *tombstones]

    def _move(self, draw: st.DrawFn, key: Key, to: Key) -> list[Message]:
        """Change a row's key: one change where they share a partition, or two as Debezium says."""
        before = self._rows[key].sent
        if self._partition(key) == self._partition(to):
            del self._rows[key]
            return [self._set(draw, to, "u", before)]
        return [*self._delete(draw, key), self._set(draw, to, "c", None)]

    def _message(self, key: Key, envelope: Row) -> Message:
        return Message(self._partition(key), self._name(key), json.dumps(envelope).encode())

    def _name(self, key: Key) -> bytes:
        return json.dumps(dict(zip(self.keys, key, strict=True))).encode()

    def _partition(self, key: Key) -> int:
        return crc32(self._name(key)) % self.partitions


@st.composite
def later(draw: st.DrawFn, ever: dict[str, Type], now: dict[str, Type]) -> dict[str, Type]:
    """Draw the columns of a later time: some go, some come, structs get more fields."""
    kept = {name: draw(_more(of)) for name, of in now.items() if draw(st.integers(0, 3))}
    added = draw(st.dictionaries(NAMES, TYPES, max_size=2))
    return kept | {name: of for name, of in added.items() if name not in ever}


@st.composite
def _more(draw: st.DrawFn, of: Type) -> Type:
    if isinstance(of, str):
        return of
    kind, inner = of
    if kind != "struct":
        return kind, draw(_more(inner))
    fields = {name: draw(_more(each)) for name, each in inner.items()}
    added = draw(st.dictionaries(NAMES, TYPES, max_size=1))
    return kind, dict(draw(st.permutations(list(({**added, **fields}).items()))))


def both(one: dict[str, Type], other: dict[str, Type]) -> dict[str, Type]:
    """Return columns that have all fields of two."""
    return one | {name: _both(one[name], of) if name in one else of for name, of in other.items()}


def _both(one: Type, other: Type) -> Type:
    if isinstance(one, str) or isinstance(other, str):
        return other
    kind, inner = one
    return kind, (both(inner, other[1]) if kind == "struct" else _both(inner, other[1]))


def filled(value: Any, of: pa.DataType) -> Any:
    """Return a column's value with all fields of a type; those that it lacks are null.

    The entries of a map are pairs; there are readers to whom they are structs.
    """
    if value is None:
        return None
    if pa.types.is_struct(of):
        return {each.name: filled(value.get(each.name), each.type) for each in of.fields}
    if pa.types.is_map(of):
        pairs = [tuple(each.values()) if isinstance(each, dict) else each for each in value]
        return [(key, filled(each, of.item_type)) for key, each in pairs]
    if pa.types.is_list(of):
        return [filled(each, of.value_type) for each in value]
    return value
