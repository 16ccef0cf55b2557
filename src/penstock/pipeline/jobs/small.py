"""A run that one process can do soon goes without Spark, whose start alone takes ten CPU seconds.

It does what Spark does with the same stream, with the same reader, the same tasks, the same table
and the same checkpoint. So it is one run among others: each goes on where another one ended, in
whatever way.
"""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.streaming.datasource import ReadMaxRows

from penstock.clients.closing import Closing
from penstock.pipeline.jobs.checkpoint import Checkpoint
from penstock.pipeline.jobs.settings import checkpoint_of, source_options
from penstock.pipeline.jobs.writing import Written
from penstock.pipeline.session import LOCAL, is_open
from penstock.pipeline.source.offsets import from_json
from penstock.pipeline.source.options import parse
from penstock.pipeline.tables.staged_files import TableFilesReader, stage_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.datasource import InputPartition

    from penstock.pipeline.jobs.checks import Found
    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.tables.interface import StagedFile
    from penstock.pipeline.tables.table import Table

SMALL_BYTES: Final = 4 << 30
"""Stored bytes; a minute or so on two cores, and so what the longest batch takes to be finished."""

SMALL_ROWS: Final = 50_000_000
"""However well these bytes are compressed."""

THREADS_MAX: Final = 8
"""Tasks that are done at once: each holds a row group, and Python's lock what is not compiled."""


def may_go_without_spark(config: PipelineConfig, table: Table) -> bool:
    """Whether a run could do without Spark, if there is little to read.

    Where Spark runs already nothing is saved, and whoever names a master wants it.
    """
    past_java = not config.needs_spark and config.target_topic is None
    if not past_java or config.interval_seconds is not None or config.master != LOCAL:
        return False
    return not is_open() and Checkpoint(checkpoint_of(config, table)).is_plain


def is_small(found: Found) -> bool:
    """Whether what waits to be read is little."""
    return found.rows <= SMALL_ROWS and found.size_bytes <= SMALL_BYTES


class Batch(NamedTuple):
    """One batch of a query, and where it ends."""

    query: str
    number: int
    end: OffsetsJson


class SmallRun(Closing):
    """Reads what there is when it begins, batch by batch.

    Methods raise SourceError, OptionError, SchemaError, ParseError, TableError and OSError.
    """

    def __init__(self, config: PipelineConfig, table: Table) -> None:
        self._options = parse(source_options(config), streaming=True)
        self._limit = ReadMaxRows(config.batch_rows)
        self._table = table
        self._checkpoint = Checkpoint(checkpoint_of(config, table))
        self._reader = TableFilesReader(self._options, table.config)
        self._done: OffsetsJson = {}

    def close(self) -> None:
        self._reader.stop()

    def prepare(self) -> None:
        """Make the table fit for what is to be read."""
        self._reader.prepare()

    def batches(self) -> Iterator[tuple[int, Written]]:
        """Do what a run before left undone, and what has come since; yield each batch when done."""
        query = self._checkpoint.query()
        self._reader.prepareForTriggerAvailableNow()
        number, start, end = self._checkpoint.resumed(self._reader.initialOffset)
        while True:
            self._done = start
            if end is None:
                end = self._reader.latestOffset(start, self._limit)
                if number and end == start:
                    return
                self._checkpoint.plan(number, end)
            partitions = self._reader.partitions(start, end)
            rows = write_here(self._table, self._options, Batch(query, number, end), partitions)
            self._checkpoint.finish(number)
            self._done = end
            yield number, Written(rows)
            number, start, end = number + 1, end, None

    def rows_behind(self) -> int:
        """Return how many rows wait of those that were there at the beginning."""
        latest = from_json(self._reader.reportLatestOffset() or {})
        done = from_json(self._done)
        return sum(max(0, offset - done.get(source, 0)) for source, offset in latest.items())


def write_here(
    table: Table,
    options: SourceOptions,
    batch: Batch,
    partitions: Iterable[InputPartition],
) -> int:
    """Write the rows of all tasks of a batch to a table; return how many there are."""

    def stage(partition: bytes) -> list[StagedFile]:
        return list(stage_task(pickle.loads(partition), options, batch.query, batch.number))  # noqa: S301  # our own

    # Each task has what it reads with for itself, as Spark's tasks have.
    tasks = [pickle.dumps(each) for each in partitions]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, THREADS_MAX), "task") as threads:
        # After an error those that have not begun are cancelled.
        files = [file for staged in threads.map(stage, tasks) for file in staged]
    if not files:
        return 0
    with table.committing():
        return table.commit(batch.query, batch.number, files, batch.end)
