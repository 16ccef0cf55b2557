"""Rows that are older than a table with keys, of keys that nothing newer has changed.

A key that the table has is newer there. One that it lacks may have been deleted since: by a message
that the job has read, or by one of the backfill, which begins with its newest messages. So those
keys are kept until the backfill is done.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.tables.storage import flush_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BACKFILL: Final = "backfill"
"""The folder of a backfill, in that of a job's state, while there is one."""


class DeletedKeys:
    """The note of keys that newer messages took away: files in the folder of a backfill."""

    def __init__(self, state: Path) -> None:
        self._folder = state / BACKFILL / "deleted"

    def note(self, name: str, keys: pa.Table) -> None:
        """Add keys, durably; what was noted by the same name is replaced."""
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / f"{uuid.uuid4().hex}.draft"
        with draft.open("wb") as file:
            pq.write_table(keys, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._folder / f"{name}.parquet")
        flush_folder(self._folder)

    def read(self) -> Iterator[pa.Table]:
        """Yield all of them."""
        for path in sorted(self._folder.glob("*.parquet")):
            yield pq.read_table(path, partitioning=None)
