"""What a table is asked for, what is given to it, and why it refuses."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.pipeline.source.offsets import OffsetsJson

TARGET_BYTES: Final = 128 << 20
"""Where a task begins its next file, and up to which small ones are merged."""


Values: TypeAlias = tuple[str | None, ...]
"""What all rows of a file have in the columns that their table is partitioned by."""


class TableError(Exception):
    """The table can't be written by this query; the message says what to do."""


class TableFormat(StrEnum):
    """What a table is kept as."""

    PARQUET = "parquet"
    """A folder of Parquet files and nothing else."""
    DELTA = "delta"
    ICEBERG = "iceberg"


class ChangeForm(StrEnum):
    """What the rows of a table with keys say."""

    ROWS = "rows"
    """Each is the newest of its key; one without a `value`, a tombstone, takes it away."""
    DEBEZIUM = "debezium"
    """Each is an envelope: op, before and after."""


@dataclass(frozen=True)
class TableConfig:
    """Which table, and how it is written."""

    location: str
    """A local folder, or a URL in an object store."""
    format: TableFormat = TableFormat.PARQUET
    compression: str = "zstd"
    target_bytes: int = TARGET_BYTES
    partition_by: tuple[str, ...] = ()
    """Columns, `day(column)` or `hour(column)`."""
    keys: tuple[str, ...] = ()
    """Columns of which the table has one row for each value; none where rows are only added."""
    changes: ChangeForm = ChangeForm.ROWS
    catalog: str | None = None
    """Iceberg's: the URL of a REST catalogue, or of a database; a file beside the table if None."""
    home: str | None = None
    """The local folder of a run's own state; the table's if None, which an object store has not."""
    backfill: bool = False
    """Whether rows are added beside the query that the table belongs to."""

    def to_json(self) -> str:
        """Return the form in which Spark's options carry it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` was called on."""
        values: dict[str, Any] = json.loads(text)
        return cls(
            **{
                **values,
                "format": TableFormat(values["format"]),
                "partition_by": tuple(values["partition_by"]),
                "keys": tuple(values["keys"]),
                "changes": ChangeForm(values["changes"]),
            }
        )


@dataclass(frozen=True)
class StagedFile:
    """One file that a task wrote and that is not yet part of the table."""

    staged: str
    """Its path below the folder that its table stages in; empty for a range whose rows, if it holds
    any, are in a file named by another one."""
    topic: str
    partition: int
    start: int
    """The first offset of the first range that its task read; `end` is the one after the last."""
    end: int
    rows: int
    size: int = 0
    """Bytes."""
    piece: int = 0
    """Which of its task's files it is."""
    values: Values = ()
    footer: bytes = b""
    """What Parquet says of it, as a file of Parquet metadata."""
    again: bool = False
    """Whether the table holds these offsets of an earlier topic of that name."""

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the file that a record says, of which JSON and Spark make lists of tuples."""
        return cls(**{**record, "values": tuple(record.get("values", ()))})


class Offsets(NamedTuple):
    """The offsets of one partition that a batch covers, however they were cut into files."""

    topic: str
    partition: int
    start: int
    end: int


NO_ENVELOPE: Final = (
    'write.changes = "debezium": the schema of [parse] has no op STRING beside before and after, '
    "two structs of the same fields"
)
"""Why values are no changes of the form that was named."""


class Snapshot(NamedTuple):
    """What a table is made of at one moment."""

    files: tuple[str, ...]
    """Their paths."""
    schema: pa.Schema
    """The table's columns; files of earlier batches may lack some, or have narrower ones."""
    positions: OffsetsJson
    """Where the batch after the newest one begins: all before it is in the files, or is no row."""


class Held(NamedTuple):
    """The newest batch of a query that a table holds."""

    batch: int
    positions: OffsetsJson | None
    """Where the batch after it begins; earlier versions did not say."""


class Merged(NamedTuple):
    """What a look for small files did."""

    files: int
    """So many became others."""
    into: int


def state_folder(table: Path) -> Path:
    """Return where a table's folder has what no reader of it looks at."""
    return table / "_penstock"


def covered(files: Sequence[StagedFile]) -> tuple[Offsets, ...]:
    """Return what the files of a batch cover, sorted."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for file in files:
        source = (file.topic, file.partition)
        start, end = found.get(source, (file.start, file.end))
        found[source] = (min(start, file.start), max(end, file.end))
    return tuple(sorted(Offsets(*source, *offsets) for source, offsets in found.items()))


def differ(committed: OffsetsJson | None, given: OffsetsJson | None) -> bool:
    """Whether a batch that is given again would end elsewhere, as far as both are known."""
    return committed is not None and given is not None and committed != given


def no_pipeline_s(location: str) -> TableError:
    return TableError(f"no pipeline has written to {location}: its files stay as they are")


def another_query(location: str) -> TableError:
    return TableError(
        f"{location} was written by another query: give the checkpoint that belongs to it, or an "
        "empty folder for the table"
    )


def table_gone(location: str, checkpoint: str) -> TableError:
    return TableError(
        f"{checkpoint} says what was read of topics, and the table {location} that has it is gone: "
        "put it back, or correct its place; to begin a new table, remove the checkpoint too"
    )


def of_another_format(location: str, kind: TableFormat) -> TableError:
    return TableError(
        f"{location} is kept as {kind}: set that as the format (--table-format, write.format), or "
        "begin another table"
    )


def nothing_to_fill(location: str) -> TableError:
    return TableError(f"{location} is no table of a pipeline yet: run the pipeline first")


def older_checkpoint(location: str, batch: int) -> TableError:
    return TableError(
        f"batch {batch} of {location} was committed with other offsets than the checkpoint holds: "
        "the checkpoint is older than the table, or was changed, and can't go on with it"
    )


def older_table(location: str, checkpoint: str, batch: int) -> TableError:
    return TableError(
        f"{checkpoint} says that batch {batch} is done, and {location} does not hold it: the table "
        "is older than its checkpoint, was taken back to an older version (RESTORE, rollback), or "
        "its newest commit was emptied. Put back the newest copy or version of the table, or the "
        "checkpoint of the same moment; with ignore_data_loss the job goes on without those rows"
    )


def taken_back(location: str) -> TableError:
    return TableError(
        f"{location} was taken back to an older version (RESTORE, rollback), without batches that "
        "its pipeline wrote. Make the version that was the newest one the newest again; a run with "
        "ignore_data_loss goes on without those rows"
    )


def unreadable(what: str, location: str, error: Exception) -> TableError:
    """Return the error that what a table is known by is gone or damaged."""
    why = (str(error).strip() or type(error).__name__).splitlines()[0]
    return TableError(
        f"{what} of {location} is missing or damaged ({why}): put back a copy of it. Its rows are "
        "in its data files; without a copy, begin another table from another checkpoint"
    )


def unknown_positions(location: str) -> TableError:
    return TableError(
        f"the newest batch of {location} does not say up to which offsets it goes: it is of an "
        "earlier version of Penstock. Run the pipeline once more, with something new in its topics"
    )


def other_parts(location: str, parts: Sequence[str]) -> TableError:
    return TableError(
        f"{location} is partitioned by {', '.join(parts) or 'nothing'}: that stays as it is, so "
        "give the same as before, or another table"
    )
