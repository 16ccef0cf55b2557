"""From the rows of a batch to a table, in two ways: past Java, or through Spark's operations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.pipeline.carried import CarriedFunction
from penstock.pipeline.jobs.batch_ends import batch_end
from penstock.pipeline.jobs.gate import MANIFEST, QUARANTINE, TABLE, UNMET, Gate, RowWriter
from penstock.pipeline.jobs.settings import (
    check_columns,
    checkpoint_of,
    quarantine_config,
    range_options,
    source_options,
    table_config,
)
from penstock.pipeline.jobs.steps import (
    MET,
    deduplicated,
    flattened,
    held_against,
    path_of_envelope,
)
from penstock.pipeline.source.options import parse
from penstock.pipeline.tables.interface import ChangeForm, StagedFile
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.shaping import shape_of
from penstock.pipeline.tables.staged_files import TableFilesSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.tables.table import Table


@dataclass(frozen=True)
class Written:
    """What became of one batch."""

    rows: int
    """Rows that are part of the table by it."""
    unmet: dict[str, int] = field(default_factory=dict)
    """How many rows did not meet each expectation."""


class Writing(Protocol):
    """How a job's rows get into its table."""

    table: Table
    """In whose folder the job's lock, checkpoint and state are."""

    def look(self) -> None:
        """Look whether rows can be written, before Spark is started. Raises SinkError."""

    def begin(self, spark: SparkSession) -> DataFrame:
        """Return the stream. Raises DefinitionError, SourceError and TableError."""

    def between(self, spark: SparkSession, ends: Mapping[str, str]) -> DataFrame:
        """Return the rows between two positions, which are options of the source, as one batch.

        Raises what `begin` does.
        """

    def write(self, frame: DataFrame, batch: int) -> Written:
        """Make one batch of the stream part of the table, once. Raises TableError."""


class PastJava:
    """The workers that decode rows write them; Spark carries the names of files."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._table_config = table_config(config)
        self.table = open_table(self._table_config)

    def look(self) -> None:
        pass

    def begin(self, spark: SparkSession) -> DataFrame:
        options = self._options(source_options(self._config), streaming=True)
        return spark.readStream.format(TableFilesSource.name()).options(**options).load()

    def between(self, spark: SparkSession, ends: Mapping[str, str]) -> DataFrame:
        options = self._options(range_options(self._config, ends), streaming=False)
        return spark.read.format(TableFilesSource.name()).options(**options).load()

    def _options(self, options: dict[str, str], *, streaming: bool) -> dict[str, str]:
        shape = shape_of(parse(options, streaming=streaming), self._config.changes)
        self.table.prepare(shape.schema)
        return options | {"table": self._table_config.to_json()}

    def write(self, frame: DataFrame, batch: int) -> Written:
        rows = [row.asDict() for row in frame.collect()]
        if not rows:
            return Written(0)
        query = {row.pop("query") for row in rows}
        assert len(query) == 1, "the tasks of one batch belong to one query"
        files = [StagedFile.from_record(row) for row in rows]
        end = batch_end(checkpoint_of(self._config, self.table), batch)
        with self.table.committing():
            return Written(self.table.commit(query.pop(), batch, files, end))


class Stepped:
    """Spark computes the rows, and its tasks write what it hands them."""

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self.table = open_table(table_config(config))
        self._quarantine = open_table(quarantine_config(config)) if config.quarantines else None

    def look(self) -> None:
        pass

    def begin(self, spark: SparkSession) -> DataFrame:
        source = spark.readStream.format("penstock").options(**source_options(self._config))
        rows = self.computed(source.load())
        check_columns(self._config, to_arrow_schema(rows.drop(MET).schema, timezone="UTC"))
        return rows

    def between(self, spark: SparkSession, ends: Mapping[str, str]) -> DataFrame:
        options = range_options(self._config, ends)
        return self.computed(spark.read.format("penstock").options(**options).load())

    def computed(self, rows: DataFrame) -> DataFrame:
        """Return the rows after all steps. Raises DefinitionError."""
        config = self._config
        places = ("topic", "partition", "offset")
        if config.parsing:
            rows = self.with_value(rows)
            enveloped = config.changes is ChangeForm.DEBEZIUM
            rows = flattened(rows, path_of_envelope(rows) if enveloped else ())
            places = ("_topic", "_partition", "_offset")
        if config.expectations:
            rows = held_against(rows, config.expectations)
        if config.deduplication:
            rows = deduplicated(rows, config.deduplication, config.expectations, places)
        return rows

    def with_value(self, rows: DataFrame) -> DataFrame:
        """Add what the target needs of values before their fields become columns."""
        return rows

    def prepare(self, schema: pa.Schema) -> RowWriter:
        """Return what tasks write rows with. Raises TableError."""
        return self.table.prepare(schema)

    def commit(self, query: str, batch: int, lines: Sequence[Row]) -> int:
        """Make what tasks wrote part of the target, once; return the rows. Raises TableError."""
        end = batch_end(checkpoint_of(self._config, self.table), batch)
        with self.table.committing():
            return self.table.commit(query, batch, files_of(lines, TABLE, batch), end)

    def write(self, frame: DataFrame, batch: int) -> Written:
        query = query_of(frame)
        schema = to_arrow_schema(frame.drop(MET).schema, timezone="UTC")
        with_reason = schema.append(pa.field(UNMET, pa.string()))
        writer = self.prepare(schema)
        quarantine = self._quarantine.prepare(with_reason) if self._quarantine else None
        gate = Gate(query, batch, writer, quarantine, self._config.expectations)
        lines = frame.mapInArrow(CarriedFunction(gate.stage), MANIFEST).collect()
        if self._quarantine:
            with self._quarantine.committing():
                self._quarantine.commit(query, batch, files_of(lines, QUARANTINE, batch))
        return Written(self.commit(query, batch, lines), self._unmet(lines))

    def _unmet(self, lines: Iterable[Row]) -> dict[str, int]:
        unmet: Counter[str] = Counter()
        for line in lines:
            for each, count in zip(self._config.expectations, line.unmet or (), strict=False):
                unmet[each.name] += count
        return {name: count for name, count in unmet.items() if count}


def query_of(frame: DataFrame) -> str:
    """Return the id of the query of which this is a batch."""
    query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    assert query is not None, "Spark names the query of each batch"
    return query


def files_of(lines: Iterable[Row], into: str, batch: int) -> list[StagedFile]:
    """Return the files of one kind; they hold what Spark computed of a batch as a whole."""
    pieces = [line for line in lines if line.into == into]
    place = (into, 0, batch, batch + 1)
    return [
        StagedFile(
            line.staged, *place, line.rows, line.size, piece, tuple(line.parts or ()), line.footer
        )
        for piece, line in enumerate(pieces)
    ]
