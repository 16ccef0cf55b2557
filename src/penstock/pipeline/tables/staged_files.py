"""The stream of a table's new files: tasks write them, and Spark carries only their names.

Rows that pass through Spark are converted to its own form and back; a table of raw records needs
neither, so the workers that decode segments write Parquet themselves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.pipeline.source.options import OptionError, SourceOptions, parse
from penstock.pipeline.source.readers import FailingStreamReader, StreamReader, task_of
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.source.tasks import read_task
from penstock.pipeline.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Iterator


ROW_GROUP_BYTES: Final = 64 << 20
"""Arrow bytes that are gathered for one row group: readers work best on few large ones."""

SCHEMA: Final = StructType(
    [
        StructField("query", StringType()),
        StructField("staged", StringType()),
        StructField("topic", StringType()),
        StructField("partition", LongType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
        StructField("rows", LongType()),
    ]
)


class TableFilesSource(DataSource):
    """Writes each task's rows to a staged file of the table in option `table`; one row a file."""

    @classmethod
    def name(cls) -> str:
        return "penstock-table-files"

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        options = dict(self.options)
        table = ParquetTable(Path(options.pop("table")))
        compression = options.pop("compression")
        try:
            return TableFilesReader(parse(options, streaming=True), table, compression)
        except OptionError as error:
            return FailingStreamReader(error)


class TableFilesReader(StreamReader):
    """Plans and limits like any stream of this source; only what a task yields differs."""

    def __init__(self, options: SourceOptions, table: ParquetTable, compression: str) -> None:
        super().__init__(options)
        self._table = table
        self._compression = compression

    def read(self, partition: InputPartition) -> Iterator[Any]:
        task = task_of(partition)
        if task is None:
            return
        file = self._table.stage()
        schema = arrow_schema(self._options.columns)
        batches = read_task(task, self._options)
        rows = write_parquet(file, schema, batches, self._compression)
        yield (_query(), file.name, *task.range.source, task.range.start, task.range.end, rows)


def write_parquet(
    file: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch], compression: str
) -> int:
    """Write one file durably and return its rows."""
    rows = 0
    # Keys repeat and values do not: a dictionary of values would be built only to be thrown away.
    dictionaries = ["key", "topic", "partition", "timestampType"]
    with file.open("wb") as sink:
        with pq.ParquetWriter(
            sink, schema, compression=compression, use_dictionary=dictionaries
        ) as writer:
            for group in _row_groups(batches):
                table = pa.Table.from_batches(group, schema)
                writer.write_table(table, row_group_size=table.num_rows)
                rows += table.num_rows
        sink.flush()
        os.fsync(sink.fileno())
    return rows


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _query() -> str:
    context = TaskContext.get()
    assert context is not None, "Spark runs tasks with a context"
    return str(context.getLocalProperty("sql.streaming.queryId"))
