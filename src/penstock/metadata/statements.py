"""Declared tables, and the few SQL statements that are made about them.

The SQL is what SQLite (from 3.24) and PostgreSQL (from 10) both read: every name is in double
quotes, every value is a parameter written `:name`, and there are no literals, so that an engine
with another style of parameters replaces them by one expression. What the engines call the kinds of
columns is the only difference, and each engine brings its own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Kind(Enum):
    """What a column holds. None of them is ever NULL."""

    TEXT = auto()
    UUID = auto()  # as 32 hexadecimal digits
    INTEGER = auto()  # 32 bits, signed
    BIGINT = auto()  # 64 bits, signed
    BOOLEAN = auto()
    BYTES = auto()
    IDENTITY = auto()  # the primary key, a number that is given to one row ever


class Statement(NamedTuple):
    """SQL, and the table that it is about."""

    table: str
    sql: str
    gives_rows: bool = False


class Column(NamedTuple):
    """With `references`, the id of that table's row, with which this row is deleted."""

    name: str
    kind: Kind
    references: str = ""

    def declared(self, words: Mapping[Kind, str]) -> str:
        """Return the column's line in CREATE TABLE."""
        line = f"{_quoted(self.name)} {words[self.kind]} NOT NULL"
        if self.references:
            line += f' REFERENCES {_quoted(self.references)} ("id") ON DELETE CASCADE'
        return line


@dataclass(frozen=True)
class Table:
    """A table's columns, its primary key, and which columns are unique together besides."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    index: str = ""
    """A column by which rows are found too: where another table's row goes, so do those of it."""

    def create(self, words: Mapping[Kind, str]) -> Statement:
        """Make the table where it is missing, with an engine's words for the kinds of columns."""
        lines = [column.declared(words) for column in self.columns]
        if not any(column.kind is Kind.IDENTITY for column in self.columns):
            lines.append(f"PRIMARY KEY ({_listed(self.key)})")
        lines += [f"UNIQUE ({_listed(names)})" for names in self.unique]
        return self._statement(f"CREATE TABLE IF NOT EXISTS {self._quoted} ({', '.join(lines)})")

    def create_index(self) -> Statement:
        """Make the index of the table that has one."""
        name = _quoted(f"{self.name}_by_{self.index}")
        return self._statement(f"CREATE INDEX {name} ON {self._quoted} ({_quoted(self.index)})")

    def insert(self) -> Statement:
        """Add a row. A key that is there is refused."""
        names = [column.name for column in self.columns]
        values = ", ".join(f":{name}" for name in names)
        return self._statement(f"INSERT INTO {self._quoted} ({_listed(names)}) VALUES ({values})")

    def upsert(self) -> Statement:
        """Add a row, or give the row of this key the other values."""
        others = [column.name for column in self.columns if column.name not in self.key]
        assigned = ", ".join(f'{_quoted(name)} = "excluded".{_quoted(name)}' for name in others)
        return self._statement(
            f"{self.insert().sql} ON CONFLICT ({_listed(self.key)}) DO UPDATE SET {assigned}"
        )

    def upsert_beside(self, other: Table) -> Statement:
        """As `upsert`, but only where `other` has a row of the same key, as far as its key goes."""
        names = [column.name for column in self.columns]
        values = ", ".join(_quoted(name) if name in other.key else f":{name}" for name in names)
        others = [name for name in names if name not in self.key]
        assigned = ", ".join(f'{_quoted(name)} = "excluded".{_quoted(name)}' for name in others)
        return self._statement(
            f"INSERT INTO {self._quoted} ({_listed(names)}) "
            f"SELECT {values} FROM {other._quoted}{_condition(other.key)} "
            f"ON CONFLICT ({_listed(self.key)}) DO UPDATE SET {assigned}"
        )

    def update(self, *names: str, where: Sequence[str]) -> Statement:
        """Set the columns `names` of the row in which the columns `where` have these values."""
        assert not set(names) & set(where), "a parameter has one value"
        assigned = ", ".join(_equals(name) for name in names)
        return self._statement(f"UPDATE {self._quoted} SET {assigned}{_condition(where)}")

    def delete(self, *, where: Iterable[str], below: str = "") -> Statement:
        """Delete rows; with `below`, of those the ones in which this column is less than that."""
        limit = f" AND {_quoted(below)} < :{below}" if below else ""
        return self._statement(f"DELETE FROM {self._quoted}{_condition(where)}{limit}")

    def select(self, *, where: Iterable[str] = (), order_by: Iterable[str] = ()) -> Statement:
        """Read whole rows, with the columns in the order in which they are declared."""
        names = _listed(column.name for column in self.columns)
        order = _listed(order_by)
        sql = f"SELECT {names} FROM {self._quoted}{_condition(where)}"
        return self._statement(sql + (f" ORDER BY {order}" if order else ""), gives_rows=True)

    @property
    def _quoted(self) -> str:
        return _quoted(self.name)

    def _statement(self, sql: str, *, gives_rows: bool = False) -> Statement:
        return Statement(self.name, sql, gives_rows)


def _condition(names: Iterable[str]) -> str:
    terms = " AND ".join(_equals(name) for name in names)
    return f" WHERE {terms}" if terms else ""


def _equals(name: str) -> str:
    return f"{_quoted(name)} = :{name}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(_quoted(name) for name in names)


def _quoted(name: str) -> str:
    return f'"{name}"'
