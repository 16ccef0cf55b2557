"""The job that keeps a table up to date with topics: `penstock pipeline run`."""

from __future__ import annotations

import errno
import logging
import re
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JNetworkError

from penstock import wall_clock
from penstock.pipeline.causes import cause_of
from penstock.pipeline.jobs.batch_ends import CheckpointError
from penstock.pipeline.jobs.beginning import Beginning
from penstock.pipeline.jobs.checks import CheckError, look
from penstock.pipeline.jobs.config import DefinitionError, PipelineConfig
from penstock.pipeline.jobs.going_on import loss_of, newest_batch
from penstock.pipeline.jobs.opening import writing_of
from penstock.pipeline.jobs.progress import LateRows, Pace, Progress, rows_behind
from penstock.pipeline.jobs.recording import record
from penstock.pipeline.jobs.settings import checkpoint_of
from penstock.pipeline.jobs.small import SmallRun, is_small, may_go_without_spark
from penstock.pipeline.jobs.state import JobState, Phase, Status
from penstock.pipeline.session import open_session
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.options import OptionError
from penstock.pipeline.tables.interface import state_folder
from penstock.pipeline.values.errors import ParseError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.pipeline.jobs.writing import Written
    from penstock.pipeline.tables.table import Table

__all__ = ["PipelineConfig", "PipelineError", "Progress", "Run"]

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 10
_LOOK_SECONDS: Final = 1
STARTS_MAX: Final = 5
"""Of a stream whose Python takes longer than Spark's ten seconds, for which there is no setting."""
_SLOW_PYTHON: Final = "Python worker failed to connect back"
_OTHER_STATE: Final = re.compile(r"\[\w*(STATEFUL_OPERATOR|STATE_STORE)")
"""How Spark's names of such errors go."""


_IN_WORDS: Final = (
    CheckError,
    CheckpointError,
    DefinitionError,
    OptionError,
    SourceError,
    SinkError,
    SchemaError,
    ParseError,
    OSError,
)


_NO_ROOM: Final = (
    "the disk of the table, or of its checkpoint, is full: make room and run the job again, which "
    "goes on behind the last batch that it finished"
)


class PipelineError(Exception):
    """The job failed; the message is the cause without Spark's own traces."""


class _SlowPythonError(PipelineError):
    """A process that Spark starts beside a stream was not there in time."""

    def __init__(self) -> None:
        super().__init__(
            "Spark gives a Python that it starts ten seconds, and this machine is too busy for "
            f"that ({_SLOW_PYTHON})"
        )


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except _IN_WORDS as error:
        raise PipelineError(_NO_ROOM if _is_disk_full(error) else str(error)) from error


