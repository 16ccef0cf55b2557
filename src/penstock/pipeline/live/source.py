"""`format("penstock").option("read", "table")`: a live table where only options can be given.

Tasks read the table's files as Arrow, and the logs' end as the source does. All rows go from Python
to Java, so `live_table` is the quicker way; conditions that are pushed down spare reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import types
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from penstock.pipeline.carried import Carried
from penstock.pipeline.jobs.settings import source_options, table_config
from penstock.pipeline.live.end import live_end
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.live.table import pipeline_of, snapshot_of
from penstock.pipeline.source.option_values import OptionError, flag, refuse_unknown
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.readers import BatchReader, TaskPartition
from penstock.pipeline.source.tasks import read_tasks
from penstock.pipeline.tables.columns import fitted
from penstock.pipeline.tables.places import place_of
from penstock.pipeline.tables.shaping import shape_of
from penstock.pipeline.values.flattening import flattened

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.tables.storage import Folder

READ: Final = "read"
TABLE: Final = "table"
FILTER_PUSHDOWN: Final = "filterPushdown"

BATCH_ROWS: Final = 32 << 10
"""Rows that are handed to Java at a time: some MB of small ones."""

_TESTS: Final[dict[type[Filter], Callable[[Any, Any], pc.Expression]]] = {
    EqualTo: lambda column, value: column == value,
    GreaterThan: lambda column, value: column > value,
    GreaterThanOrEqual: lambda column, value: column >= value,
    LessThan: lambda column, value: column < value,
    LessThanOrEqual: lambda column, value: column <= value,
    In: lambda column, values: column.isin(list(values)),
}


_SIMPLE: Final = (types.is_integer, types.is_string, types.is_binary, types.is_boolean)
"""Of which Arrow and Spark think alike: not so of NaN and of times without a zone."""


class FilePartition(InputPartition):
    """One file of the table."""

    def __init__(self, folder: Folder, name: str) -> None:
        super().__init__(name)
        self.folder = folder
        self.name = name


class LiveReader(Carried, DataSourceReader):
    """Reads a table's files, and what its topics got since."""

    def __init__(self, config: PipelineConfig, schema: StructType) -> None:
        self._config = config
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._options = parse(source_options(config), streaming=True)
        self._filters: list[Filter] = []

    def partitions(self) -> list[InputPartition]:
        snapshot = snapshot_of(self._config)
        end = live_end(self._config, snapshot)
        newest = BatchReader(parse(end.options, streaming=False)).partitions()
        return [*self._files(snapshot.files if snapshot else ()), *newest]

    def _files(self, files: Iterable[str]) -> list[FilePartition]:
        place = place_of(table_config(self._config).location)
        names = (file.removeprefix(f"{place.uri}/") for file in files)
        return [FilePartition(place.folder, name) for name in names]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, FilePartition):
            rows = self._history(partition)
        elif isinstance(partition, TaskPartition):
            rows = read_tasks(partition.tasks, self._options, partition.typed)
            if partition.typed is not None:
                rows = map(flattened, rows)
        else:
            return
        for batch in rows:
            yield fitted(batch, self._schema)

    def _history(self, file: FilePartition) -> Iterator[pa.RecordBatch]:
        path, filesystem = f"{file.folder.path}/{file.name}", file.folder.filesystem
        dataset = ds.dataset(path, filesystem=filesystem, format="parquet")
        condition = None
        for each in self._filters:
            test = _test(each, dataset.schema)
            if test is not None:
                condition = test if condition is None else condition & test
        yield from dataset.to_batches(filter=condition, batch_size=BATCH_ROWS)


class FilteringLiveReader(LiveReader):
    """Is told the query's conditions too, as `FilteringReader` is."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._filters = filters
        return filters


def live_schema(options: Mapping[str, str]) -> StructType:
    """Return the table's columns. Raises OptionError and LiveTableError."""
    config = _pipeline(options)
    snapshot = snapshot_of(config)
    if snapshot is not None:
        return from_arrow_schema(snapshot.schema)
    shape = shape_of(parse(source_options(config), streaming=True), config.changes)
    return from_arrow_schema(shape.schema)


def live_reader(options: Mapping[str, str], schema: StructType) -> LiveReader:
    """Return what reads the table. Raises OptionError and LiveTableError."""
    given = {name.lower(): value for name, value in options.items()}
    pushes = flag(given, FILTER_PUSHDOWN, default=False)
    return (FilteringLiveReader if pushes else LiveReader)(_pipeline(options), schema)


def _pipeline(options: Mapping[str, str]) -> PipelineConfig:
    given = {name.lower(): value for name, value in options.items()}
    if given[READ].strip().lower() != TABLE:
        raise OptionError(
            f"{READ} must be {TABLE}, or left away to read topics, not {given[READ]!r}"
        )
    refuse_unknown(given, (READ, TABLE, FILTER_PUSHDOWN))
    if not given.get(TABLE, "").strip():
        raise OptionError(f"{TABLE} is missing: the table's folder, or its pipeline's file")
    config = pipeline_of(given[TABLE])
    if config.expectations or config.key:
        raise LiveTableError(
            f"{config.table} is written by a pipeline with expectations or a key, which only Spark "
            "can follow: read it by penstock.pipeline.live.table.live_table"
        )
    return config


def _test(condition: Filter, file: pa.Schema) -> pc.Expression | None:
    """Return what a file's rows are held against; None where Spark does so alone."""
    column = ".".join(getattr(condition, "attribute", ()))
    value = getattr(condition, "value", None)
    values = value if isinstance(value, (tuple, list)) else [value]
    if type(condition) not in _TESTS or column not in file.names:
        return None
    if not any(fits(file.field(column).type) for fits in _SIMPLE) or None in values:
        return None
    return _TESTS[type(condition)](pc.field(column), value)
