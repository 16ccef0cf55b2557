"""One SQL database behind one thread: rows are durable when `write` returns.

Reads happen at start only; from then on the broker answers from memory and writes through. Writes
that arrive while a transaction is being committed share the next one, so that a thousand small
commits cost a few flushes of the disk.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.database import NO_PARAMETERS
from penstock.metadata.errors import MetadataError
from penstock.metadata.migrations import migrate
from penstock.metadata.sqlite import SqliteDatabase
from penstock.slow_steps import blocked_by
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.metadata.database import Database, Parameters, Row
    from penstock.metadata.statements import Statement

_TOLD_AT_ONCE: Final = 256
"""Of those that wait for one commit, in one pass of the event loop: some 5 microseconds each until
it stands in line to go on (`penstock.going_on`)."""

logger = logging.getLogger(__name__)


class Change(NamedTuple):
    """A statement to run once for each row of parameters."""

    statement: Statement
    rows: Sequence[Parameters]


class _Write(NamedTuple):
    changes: Sequence[Change]
    done: asyncio.Future[list[Row]]


class MetadataStore:
    """Runs the statements of the repositories, and knows none of them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        self._waiting: list[_Write] = []
        self._tasks = Tasks()
        self._committing: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, file: Path) -> MetadataStore:
        """Open or create the SQLite database in `file`, migrating an older one; blocks.

        Raises MetadataError where the file is no database, or one of a newer version of Penstock.
        """
        try:
            with blocked_by("opening the database %s", file), ExitStack() as on_failure:
                database = SqliteDatabase(file)
                on_failure.callback(database.close)
                migrate(database, str(file))
                on_failure.pop_all()
        except SqliteDatabase.error as error:
            raise MetadataError(f"{file} can't be opened: {error}") from error
        return cls(database)

    def read(self, statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Row]:
        """Read rows; blocks, and is meant for the start only. Raises MetadataError."""
        assert self._committing is None, "reads after the start are answered from memory"
        try:
            return self._database.execute(statement, [parameters])
        except self._database.error as error:
            raise MetadataError(f"{_words(statement)} can't be read: {error}") from error

    def write_at_start(self, *changes: Change) -> None:
        """Write before anything is served; blocks. Raises MetadataError."""
        assert self._committing is None, "writes after the start share commits"
        (outcome,) = self._commit([changes])
        if isinstance(outcome, MetadataError):
            raise outcome

    async def write(self, *changes: Change) -> list[Row]:
        """Return when the changes are durable: all of them last, or none does.

        Returns the rows that statements among them read. Raises MetadataError.
        """
        done: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Write(changes, done))
        if self._committing is None:
            self._committing = self._tasks.start(self._commit_waiting(), "metadata commit")
        return await done

    def close_now(self) -> None:
        """Close a database that was only read from, or written to at the start."""
        assert self._committing is None, "writes that were asked for are finished first"
        self._thread.shutdown()
        self._database.close()

    async def close(self) -> None:
        """Finish what was asked for, then close the database."""
        while self._committing is not None:
            await self._committing
        self.close_now()

    async def _commit_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                writes, self._waiting = self._waiting, []
                changes = [write.changes for write in writes]
                outcomes = await loop.run_in_executor(self._thread, self._commit, changes)
                await _tell(writes, outcomes)
        finally:
            self._committing = None

    def _commit(self, writes: Sequence[Sequence[Change]]) -> list[list[Row] | MetadataError]:
        try:
            with self._database.transaction():
                return [self._execute(changes) for changes in writes]
        except Exception as error:  # whatever it was, the callers that wait must hear of it
            if len(writes) == 1:
                what = _words(writes[0][0].statement)
                # One line: where the disk is full, every write fails.
                logger.error("%s were not written: %r", what, error)  # noqa: TRY400
                return [MetadataError(f"{what} were not written; the broker's log says why")]
        # One bad write must not cost its neighbours theirs, nor have each wait for the disk alone.
        half = len(writes) // 2
        return self._commit(writes[:half]) + self._commit(writes[half:])

    def _execute(self, changes: Sequence[Change]) -> list[Row]:
        return [row for change in changes for row in self._database.execute(*change)]


def _words(statement: Statement) -> str:
    return statement.table.replace("_", " ")


async def _tell(writes: Sequence[_Write], outcomes: Sequence[list[Row] | MetadataError]) -> None:
    """Give each its outcome, in the order in which they were asked for.

    A commit takes as long as the disk, so thousands may wait for one. All at once they would wake
    in a single pass of the event loop, whatever each then does.
    """
    for told, (write, outcome) in enumerate(zip(writes, outcomes, strict=True), start=1):
        _settle(write.done, outcome)
        if not told % _TOLD_AT_ONCE:
            await asyncio.sleep(0)


def _settle(done: asyncio.Future[list[Row]], outcome: list[Row] | MetadataError) -> None:
    if done.cancelled():
        return  # The caller takes nothing back by that: its write may have been on its way.
    if isinstance(outcome, MetadataError):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)
