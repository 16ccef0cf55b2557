"""What Spark asks of a sink, batch and streaming: each task's rows, and the end of all of them."""

from __future__ import annotations

import logging
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from penstock.pipeline.carried import Carried
from penstock.pipeline.sink.epochs.attempt import UNNAMED, Attempt, errors_in_words, once
from penstock.pipeline.sink.epochs.opening import open_epochs
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.fingerprints import STREAM, fingerprint_of, rows_of
from penstock.pipeline.sink.writing import write_task
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.pipeline.sink.epochs.attempt import Outcome
    from penstock.pipeline.sink.options import SinkOptions

logger = logging.getLogger(__name__)

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_CHECKPOINTS: Final = "spark.sql.streaming.checkpointLocation"
"""Local properties with which Spark runs the tasks of a stream. The last one, a setting, may be
missing: a folder with the checkpoints of all queries that were given none, by their names."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What the driver hears of a task that has ended well."""

    writer: str
    outcome: Outcome | None
    """Whose open transaction has the rows; None where there were none to write."""
    rows: int
    """How many the task had, also where they are written already."""
    in_stream: bool = False
    """Whether it belongs to a batch of a stream."""
    checkpoint: str | None = None
    """Where that of the task's stream is, as far as that is known."""


class BatchWriter(Carried, DataSourceArrowWriter):
    """Writes once. This very object, as it was pickled, is in all tasks and in the driver."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._writer = of_application(options) or f"{UNNAMED}{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return written(iterator, self._writer, self._options.version, self._options)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit(self._options, self._writer, self._options.version, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        abort(self._options, self._writer)


class StreamWriter(Carried, DataSourceStreamArrowWriter):
    """Writes one batch of a stream after the other.

    The driver's object is another one than the tasks', and knows the query from them alone.
    """

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None, "Spark runs it in a task"
        query, batch = (context.getLocalProperty(each) for each in (_QUERY, _BATCH))
        if query is None or batch is None:
            raise SinkError("this Spark does not say which batch of which query a task belongs to")
        task = written(iterator, f"{STREAM}{query}", int(batch), self._options)
        return replace(task, checkpoint=self._checkpoint(context.getLocalProperty(_CHECKPOINTS)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        task = task_of(messages)
        if task is not None:  # Else there was no task, and so no row.
            rows = rows_of(task.checkpoint, task.writer, batchId)
            commit(self._options, task.writer, batchId, messages, rows)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        task = task_of(messages)
        if task is not None:
            abort(self._options, task.writer)

    def _checkpoint(self, folder: str | None) -> str | None:
        named, name = self._options.checkpoint, self._options.query_name
        return named or (f"{folder}/{name}" if folder and name else None)


def written(
    rows: Iterator[pa.RecordBatch], writer: str, epoch: int, options: SinkOptions
) -> Written:
    """Write the rows of the task that runs here. Raises SinkError."""
    context = TaskContext.get()
    assert context is not None, "Spark runs it in a task"
    attempt = Attempt(writer, epoch, context.partitionId(), context.attemptNumber())
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for each in rows:
            count += each.num_rows
            yield each

    outcome = write_task(counted(), attempt, options)
    return Written(writer, outcome, count, context.getLocalProperty(_BATCH) is not None)


def commit(
    options: SinkOptions,
    writer: str,
    epoch: int,
    messages: Sequence[WriterCommitMessage | None],
    rows: str = "",
) -> None:
    """Make all that the tasks have written visible at once. Raises SinkError.

    The rows are those of the fingerprint, see `rows_of`; empty where nobody knows.
    """
    tasks = [each for each in messages if isinstance(each, Written)]
    # A write that is none of a stream's says itself that it is the same, whatever it reads now.
    is_counted = options.fail_on_data_loss and any(each.in_stream for each in tasks)
    count = sum(each.rows for each in tasks) if is_counted else None
    known = rows if options.fail_on_data_loss else ""
    fingerprint = str(fingerprint_of(known, options.topic, count))
    outcomes = [each.outcome for each in tasks if each.outcome is not None]
    ask = Patience(answered=True).ask
    with errors_in_words(options.servers), open_epochs(options, ask) as epochs:
        if not epochs.commit(writer, epoch, outcomes, fingerprint):
            logger.warning("epoch %d of %s was written already", epoch, writer)


def abort(options: SinkOptions, writer: str) -> None:
    """Give up what is open; where that can't be said, it ends with its time-out."""
    with (
        suppress(SinkError),
        errors_in_words(options.servers),
        open_epochs(options, once) as epochs,
    ):
        epochs.abort(writer)


def of_application(options: SinkOptions) -> str | None:
    """Return the name of the writer that a batch write says it is, None where it says nothing."""
    return None if options.application is None else f"app-{options.application}"


def task_of(messages: Sequence[WriterCommitMessage | None]) -> Written | None:
    """Return a task of the writer whose messages these are; None where there is none."""
    return next((each for each in messages if isinstance(each, Written)), None)
