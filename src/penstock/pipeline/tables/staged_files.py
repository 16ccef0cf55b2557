"""The stream of a table's new files: tasks write them, and Spark carries only their names.

Rows that pass through Spark are converted to its own form and back; a table of records, parsed or
raw, needs neither, so the workers that decode segments write Parquet themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from penstock.pipeline.source.options import SourceOptions, parse
from penstock.pipeline.source.readers import BatchReader, StreamReader, TaskPartition, failing_later
from penstock.pipeline.source.tasks import read_tasks
from penstock.pipeline.tables.interface import StagedFile, TableConfig
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.shaping import Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.pipeline.source.planning import Task
    from penstock.pipeline.tables.staging import Stager

SCHEMA: Final = StructType(
    [
        StructField("query", StringType()),
        StructField("staged", StringType()),
        StructField("topic", StringType()),
        StructField("partition", LongType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
        StructField("rows", LongType()),
        StructField("size", LongType()),
        StructField("piece", IntegerType()),
        StructField("values", ArrayType(StringType())),
        StructField("footer", BinaryType()),
    ]
)
"""A query, and the fields of `StagedFile` in their order."""


class TableFilesSource(DataSource):
    """Writes each task's rows to staged files of the table in option `table`; one row a file."""

    @classmethod
    def name(cls) -> str:
        return "penstock-table-files"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return TableFilesBatchReader(*self._opened(streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return failing_later(self._reader)

    def _reader(self) -> TableFilesReader:
        return TableFilesReader(*self._opened(streaming=True))

    def _opened(self, *, streaming: bool) -> tuple[SourceOptions, TableConfig]:
        options = dict(self.options)
        table = TableConfig.from_json(options.pop("table"))
        return parse(options, streaming=streaming), table


class WritingPartition(TaskPartition):
    """One task, and what it makes of its rows."""

    def __init__(self, tasks: Sequence[Task], shape: Shape, stager: Stager) -> None:
        super().__init__(tasks, shape.typed)
        self.shape = shape
        self.stager = stager


class TableFilesReader(StreamReader):
    """Plans and limits like any stream of this source; only what a task yields differs.

    The schema of values is looked up for each batch, so that the table follows it.
    """

    def __init__(self, options: SourceOptions, table: TableConfig) -> None:
        super().__init__(options)
        self._table = table
        self._shape: Shape | None = None
        self._stager: Stager | None = None

    def prepare(self) -> tuple[Shape, Stager]:
        """Make the table fit for the rows of the next batch. Raises SchemaError and TableError."""
        shape = shape_of(self._options, self._table.changes, self._shape)
        if self._stager is None or shape != self._shape:
            self._stager = open_table(self._table).prepare(shape.schema)
            self._shape = shape
        return shape, self._stager

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        how = self.prepare()
        return [WritingPartition(share, *how) for share in self._shares(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows(partition, self._options)


class TableFilesBatchReader(BatchReader):
    """The same between two positions; its caller says which batch of which query that is."""

    def __init__(self, options: SourceOptions, table: TableConfig) -> None:
        super().__init__(options)
        self._table = table

    def partitions(self) -> list[InputPartition]:
        shape = shape_of(self._options, self._table.changes)
        stager = open_table(self._table).prepare(shape.schema)
        planned = (each for each in super().partitions() if isinstance(each, TaskPartition))
        return [WritingPartition(each.tasks, shape, stager) for each in planned]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows(partition, self._options)


def _rows(partition: InputPartition, options: SourceOptions) -> Iterator[tuple[Any, ...]]:
    query, batch = _query_and_batch()
    for file in stage_task(partition, options, query, batch):
        fields = {name: getattr(file, name) for name in SCHEMA.names[1:]}
        yield (query, *(fields | {"values": list(file.values)}).values())


def stage_task(
    partition: InputPartition, options: SourceOptions, query: str, batch: int
) -> Iterator[StagedFile]:
    """Write the rows of one task; yield each file when it is whole.

    Files are named by the first of its ranges. Each range that no file is named by has an empty
    one, so that what the batch covers is known.
    """
    if not isinstance(partition, WritingPartition):
        return
    tasks, shape = partition.tasks, partition.shape
    rows = shape.rows(read_tasks(tasks, options, shape.typed, (query, batch)))
    places = [(*task.range.source, task.range.start, task.range.end) for task in tasks]
    number = -1
    for number, piece in enumerate(partition.stager.write(rows, query, batch)):
        yield StagedFile(
            piece.staged, *places[0], piece.rows, piece.size, number, piece.values, piece.footer
        )
    for place in places if number < 0 else places[1:]:
        yield StagedFile("", *place, 0)


def _query_and_batch() -> tuple[str, int]:
    context = TaskContext.get()
    assert context is not None, "Spark runs tasks with a context"
    query = str(context.getLocalProperty("sql.streaming.queryId"))
    return query, int(context.getLocalProperty("streaming.sql.batchId") or 0)
