"""What Spark asks of a source, batch and streaming: where to read, and each task's rows."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock.pipeline.carried import Carried
from penstock.pipeline.clusters.opening import OpenCluster, open_cluster
from penstock.pipeline.source.admission import Admission
from penstock.pipeline.source.corruption import prepare
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.filters import narrowed
from penstock.pipeline.source.offsets import Offsets, TopicIds, from_json, to_json, topic_ids
from penstock.pipeline.source.options import SourceOptions, begins_at_latest
from penstock.pipeline.source.planning import Planner, Task, without_changed
from penstock.pipeline.source.progress import GroupProgress
from penstock.pipeline.source.tasks import read_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.pipeline.values.reading import TypedReading

REFRESH_SECONDS: Final = 0.1
"""An idle query asks for the latest offset every few milliseconds; the broker is spared most."""


class TaskPartition(InputPartition):
    """What one Spark task reads, as Spark carries it: range by range."""

    def __init__(self, tasks: Sequence[Task], typed: TypedReading | None = None) -> None:
        super().__init__(tasks)
        self.tasks = tasks
        self.typed = typed


class BatchReader(Carried, DataSourceReader):
    """Reads between two positions, once."""

    def __init__(self, options: SourceOptions, declared: StructType | None = None) -> None:
        self._options = options
        self._filters: list[Filter] = []
        self._declared = declared

    def partitions(self) -> list[InputPartition]:
        prepare(self._options)
        with open_cluster(self._options) as cluster:
            planner = Planner(self._options, cluster)
            start, end = planner.batch()
            if self._filters:
                start, end = narrowed(start, end, self._filters, cluster)
            shares = planner.shares(start, end)
        return as_partitions(shares, typed_reading(self._options, self._declared))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._options)


class FilteringReader(BatchReader):
    """Is told the query's conditions too.

    Spark refuses such a reader unless `spark.sql.python.filterPushdown.enabled` is set, so that an
    option has to ask for it.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._filters = filters
        return filters  # Spark is to apply them to the rows that are left.


class FailingStreamReader(DataSourceStreamReader):
    """Says what is wrong with a stream as soon as it is asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        raise self._error

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, Any],  # noqa: ARG002
        limit: ReadLimit,  # noqa: ARG002
    ) -> dict[str, Any]:
        raise self._error

    def partitions(
        self,
        start: dict[str, Any],  # noqa: ARG002
        end: dict[str, Any],  # noqa: ARG002
    ) -> list[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        raise self._error


class Latest(NamedTuple):
    """The newest offsets, and the ids of the topics that they are of."""

    offsets: Offsets
    ids: TopicIds


class StreamReader(Carried, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on from the offsets that Spark checkpoints.

    One instance lives as long as its query, in a process of its own beside the driver; copies of it
    are sent to the tasks, so it connects only when it is asked something.
    """

    def __init__(self, options: SourceOptions, declared: StructType | None = None) -> None:
        self._options = options
        self._declared = declared
        self._typed: TypedReading | None = None
        self._cluster: OpenCluster | None = None
        self._target: Latest | None = None
        self._unsettled: dict[str, Any] | None = None
        self._latest = Latest({}, {})
        self._asked_at = float("-inf")
        self._admission = Admission(options.min_offsets_per_trigger, options.max_trigger_delay_s)
        self._progress = GroupProgress(options.group) if options.group else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        planner = self._planner()
        ids = planner.topic_ids()
        start = to_json(planner.starting(), ids)
        self._unsettled = start if begins_at_latest(self._options.starting) else None
        return start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._latest = self._ask()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        planner = self._planner()
        newest = self._newest() if self._target is None else self._target
        if self._progress is not None and self._cluster is not None:
            done = from_json(start)
            there = {source: done[source] for source in done if source in newest.offsets}
            self._progress.reached(there, self._cluster)
        if start == self._unsettled:
            # Spark stores a batch's end and not its start, and after a crash in the first batch it
            # would ask for the latest offset anew. An empty first batch stores where to begin.
            self._unsettled = None
            return start
        recorded = topic_ids(start)
        known = planner.of_same_topics(from_json(start), recorded, newest.ids)
        latest = planner.following(known, newest.offsets)
        # What is there is read to its end where a stream ends by itself.
        if self._target is None and not self._admission.admits(planner.rows(known, latest)):
            return start
        if isinstance(limit, ReadMaxRows):
            latest = planner.limited(known, latest, limit.max_rows)
        return to_json(latest, {**recorded, **newest.ids})

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json(*self._latest) or None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if self._typed is None:
            self._typed = typed_reading(self._options, self._declared)
        return as_partitions(self._shares(start, end), self._typed)

    def _shares(self, start: dict[str, Any], end: dict[str, Any]) -> list[list[Task]]:
        planner = self._planner()
        recorded = topic_ids(end)
        stop = planner.of_same_topics(from_json(end), recorded, planner.topic_ids())
        begin = without_changed(from_json(start), topic_ids(start), recorded)
        return planner.shares(begin, stop)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._options)

    def stop(self) -> None:
        if self._cluster is not None:
            with suppress(SourceError):  # A broker that is gone keeps nothing.
                self._cluster.release()
            self._cluster.close()

    def _planner(self) -> Planner:
        if self._cluster is None:
            prepare(self._options)
            self._cluster = open_cluster(self._options)
        return Planner(self._options, self._cluster)

    def _newest(self) -> Latest:
        if time.monotonic() - self._asked_at > REFRESH_SECONDS:
            self._latest = self._ask()
            self._asked_at = time.monotonic()
        return self._latest

    def _ask(self) -> Latest:
        planner = self._planner()
        ids = planner.topic_ids()
        return Latest(planner.latest(), ids)


def failing_later(make: Callable[[], DataSourceStreamReader]) -> DataSourceStreamReader:
    """Return the reader that is made, or one that raises the error when it is first asked.

    An error that is raised where a reader is to be made is lost: PySpark then stops the reader that
    it has not got, and reports that.
    """
    try:
        return make()
    except Exception as error:
        return FailingStreamReader(error)


def as_partitions(
    shares: list[list[Task]], typed: TypedReading | None = None
) -> list[InputPartition]:
    """Wrap what tasks read for Spark."""
    return [TaskPartition(share, typed) for share in shares]


def read_rows(partition: InputPartition, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Read one task's rows; none of what Spark makes up where there is no task."""
    if not isinstance(partition, TaskPartition):
        return iter(())
    return read_tasks(partition.tasks, options, partition.typed)


def typed_reading(options: SourceOptions, declared: StructType | None) -> TypedReading | None:
    """Return how the rows of a read get typed columns; None where they stay as they are."""
    if options.values is None:
        return None
    from penstock.pipeline.values import reading  # noqa: PLC0415  # if it is needed

    if declared is not None and options.flatten:
        declared = reading.typed_columns(declared, options.columns)
    return reading.resolve_reading(options.values, options.topics, declared)
