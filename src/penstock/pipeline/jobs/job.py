"""The job that keeps a table up to date with topics: `penstock pipeline run`."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.pipeline.session import LOCAL, open_session
from penstock.pipeline.source.offsets import from_json
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableFormat
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.staged_files import TableFilesSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_ROWS: Final = 2_000_000
"""Rows of one batch: what is done again after a kill, and how often progress is seen."""

STOP_SECONDS: Final = 10
_LOOK_SECONDS: Final = 1
_CAUSE: Final = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)): (.+)$", re.MULTILINE)


class PipelineError(Exception):
    """The job failed; the message is the cause without Spark's own traces."""


@dataclass(frozen=True)
class PipelineConfig:
    """What `penstock pipeline run` does."""

    servers: str
    topics: tuple[str, ...]
    table: Path
    table_format: TableFormat = TableFormat.PARQUET
    partition_by: tuple[str, ...] = ()
    """Columns, `day(column)` or `hour(column)`."""
    upsert_by: tuple[str, ...] = ()
    """Columns of which the table keeps the newest row of each value; without, it keeps all."""
    checkpoint: Path | None = None
    """Where Spark keeps its offsets; inside the table's folder unless set otherwise."""
    interval_seconds: float | None = None
    """How often a batch begins; None ends the job when it has caught up."""
    starting_offsets: str = "earliest"
    read_mode: ReadMode = ReadMode.AUTO
    batch_rows: int = BATCH_ROWS
    include_headers: bool = False
    fail_on_data_loss: bool = True
    compression: str = "zstd"
    master: str = LOCAL


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    batches: int
    rows: int
    """Rows that are part of the table by this run."""
    behind: int | None
    """Rows that wait, as far as Spark has said so."""
    seconds: float


class Run:
    """One run of the job; `stop` may be called from another thread or a signal handler."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        location = str(config.table.absolute())
        self._table_config = TableConfig(
            location,
            config.table_format,
            config.compression,
            partition_by=config.partition_by,
            keys=config.upsert_by,
        )
        self._table = open_table(self._table_config)
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._batches = 0
        self._rows = 0

    def stop(self) -> None:
        """End soon; a batch that would take long is left for the next run."""
        self._stop.set()

    def run(self, report: Callable[[Progress], None]) -> Progress:
        """Run until caught up, or until stopped where an interval is set.

        Raises PipelineError, TableError and JavaError.
        """
        with self._table.only_writer():
            self._table.prepare(arrow_schema(include_headers=self._config.include_headers))
            return self._run(report)

    def _run(self, report: Callable[[Progress], None]) -> Progress:
        spark = open_session("penstock pipeline", self._config.master, self._table.spark_log)
        self._began = time.monotonic()
        query = self._start(spark)
        try:
            self._watch(query, report)
        finally:
            query.stop()
        return self._progress(query)

    def _start(self, spark: SparkSession) -> StreamingQuery:
        config = self._config
        options = {
            "penstock.bootstrap.servers": config.servers,
            "subscribe": ",".join(config.topics),
            "startingOffsets": config.starting_offsets,
            "maxOffsetsPerTrigger": str(config.batch_rows),
            "includeHeaders": str(config.include_headers),
            "failOnDataLoss": str(config.fail_on_data_loss),
            "readMode": config.read_mode.value,
            "table": self._table_config.to_json(),
        }
        files = spark.readStream.format(TableFilesSource.name()).options(**options).load()
        checkpoint = config.checkpoint or self._table.checkpoint
        writer = files.writeStream.foreachBatch(self._commit)
        writer = writer.option("checkpointLocation", str(checkpoint.absolute()))
        if config.interval_seconds is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{config.interval_seconds} seconds").start()

    def _commit(self, frame: DataFrame, batch: int) -> None:
        rows = [row.asDict() for row in frame.collect()]
        if not rows:
            return
        query = {row.pop("query") for row in rows}
        assert len(query) == 1, "the tasks of one batch belong to one query"
        self._rows += self._table.commit(
            query.pop(), batch, [StagedFile.from_record(row) for row in rows]
        )
        self._batches += 1

    def _watch(self, query: StreamingQuery, report: Callable[[Progress], None]) -> None:
        while not _has_ended(query):
            report(self._progress(query))
            if self._stop.is_set():
                _finish_batch(query)
                return

    def _progress(self, query: StreamingQuery) -> Progress:
        seconds = time.monotonic() - self._began
        return Progress(self._batches, self._rows, _behind(query.lastProgress), seconds)


def _has_ended(query: StreamingQuery) -> bool:
    try:
        return bool(query.awaitTermination(_LOOK_SECONDS))
    except Exception as error:
        raise PipelineError(_cause(error)) from error


def _finish_batch(query: StreamingQuery) -> None:
    """Return between two batches, or after a while within one."""
    deadline = time.monotonic() + STOP_SECONDS
    while query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.01)


def _behind(progress: Any) -> int | None:
    if progress is None or not progress["sources"]:
        return None
    # What Spark does again after a crash is reported before the source was asked for its end.
    end, latest = (
        json.loads(progress["sources"][0][name] or "null") for name in ("endOffset", "latestOffset")
    )
    if end is None or latest is None:
        return None
    done = from_json(end)
    return sum(max(0, offset - done.get(key, 0)) for key, offset in from_json(latest).items())


def _cause(error: Exception) -> str:
    """Return the innermost Python error that Spark's message quotes."""
    ours = _CAUSE.findall(str(error))
    return str(ours[-1][1]) if ours else str(error).splitlines()[0]
