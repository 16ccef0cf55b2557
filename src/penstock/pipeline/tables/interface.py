"""What every table does, whatever its format.

Tasks write files that no reader sees (`Stager`, `staging.py`). The driver makes those of one batch
part of the table, once for each (query, batch), however often Spark runs the batch.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from penstock.pipeline.tables.staging import Stager

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
    """A local folder."""
    format: TableFormat = TableFormat.PARQUET
    compression: str = "zstd"
    target_bytes: int = TARGET_BYTES
    partition_by: tuple[str, ...] = ()
    """Columns, `day(column)` or `hour(column)`."""
    keys: tuple[str, ...] = ()
    """Columns of which the table has one row for each value; none where rows are only added."""
    changes: ChangeForm = ChangeForm.ROWS

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
    """Its path below the folder that its table stages in; empty where a range held no rows."""
    topic: str
    partition: int
    start: int
    """The first offset of the range that its task read; `end` is the one after the last."""
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


def covered(files: Sequence[StagedFile]) -> tuple[Offsets, ...]:
    """Return what the files of a batch cover, sorted."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for file in files:
        source = (file.topic, file.partition)
        start, end = found.get(source, (file.start, file.end))
        found[source] = (min(start, file.start), max(end, file.end))
    return tuple(sorted(Offsets(*source, *offsets) for source, offsets in found.items()))


class Table(ABC):
    """One table; one query writes to it, any number of tasks stage files for it."""

    def __init__(self, config: TableConfig) -> None:
        self.config = config

    @property
    @abstractmethod
    def checkpoint(self) -> Path:
        """Where Spark keeps its offsets unless told otherwise."""

    @property
    @abstractmethod
    def spark_log(self) -> Path:
        """Where what Java says goes."""

    @abstractmethod
    def only_writer(self) -> AbstractContextManager[None]:
        """Return what keeps other runs away while it is open. It raises TableError."""

    @abstractmethod
    def prepare(self, schema: pa.Schema) -> Stager:
        """Make the table fit for rows of this schema; return what tasks write them with.

        Raises TableError where the place holds something else, or rows of another kind.
        """

    @abstractmethod
    def commit(self, query: str, batch: int, files: Sequence[StagedFile]) -> int:
        """Make one batch's files part of the table, durably; return its rows.

        A batch that is committed already keeps its first files, and those given now are dropped.
        Raises TableError where another query has written to the table.
        """


def another_query(location: str) -> TableError:
    return TableError(
        f"{location} was written by another query: give the checkpoint that belongs to it, or an "
        "empty folder for the table"
    )


def older_checkpoint(location: str, batch: int) -> TableError:
    return TableError(
        f"batch {batch} of {location} was committed with other offsets than the checkpoint holds: "
        "the checkpoint is older than the table, and can't go on with it"
    )


def other_parts(location: str, parts: Sequence[str]) -> TableError:
    return TableError(
        f"{location} is partitioned by {', '.join(parts) or 'nothing'}: that stays as it is, so "
        "give the same as before, or another table"
    )
