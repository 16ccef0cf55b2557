"""What a Spark task does: stored batches in, Arrow batches out. Runs on the executors.

The rows are those that a Kafka client would see, wherever the bytes come from: times are whole
milliseconds, and what only another protocol can say stands in headers (docs/interop.md).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from penstock import records
from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.clients.kafka.committed import CommittedBatches
from penstock.log.errors import LogError
from penstock.log.header import Magic, walk
from penstock.log.reader import read_range
from penstock.pipeline.source.cluster import is_reachable
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.source.patience import Patience
from penstock.pipeline.source.planning import SourceError
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.values.origin import Origin, running_batch
from penstock.records.arrow import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.clients.kafka.fetched import Fetched
    from penstock.pipeline.source.planning import Task
    from penstock.pipeline.values.reading import TypedReading
    from penstock.records.columns import Columns
    from penstock.session import Buffer

logger = logging.getLogger(__name__)

CHUNK_BYTES: Final = 2 << 20
"""Stored bytes that are decoded at once: Spark takes Arrow batches of 1 to 4 MB fastest."""
BATCH_BYTES: Final = 4 << 20
"""Arrow bytes above which what came of one chunk is cut, for compressed batches grow."""


def read_task(
    task: Task, *, include_headers: bool, typed: TypedReading | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task; raises SourceError where some can't be had.

    What is missing or damaged in the segment files is read from the broker, unless `readMode` is
    `log`. With typed columns, what is not of its schema raises what `TypedReading.rows` does.
    """
    if typed is None:
        return _read(task, include_headers=include_headers)
    raw = _read(task, include_headers=include_headers or typed.needs_headers)
    source, start, end = task.range
    origin = Origin(*running_batch(), *source, start, end)
    return typed.rows(raw, arrow_schema(include_headers=include_headers), origin)


def _read(task: Task, *, include_headers: bool) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(include_headers=include_headers)
    for stored in _committed(task, _stored(task)):
        for columns in _columns(stored, include_headers=include_headers):
            rows = _rows(task, columns, schema)
            if rows.num_rows:
                yield from _cut(rows)


def _committed(task: Task, stored: Iterator[Buffer]) -> Iterator[Buffer]:
    """Leave out what was aborted, unless all is asked for. Raises SourceError."""
    if not task.committed:
        yield from stored
        return
    committed = CommittedBatches(partial(_ask_for_aborted, task))
    for batches in stored:
        yield from committed.keep(batches)


def _ask_for_aborted(task: Task, offset: int) -> Fetched:
    source = task.range.source
    patience = Patience(answered=True)
    try:
        with KafkaClient(task.servers, client_id="penstock-spark") as client:
            return patience.ask(lambda: client.fetch(*source, offset, committed=True))
    except (KafkaError, OSError) as error:
        raise SourceError(
            f"{task.servers} does not say which transactions on {source} were aborted: {error}"
        ) from error


def _stored(task: Task) -> Iterator[Buffer]:
    position = task.range.start
    try:
        if task.read_mode is not ReadMode.WIRE:
            for chunk in _segments(task, task.range.start, task.range.end):
                yield from _whole_messages(task, chunk)
                position = _next_offset(chunk, position)
    except (LogError, OSError) as error:
        if task.read_mode is ReadMode.LOG:
            raise SourceError(
                f"the segments of {task.range.source} can't be read at offset {position}, and "
                f"readMode is log: {error}"
            ) from error
        logger.warning("%s: from offset %d on the broker is asked: %s", task.range, position, error)
    if position < task.range.end:
        yield from _from_broker(task, position)


def _segments(task: Task, start: int, end: int) -> Iterator[memoryview]:
    if task.data_folder is None or task.folder is None:
        return iter(())
    if not is_reachable(task.data_folder):
        raise FileNotFoundError(f"{task.data_folder.path} is not the broker's data folder here")
    folder = task.data_folder.path / task.folder
    return read_range(folder, start, end, chunk_bytes=CHUNK_BYTES)


def _whole_messages(task: Task, stored: memoryview) -> list[Buffer]:
    """Return a run with its chunked messages whole, complete before any of it becomes rows.

    So a failure leaves nothing half done, and the broker can be asked for all of the run.
    """
    return list(records.join_messages(stored, partial(_segments, task)))


def _from_broker(task: Task, position: int) -> Iterator[Buffer]:
    source = task.range.source
    patience = Patience(answered=True)  # for the driver has just read the offsets
    try:
        with KafkaClient(task.servers, client_id="penstock-spark") as client:

            def next_run() -> Buffer:
                runs = client.fetch_below(*source, position, task.range.end, max_bytes=CHUNK_BYTES)
                return next(runs)

            while position < task.range.end:
                batches = patience.ask(next_run)
                position = _next_offset(batches, position)
                yield batches
    except (KafkaError, OSError) as error:
        raise SourceError(
            f"{source} can't be read at offset {position} from {task.servers}: {error}"
        ) from error


def _next_offset(batches: Buffer, position: int) -> int:
    for _, header in walk(batches):
        position = max(position, header.next_offset)
    return position


def _columns(stored: Buffer, *, include_headers: bool) -> Iterator[Columns]:
    if not include_headers:
        yield from records.decode_run(stored, headers=False)
        return
    for batches in records.convert(stored, Magic.KAFKA):
        yield from records.decode_run(batches)


def _rows(task: Task, columns: Columns, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows that are in the task's range."""
    source, start, end = task.range
    first, last = np.searchsorted(columns.offsets, (start, end))
    count = int(last - first)
    arrays = to_arrow(columns, headers="headers" in schema.names)
    arrays = {name: array.slice(first, count) for name, array in arrays.items()}
    arrays["topic"] = pa.repeat(pa.scalar(source.topic), count)
    arrays["partition"] = pa.repeat(pa.scalar(source.partition, pa.int32()), count)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    pieces = -(-rows.nbytes // BATCH_BYTES)
    size = -(-rows.num_rows // pieces)
    for first in range(0, rows.num_rows, size):
        yield rows.slice(first, size)
