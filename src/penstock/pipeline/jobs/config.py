"""What a pipeline does: its Python form. `definition.py` reads it from a file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from penstock.pipeline.session import LOCAL
from penstock.pipeline.source.options import ReadMode
from penstock.pipeline.tables.interface import ChangeForm, TableFormat
from penstock.pipeline.values.options import OnParseError

BATCH_ROWS: Final = 2_000_000
"""Rows of one batch: what is done again after a kill, and how often progress is seen."""


Access: TypeAlias = tuple[tuple[str, str], ...]
"""Options by which servers are reached; `$NAME` in a value is the environment's."""


class DefinitionError(ValueError):
    """A pipeline is not defined as it has to be; the message says what would be right."""


class Otherwise(StrEnum):
    """What happens to a row that an expectation does not hold for."""

    KEEP = "keep"
    """It is counted."""
    DROP = "drop"
    QUARANTINE = "quarantine"
    """It goes to the quarantine table, with the name of the expectation."""
    FAIL = "fail"
    """The run ends before anything of its batch is written."""


@dataclass(frozen=True)
class Expectation:
    """A condition on rows."""

    name: str
    that: str
    """A condition in Spark's SQL; a row for which it is null does not meet it."""
    otherwise: Otherwise = Otherwise.KEEP


@dataclass(frozen=True)
class Deduplication:
    """Of rows with the same values within some time the first is kept.

    A null is not the same as another one.
    """

    by: tuple[str, ...]
    time: str
    """The column by whose times lateness is measured."""
    within_seconds: float
    """Rows that are later than the newest by more than this are dropped."""


@dataclass(frozen=True)
class Parsing:
    """How values become columns."""

    schema: str
    """As option `schema` of the source has it (docs/spark-values.md)."""
    on_error: OnParseError = OnParseError.FAIL
    dead_letter: Path | None = None


class WriteMode(StrEnum):
    """How rows get into a table."""

    APPEND = "append"
    UPSERT = "upsert"
    """The newest row of each key takes the place of the one before; a tombstone removes it."""


@dataclass(frozen=True)
class TopicTarget:
    """The topic that rows are written to, where they are kept in no table."""

    topic: str
    servers: str
    access: Access = ()


@dataclass(frozen=True)
class PipelineConfig:
    """One pipeline: topics, what is done with their rows, and the table or topic they go to.

    Raises DefinitionError where it contradicts itself.
    """

    servers: str
    topics: tuple[str, ...]
    table: Path
    """The folder of the table, or of the job's own state where the rows go elsewhere."""
    store: str | None = None
    """Where in an object store the table lies, by its URL, if it is in one."""
    catalog: str | None = None
    """An Iceberg table's catalogue, by its URL; a file in the table's folder unless given."""
    table_format: TableFormat = TableFormat.PARQUET
    checkpoint: Path | None = None
    """Where Spark keeps its offsets; inside the table's folder unless set otherwise."""
    interval_seconds: float | None = None
    """How often a batch begins; None ends the job when it has caught up."""
    starting_offsets: str = "earliest"
    read_mode: ReadMode = ReadMode.AUTO
    batch_rows: int = BATCH_ROWS
    include_headers: bool = False
    fail_on_data_loss: bool = True
    compression: str = "zstd"
    master: str = LOCAL
    parsing: Parsing | None = None
    expectations: tuple[Expectation, ...] = ()
    deduplication: Deduplication | None = None
    mode: WriteMode = WriteMode.APPEND
    key: tuple[str, ...] = ()
    """The columns by which rows are upserted."""
    changes: ChangeForm = ChangeForm.ROWS
    """What the rows that are upserted say."""
    partition_by: tuple[str, ...] = ()
    target_topic: TopicTarget | None = None
    backfill: bool = False
    """Whether rows are added that are older than those the table began with."""
    access: Access = ()
    """To the servers that are read."""

    def __post_init__(self) -> None:
        upserts, changes = self.mode is WriteMode.UPSERT, self.changes is ChangeForm.DEBEZIUM
        if upserts != bool(self.key):
            raise DefinitionError(
                'write.key must be a list of columns, with mode = "upsert" and only then'
            )
        if changes and not upserts:
            raise DefinitionError(
                'write.changes must be left out, or given with mode = "upsert" and a key'
            )
        if changes and not self.parsing:
            raise DefinitionError(
                'write.changes = "debezium" is about columns that values have: [parse] is '
                "missing, with a schema of op, before and after"
            )
        if self.deduplication and upserts:
            raise DefinitionError(
                "[deduplicate] keeps the first row of some time and loses the order of those of a "
                'key, of which mode = "upsert" keeps the newest: leave one of them out'
            )

    @property
    def target(self) -> str:
        """What is written, for people."""
        if self.target_topic is not None:
            return self.target_topic.topic
        return self.store or str(self.table)

    @property
    def needs_spark(self) -> bool:
        """Whether only Spark can compute the rows, and not the tasks that read them."""
        return bool(self.expectations or self.deduplication)

    @property
    def quarantines(self) -> bool:
        """Whether rows may go to the quarantine table."""
        return any(each.otherwise is Otherwise.QUARANTINE for each in self.expectations)