class Run:
    """One run of the job; `stop` may be called from another thread or a signal handler."""

    def __init__(
        self,
        config: PipelineConfig,
        each_batch: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        """Prepare a run; `each_batch` gets what `batches.jsonl` gets, from some thread.

        Raises PipelineError and TableError.
        """
        self._config = config
        self._pinned = config
        self._each_batch = each_batch
        with _in_words():
            self._writing = writing_of(config)
        self._state = JobState(state_folder(config.table))
        self._status = Status.of_this_process(config.topics, config.target)
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._pace = Pace()
        self._batches = 0
        self._rows = 0
        self._unmet: Counter[str] = Counter()
        self._late = LateRows()
        self._query: StreamingQuery | None = None

    def stop(self) -> None:
        """End soon; a batch that would take long is left for the next run."""
        self._stop.set()

    def run(self, report: Callable[[Progress], None]) -> Progress:
        """Run until caught up, or until stopped where an interval is set.

        Raises PipelineError, TableError and SessionError.
        """
        table = self._writing.table
        with _in_words(), table.only_writer(), self._stated():
            self._writing.look()
            if self._begin():
                return self._run_small(report)
            return self._run_with_spark(report)

    def _begin(self) -> bool:
        """Note where a new table begins; return whether this run can do without Spark."""
        config, table = self._config, self._writing.table
        newest = newest_batch(config, table)
        if newest is not None and config.target_topic is None and table.is_there():
            self._warn_of_losses(table)
        found = look(config, None if newest is None else newest.end)
        beginning = Beginning(self._state.folder)
        self._pinned = beginning.pinned(config, newest, found.starting)
        self._writing = writing_of(self._pinned)
        return may_go_without_spark(config, self._writing.table) and is_small(found)

    def _warn_of_losses(self, table: Table) -> None:
        # In a store only a list of all objects would say it: `pipeline check` has one made.
        loss = None if table.place.local is None else loss_of(table)
        if loss is not None:
            logger.warning("%s", loss)
            self._status = replace(self._status, warning=loss)

    def _run_small(self, report: Callable[[Progress], None]) -> Progress:
        self._pace.add(time.monotonic(), 0)
        with SmallRun(self._pinned, self._writing.table) as run:
            run.prepare()
            record(self._config)
            began = time.monotonic()
            for batch, written in run.batches():
                self._count(batch, written, time.monotonic() - began)
                progress = self._progress(run.rows_behind())
                report(progress)
                self._note(Phase.RUNNING, progress)
                if self._is_to_stop():
                    break
                began = time.monotonic()
            return self._progress(run.rows_behind())

    def _run_with_spark(self, report: Callable[[Progress], None]) -> Progress:
        log = self._writing.table.spark_log
        spark = open_session("penstock pipeline", self._config.master, log)
        self._began = time.monotonic()
        for _ in range(STARTS_MAX - 1):
            try:
                return self._run_query(self._start(spark), report)
            except _SlowPythonError as error:
                logger.warning("%s: the stream is started again", error)
                if self._is_to_stop():
                    return self._progress(None)
        return self._run_query(self._start(spark), report)

    def _run_query(self, query: StreamingQuery, report: Callable[[Progress], None]) -> Progress:
        self._query = query
        with _java_there(self._writing.table.spark_log):
            try:
                self._watch(query, report)
            finally:
                query.stop()
            return self._progress(self._look(query))

    def _is_to_stop(self) -> bool:
        return self._stop.is_set() or self._state.is_to_stop()

    @contextmanager
    def _stated(self) -> Iterator[None]:
        """Leave the run's phase for others to read, however it ends."""
        self._state.begin(self._status)
        try:
            yield
        except BaseException as error:
            self._note(Phase.FAILED, error=str(error) or type(error).__name__)
            raise
        self._note(Phase.ENDED)

    def _start(self, spark: SparkSession) -> StreamingQuery:
        config = self._config
        rows = self._writing.begin(spark)
        record(config)
        checkpoint = checkpoint_of(config, self._writing.table)
        writer = rows.writeStream.foreachBatch(self._commit)
        writer = writer.option("checkpointLocation", str(checkpoint))
        self._pace.add(time.monotonic(), 0)
        if config.interval_seconds is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{config.interval_seconds} seconds").start()

    def _commit(self, frame: DataFrame, batch: int) -> None:
        began = time.monotonic()
        if self._config.deduplication and self._query is not None:
            # A batch may be over before `_watch` has seen the one before it.
            self._look(self._query)
        written = self._writing.write(frame, batch)
        self._count(batch, written, time.monotonic() - began)

    def _count(self, batch: int, written: Written, seconds: float) -> None:
        self._unmet.update(written.unmet)
        if not written.rows and not written.unmet:
            return
        self._rows += written.rows
        self._batches += 1
        self._pace.add(time.monotonic(), self._rows)
        line = {
            "batch": batch,
            "rows": written.rows,
            "unmet": written.unmet,
            "seconds": round(seconds, 3),
            "rows_of_run": self._rows,
            "ended_ms": wall_clock.now_ms(),
        }
        self._state.add_batch(line)
        self._each_batch(line)

    def _watch(self, query: StreamingQuery, report: Callable[[Progress], None]) -> None:
        while not _has_ended(query):
            progress = self._progress(self._look(query))
            report(progress)
            self._note(Phase.RUNNING, progress)
            if self._is_to_stop():
                self._note(Phase.STOPPING)
                _finish_batch(query)
                return

    def _look(self, query: StreamingQuery) -> int | None:
        """Take Spark's newest progress; return how many rows wait, if it says so."""
        newest = query.lastProgress
        self._late.see(newest)
        return rows_behind(newest)

    def _progress(self, behind: int | None) -> Progress:
        now = time.monotonic()
        return Progress(
            self._batches,
            self._rows,
            behind,
            now - self._began,
            self._pace.at(now),
            dict(self._unmet),
            self._late.rows,
        )

    def _note(
        self, phase: Phase, progress: Progress | None = None, error: str | None = None
    ) -> None:
        status = replace(self._status, phase=phase, updated_ms=wall_clock.now_ms(), error=error)
        status = replace(status, batches=self._batches, rows=self._rows, unmet=dict(self._unmet))
        status = replace(status, late=self._late.rows)
        if progress is not None:
            status = replace(
                status,
                behind=progress.behind,
                rows_per_second=round(progress.rows_per_second, 1),
                seconds_to_go=progress.seconds_to_go,
            )
        self._status = status
        self._state.write(status)


def _is_disk_full(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def _java_there(log: Path) -> Iterator[None]:
    """Say what it means that nobody answers any more where Spark was."""
    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise PipelineError(
            f"Spark's Java is gone: it was killed, as by a machine that has no memory left, or it "
            f"failed; {log} may say more. Run the job again, which goes on behind the last batch "
            "that it finished"
        ) from error


def _has_ended(query: StreamingQuery) -> bool:
    try:
        return bool(query.awaitTermination(_LOOK_SECONDS))
    except (Py4JNetworkError, ConnectionError):
        raise
    except Exception as error:
        if _SLOW_PYTHON in str(error):
            raise _SlowPythonError from error
        raise PipelineError(_explained(cause_of(error))) from error


def _explained(cause: str) -> str:
    """Say what it means that Spark can't go on with what it keeps of earlier rows."""
    if not _OTHER_STATE.search(cause):
        return cause
    return (
        "[deduplicate] has to stay as it was when this table began, with columns of the same "
        "types: only so it is known which rows were there before. Put it back, or begin another "
        f"table ({cause})"
    )


def _finish_batch(query: StreamingQuery) -> None:
    """Return between two batches, or after a while within one."""
    deadline = time.monotonic() + STOP_SECONDS
    while query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.01)
