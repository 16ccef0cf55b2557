"""The stream of a table's new files: tasks write them, and Spark carries only their names.

Rows that pass through Spark are converted to its own form and back; a table of raw records needs
neither, so the workers that decode segments write Parquet themselves.
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
from penstock.pipeline.source.readers import BatchReader, StreamReader, failing_later, task_of
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.source.tasks import read_task
from penstock.pipeline.tables.interface import StagedFile, TableConfig
from penstock.pipeline.tables.opening import open_table

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        source, stager = self._opened(streaming=False)
        return TableFilesBatchReader(source, stager)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return failing_later(self._reader)

    def _reader(self) -> TableFilesReader:
        return TableFilesReader(*self._opened(streaming=True))

    def _opened(self, *, streaming: bool) -> tuple[SourceOptions, Stager]:
        options = dict(self.options)
        table = open_table(TableConfig.from_json(options.pop("table")))
        source = parse(options, streaming=streaming)
        return source, table.prepare(arrow_schema(source.columns))


class TableFilesReader(StreamReader):
    """Plans and limits like any stream of this source; only what a task yields differs."""

    def __init__(self, options: SourceOptions, stager: Stager) -> None:
        super().__init__(options)
        self._stager = stager

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows(partition, self._options, self._stager)


class TableFilesBatchReader(BatchReader):
    """The same between two positions; its caller says which batch of which query that is."""

    def __init__(self, options: SourceOptions, stager: Stager) -> None:
        super().__init__(options)
        self._stager = stager

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows(partition, self._options, self._stager)


def _rows(
    partition: InputPartition, options: SourceOptions, stager: Stager
) -> Iterator[tuple[Any, ...]]:
    task = task_of(partition)
    if task is None:
        return
    query, batch = _query_and_batch()
    for file in stage_task(task, options, stager, query, batch):
        fields = {name: getattr(file, name) for name in SCHEMA.names[1:]}
        yield (query, *(fields | {"values": list(file.values)}).values())


def stage_task(
    task: Task, options: SourceOptions, stager: Stager, query: str, batch: int
) -> Iterator[StagedFile]:
    """Write the rows of one task; yield each file when it is whole, an empty one for no rows."""
    place = (*task.range.source, task.range.start, task.range.end)
    number = -1
    for number, piece in enumerate(stager.write(read_task(task, options), query, batch)):
        yield StagedFile(
            piece.staged, *place, piece.rows, piece.size, number, piece.values, piece.footer
        )
    if number < 0:
        yield StagedFile("", *place, 0)


def _query_and_batch() -> tuple[str, int]:
    context = TaskContext.get()
    assert context is not None, "Spark runs tasks with a context"
    query = str(context.getLocalProperty("sql.streaming.queryId"))
    return query, int(context.getLocalProperty("streaming.sql.batchId") or 0)
