"""The live end of a view: what topics got since a commit of their table, up to each query's moment.

Spark plans a Python source once, when a view is made of it, and keeps the plan. So the plan names
no offsets: each task asks for the end of its share of the partitions when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from penstock.pipeline.carried import Carried
from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.data_source import PenstockSource
from penstock.pipeline.live.end import TASKS
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.readers import typed_reading
from penstock.pipeline.source.tasks import read_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.pipeline.source.offsets import TopicPartition
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import Task
    from penstock.pipeline.values.reading import TypedReading


class LiveEndSource(DataSource):
    """Reads from `startingOffsets` on, and partitions that are not named there from the first.

    There are as many tasks as what waited needed when the view was made: Spark takes some 20 ms of
    a processor for each, also where it finds nothing.
    """

    @classmethod
    def name(cls) -> str:
        return "penstock-live-end"

    def schema(self) -> StructType:
        return PenstockSource(self._of_source()[0]).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        options, tasks = self._of_source()
        return LiveEndReader(parse(options, streaming=True), schema, tasks)

    def _of_source(self) -> tuple[dict[str, str], int]:
        options = dict(self.options)
        return options, int(options.pop(TASKS))


class Share(InputPartition):
    """One of some parts into which all partitions fall, those that are added later too."""

    def __init__(self, index: int, shares: int, typed: TypedReading | None) -> None:
        super().__init__(index)
        self.index = index
        self.shares = shares
        self.typed = typed

    def holds(self, source: TopicPartition) -> bool:
        return crc32(str(source).encode()) % self.shares == self.index


class LiveEndReader(Carried, DataSourceReader):
    """See `LiveEndSource`."""

    def __init__(self, options: SourceOptions, declared: StructType, tasks: int) -> None:
        self._options = options
        self._declared = declared
        self._shares = tasks

    def partitions(self) -> list[InputPartition]:
        typed = typed_reading(self._options, self._declared)
        return [Share(index, self._shares, typed) for index in range(self._shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Share):
            return
        yield from read_tasks(self._tasks(partition), self._options, partition.typed)

    def _tasks(self, share: Share) -> list[Task]:
        starting = self._options.starting
        assert isinstance(starting, dict), "a view names where its end begins"
        try:
            with open_cluster(self._options) as cluster:
                planner = Planner(self._options, cluster)
                ids = planner.topic_ids()
                starts = {each: offset for each, offset in starting.items() if offset >= 0}
                starts = planner.of_same_topics(starts, self._options.ids, ids)
                ends = planner.following(starts, planner.latest())
                waiting = {
                    source: end
                    for source, end in ends.items()
                    if share.holds(source) and end != starts.get(source)
                }
                return planner.tasks(starts, waiting) if waiting else []
        except SourceError as error:
            raise LiveTableError(
                "what came since the view was registered can't be read; where it has got into the "
                f"table meanwhile, register the view again: {error}"
            ) from error
