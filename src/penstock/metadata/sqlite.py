"""SQLite, in a file of the data folder."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from penstock.metadata.database import NO_PARAMETERS
from penstock.metadata.statements import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from penstock.metadata.database import Parameters, Row
    from penstock.metadata.statements import Statement

_WORDS: Final = {
    Kind.TEXT: "VARCHAR",
    Kind.UUID: "VARCHAR(32)",
    Kind.INTEGER: "INTEGER",
    Kind.BIGINT: "BIGINT",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.BYTES: "BLOB",
    Kind.IDENTITY: "INTEGER PRIMARY KEY AUTOINCREMENT",
}

_SYNCHRONOUS: Final = "FULL"
"""It makes a commit in WAL mode wait for the disk: it survives a power cut."""


class SqliteDatabase:
    """An engine as `penstock.metadata.database` describes it."""

    error: type[Exception] = sqlite3.Error
    words: Mapping[Kind, str] = _WORDS

    def __init__(self, file: Path) -> None:
        # Without isolation_level the module begins no transactions of its own. The thread that
        # writes is not the one that opens and reads, but only one is at work at a time.
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        try:
            self._set("journal_mode=WAL")
            self._set(f"synchronous={_SYNCHRONOUS}")
            self._set("foreign_keys=ON")
        except sqlite3.Error:
            self._connection.close()
            raise

    def execute(
        self, statement: Statement, rows: Sequence[Parameters] = (NO_PARAMETERS,)
    ) -> list[Row]:
        if statement.gives_rows:
            return [found for row in rows for found in self._connection.execute(statement.sql, row)]
        self._connection.executemany(statement.sql, rows)
        return []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # Nothing is left to roll back where SQLite did so itself, as when the disk is full.
            self._connection.rollback()
            raise

    @contextmanager
    def schema_change(self) -> Iterator[None]:
        # SQLite alters little of a table; the rest means to copy it and to drop the old one, which
        # would delete every row that references it. The switch has no effect in a transaction.
        self._set("foreign_keys=OFF")
        try:
            with self.transaction():
                yield
                self._check_references()
        finally:
            self._set("foreign_keys=ON")

    def close(self) -> None:
        self._connection.close()

    def _set(self, pragma: str) -> None:
        self._connection.execute(f"PRAGMA {pragma}")

    def _check_references(self) -> None:
        broken = self._connection.execute("PRAGMA foreign_key_check").fetchone()
        if broken is not None:
            raise sqlite3.IntegrityError(f"a row of {broken[0]} references one that is not there")
