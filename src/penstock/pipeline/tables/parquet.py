"""A Parquet table that holds each row of a stream once, whatever ends a run and whenever.

Tasks write files into a staging folder under names that no other attempt shares. A batch is decided
by one record, made visible by an atomic link: it names the staged files and what they are to be
called. Then each file is renamed into the table. A run that is killed before the record leaves
nothing in the table; a run that is killed after it has the renames finished by the next one, which
Spark gives the same batch again. So any reader of Parquet sees every row once, without a manifest.

Names that begin with an underscore are left out by Spark and other readers of Parquet folders.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

COMMITS_KEPT: Final = 100
"""As many as Spark keeps of its own batches."""


class TableError(Exception):
    """The folder can't be this query's table; the message says what to do."""


@dataclass(frozen=True)
class StagedFile:
    """One file that a task wrote and that is not yet part of the table."""

    staged: str
    """Its name in the staging folder."""
    topic: str
    partition: int
    start: int
    """The first offset of the range that it holds; `end` is the one after the last."""
    end: int
    rows: int
    again: bool = False
    """Whether the table holds these offsets of an earlier topic of that name."""

    @property
    def name(self) -> str:
        """Its name in the table."""
        name = f"part-{self.topic}-{self.partition:05}-{self.start:020}-{self.end:020}"
        return f"{name}-{self.staged}" if self.again else f"{name}.parquet"


class ParquetTable:
    """One table's folder; one query writes to it, any number of tasks stage files for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / "_checkpoint"
        self.spark_log = folder / "_penstock" / "spark.log"
        self._staging = folder / "_penstock" / "staging"
        self._commits = folder / "_penstock" / "commits"

    def create(self) -> None:
        """Make the folders. Raises TableError where the folder holds files of other origin."""
        mine = self._commits.is_dir()
        if not mine and self.folder.is_dir() and any(self.folder.glob("*.parquet")):
            raise TableError(
                f"{self.folder} holds Parquet files that no pipeline of Penstock wrote: choose an "
                "empty folder"
            )
        for folder in (self._staging, self._commits):
            folder.mkdir(parents=True, exist_ok=True)

    def stage(self) -> Path:
        """Return a path for a new file that is nobody else's."""
        return self._staging / f"{uuid.uuid4().hex}.parquet"

    def commit(self, query: str, batch: int, files: Sequence[StagedFile]) -> int:
        """Make one batch's files part of the table, durably; return its rows.

        A batch that is committed already keeps its first files, and those given now are dropped.
        Raises TableError where another query has written to the table.
        """
        record = self._decide(query, batch, files)
        for file in record:
            self._publish(file)
        _flush_folder(self.folder)
        self._clear(batch)
        return sum(file.rows for file in record)

    def _decide(self, query: str, batch: int, files: Sequence[StagedFile]) -> list[StagedFile]:
        newest = max(self._commits.glob("*.json"), default=None)
        if newest is not None and json.loads(newest.read_bytes())["query"] != query:
            raise TableError(
                f"{self.folder} was written by another query: give the checkpoint that belongs to "
                "it, or an empty folder for the table"
            )
        path = self._commits / f"{batch:020d}.json"
        if not path.exists():
            if newest is not None and newest.name > path.name:
                raise self._older_checkpoint(batch)
            files = [replace(file, again=(self.folder / file.name).exists()) for file in files]
            self._write_record(path, {"query": query, "files": [asdict(file) for file in files]})
        decided = [StagedFile(**file) for file in json.loads(path.read_bytes())["files"]]
        if _covered(decided) != _covered(files):
            raise self._older_checkpoint(batch)
        return decided

    def _older_checkpoint(self, batch: int) -> TableError:
        return TableError(
            f"batch {batch} of {self.folder} was committed with other offsets than the "
            "checkpoint holds: the checkpoint is older than the table, and can't go on with it"
        )

    def _write_record(self, path: Path, record: dict[str, Any]) -> None:
        draft = self._staging / f"{uuid.uuid4().hex}.json"
        with draft.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, never replaces what another run decided.
        os.link(draft, path)
        draft.unlink()
        _flush_folder(self._commits)

    def _publish(self, file: StagedFile) -> None:
        target = self.folder / file.name
        if target.exists():
            return
        try:
            (self._staging / file.staged).rename(target)
        except FileNotFoundError:
            raise TableError(
                f"{target} is missing though its batch was committed: it was removed by hand, and "
                "its rows can be had again only by a new table from a new checkpoint"
            ) from None

    def _clear(self, batch: int) -> None:
        """Remove what ended attempts left, and the oldest records."""
        for leftover in self._staging.iterdir():
            leftover.unlink(missing_ok=True)
        for record in sorted(self._commits.glob("*.json")):
            if int(record.stem) <= batch - COMMITS_KEPT:
                record.unlink(missing_ok=True)


def _covered(files: Sequence[StagedFile]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the offsets of each partition, however they were cut into files."""
    covered: dict[tuple[str, int], tuple[int, int]] = {}
    for file in files:
        source = (file.topic, file.partition)
        start, end = covered.get(source, (file.start, file.end))
        covered[source] = (min(start, file.start), max(end, file.end))
    return covered


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
