"""One SQL database behind one thread: rows are durable when `write` returns.

Reads happen at start only; from then on the broker answers from memory and writes through. Writes
that arrive while a transaction is being committed share the next one, so that a thousand small
commits cost a few flushes of the disk.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import create_engine, event, select
from sqlalchemy.exc import SQLAlchemyError

from penstock.metadata.schema import SCHEMA_VERSION, properties, tables
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection, CursorResult, Engine, Executable, Row, Select

Rows: TypeAlias = "Sequence[Mapping[str, Any]]"


class MetadataError(Exception):
    """The database refused or failed a read or a write; nothing of that write is kept."""


class _Write(NamedTuple):
    statements: Sequence[tuple[Executable, Rows | None]]
    done: asyncio.Future[list[Any]]


class MetadataStore:
    """Everything durable that is not a message."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        self._connection: Connection = engine.connect()
        self._waiting: list[_Write] = []
        self._tasks = Tasks()
        self._committing: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, file: Path) -> MetadataStore:
        """Open or create the database in `file`; blocks.

        Raises MetadataError where the file is not a database of this version of Penstock.
        """
        engine = create_engine(f"sqlite:///{file}", connect_args={"check_same_thread": False})
        event.listen(engine, "connect", _set_pragmas)
        try:
            tables.create_all(engine)
            store = cls(engine)
            store._check_version(file)
        except SQLAlchemyError as error:
            raise MetadataError(f"{file} can't be opened: {error}") from error
        return store

    def query(self, statement: Select[Any]) -> Sequence[Row[Any]]:
        """Read rows; blocks, and is meant for the start only."""
        assert self._committing is None, "reads after the start are answered from memory"
        rows = self._connection.execute(statement).all()
        self._connection.rollback()
        return rows

    async def write(self, statement: Executable, rows: Rows | None = None) -> Any:
        """Run one statement, once a row where rows are given, and return when it is durable.

        The result is the rows of a RETURNING clause, else the number of rows that were changed.
        Raises MetadataError when the database refuses it.
        """
        return (await self.write_all([(statement, rows)]))[0]

    async def write_all(self, statements: Sequence[tuple[Executable, Rows | None]]) -> list[Any]:
        """Run several statements in one transaction: all of them last, or none does."""
        done: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Write(statements, done))
        if self._committing is None:
            self._committing = self._tasks.start(self._commit_waiting(), "metadata commit")
        # A caller that is cancelled takes nothing back: its write may be in the running commit.
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Finish what was asked for, then let the database go."""
        while self._committing is not None:
            await self._committing
        self._thread.shutdown()
        self._connection.close()
        self._engine.dispose()

    async def _commit_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                writes, self._waiting = self._waiting, []
                outcomes = await loop.run_in_executor(self._thread, self._commit, writes)
                for write, outcome in zip(writes, outcomes, strict=True):
                    _settle(write.done, outcome)
        finally:
            self._committing = None

    def _commit(self, writes: Sequence[_Write]) -> list[list[Any] | MetadataError]:
        try:
            with self._connection.begin():
                return [self._execute(write) for write in writes]
        except Exception as error:  # whatever it was, the callers that wait must hear of it
            if len(writes) == 1:
                return [MetadataError(str(error))]
        # One bad write must not cost its neighbours theirs.
        return [outcome for write in writes for outcome in self._commit([write])]

    def _execute(self, write: _Write) -> list[Any]:
        return [
            _result(self._connection.execute(statement, rows))
            for statement, rows in write.statements
        ]

    def _check_version(self, file: Path) -> None:
        found = self._connection.execute(
            select(properties.c.value).where(properties.c.name == "schema_version")
        ).scalar()
        if found is None:
            self._connection.execute(
                properties.insert(), {"name": "schema_version", "value": str(SCHEMA_VERSION)}
            )
            self._connection.commit()
        elif found != str(SCHEMA_VERSION):
            raise MetadataError(
                f"{file} has schema version {found}, and this Penstock reads {SCHEMA_VERSION}; "
                "use the version of Penstock that wrote it"
            )
        else:
            self._connection.rollback()


def _set_pragmas(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # FULL makes a commit in WAL mode wait for the disk: a committed offset survives a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _result(result: CursorResult[Any]) -> Any:
    return result.all() if result.returns_rows else result.rowcount


def _settle(done: asyncio.Future[list[Any]], outcome: list[Any] | MetadataError) -> None:
    if done.done():
        return
    if isinstance(outcome, MetadataError):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)
