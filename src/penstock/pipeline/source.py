"""The PySpark data source `penstock`, batch and streaming."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock.pipeline.cluster import KafkaCluster
from penstock.pipeline.offsets import Offsets, from_json, to_json
from penstock.pipeline.options import SourceOptions, begins_at_latest, includes_headers, parse
from penstock.pipeline.planning import Planner, SourceError, Task
from penstock.pipeline.schema import spark_schema
from penstock.pipeline.tasks import read_task

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

REFRESH_SECONDS: Final = 0.1
"""An idle query asks for the latest offset every few milliseconds; the broker is spared most."""


class TaskPartition(InputPartition):
    """One task as Spark carries it."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.task = task


class PenstockSource(DataSource):
    """Topics as rows; the options are those of Spark's Kafka source (docs/spark.md)."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        return spark_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # Spark's signature
        return BatchReader(parse(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return StreamReader(parse(self.options, streaming=True))


class BatchReader(DataSourceReader):
    """Reads between two positions, once."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        with KafkaCluster(self._options.servers, committed=self._options.committed) as cluster:
            planner = Planner(self._options, cluster)
            return as_partitions(planner.tasks(planner.starting(), planner.ending()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._options)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads on from the offsets that Spark checkpoints.

    One instance lives as long as its query, in a process of its own beside the driver; copies of it
    are sent to the tasks, so it connects only when it is asked something.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._cluster: KafkaCluster | None = None
        self._target: Offsets | None = None
        self._unsettled: dict[str, Any] | None = None
        self._latest: Offsets = {}
        self._asked_at = float("-inf")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cluster": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        start = to_json(self._planner().starting())
        self._unsettled = start if begins_at_latest(self._options) else None
        return start

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._latest = self._planner().latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if start == self._unsettled:
            # Spark stores a batch's end and not its start, and after a crash in the first batch it
            # would ask for the latest offset anew. An empty first batch stores where to begin.
            self._unsettled = None
            return start
        known = from_json(start)
        planner = self._planner()
        latest = planner.following(known, self._newest() if self._target is None else self._target)
        if isinstance(limit, ReadMaxRows):
            latest = planner.limited(known, latest, limit.max_rows)
        return to_json(latest)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json(self._latest) or None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return as_partitions(self._planner().tasks(from_json(start), from_json(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_rows(partition, self._options)

    def stop(self) -> None:
        if self._cluster is not None:
            with suppress(SourceError):  # A broker that is gone keeps nothing.
                self._cluster.release()
            self._cluster.close()

    def _planner(self) -> Planner:
        if self._cluster is None:
            self._cluster = KafkaCluster(self._options.servers, committed=self._options.committed)
        return Planner(self._options, self._cluster)

    def _newest(self) -> Offsets:
        if time.monotonic() - self._asked_at > REFRESH_SECONDS:
            self._latest = self._planner().latest()
            self._asked_at = time.monotonic()
        return self._latest


def as_partitions(tasks: list[Task]) -> list[InputPartition]:
    """Wrap tasks for Spark."""
    return [TaskPartition(task) for task in tasks]


def read_rows(partition: InputPartition, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Read one task's rows."""
    task = task_of(partition)
    if task is None:
        return iter(())
    return read_task(task, include_headers=options.include_headers)


def task_of(partition: InputPartition) -> Task | None:
    """Return the task that Spark carried; None for what it makes up where there is no task."""
    return partition.task if isinstance(partition, TaskPartition) else None
