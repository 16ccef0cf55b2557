"""The folder of records that are not of their schema: Parquet files, each record once.

A task writes one file, under a name of the query, the batch and the offsets that it read, and has
it appear whole when the task is done. So what an attempt of the task has written, or the same batch
in an earlier run, is replaced and not added to; where that run had cut the batch into other tasks,
the files of it that this one's offsets lie in are removed.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.typed import REASON, SCHEMA_ID
from penstock.records.arrow import HEADERS, TIMESTAMP

if TYPE_CHECKING:
    from types import TracebackType

    from penstock.pipeline.values.origin import Origin

COLUMNS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", TIMESTAMP),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        REASON,
        SCHEMA_ID,
    ]
)
STORED: Final = [name for name in COLUMNS.names if name not in {REASON.name, SCHEMA_ID.name}]
"""Those that a record has as it is stored."""
_OFFSETS: Final = re.compile(r"(\d{20})-(\d{20})\.parquet")


class DeadLetters:
    """The file of one task; a context that is left without an error has it appear."""

    def __init__(self, folder: Path, origin: Origin) -> None:
        self._folder = folder
        self._origin = origin
        self._draft = folder / f".{origin.name}.{uuid.uuid4().hex}"
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def add(self, rejected: pa.RecordBatch) -> None:
        """Write records, whose columns are those of COLUMNS in any order, and others."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._draft, COLUMNS, compression="zstd")
        self._writer.write_batch(rejected.select(COLUMNS.names).cast(COLUMNS))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        if kind is None:
            self._appear()
        else:
            self._draft.unlink(missing_ok=True)

    def _appear(self) -> None:
        target = self._folder / self._origin.name
        if self._writer is None:
            target.unlink(missing_ok=True)
        else:
            with self._draft.open("rb") as file:
                os.fsync(file.fileno())
            self._draft.replace(target)
        self._remove_others(target)
        _flush(self._folder)

    def _remove_others(self, target: Path) -> None:
        """Remove what the batch has left here when it was cut otherwise, or a killed attempt."""
        origin = self._origin
        prefix = origin.of_partition
        for each in self._folder.iterdir():
            is_draft = each.name.startswith(f".{prefix}")
            match = _OFFSETS.match(each.name.removeprefix(".").removeprefix(prefix))
            if match is None or not (is_draft or each.name.startswith(prefix)):
                continue
            start, end = int(match[1]), int(match[2])
            is_same = (start, end) == (origin.start, origin.end)
            overlaps = start < origin.end and origin.start < end
            if each != target and (is_same or (overlaps and bool(origin.query))):
                each.unlink(missing_ok=True)


def prepare_folder(folder: Path) -> None:
    """Make the folder, on the driver; raises SchemaError where that can't be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SchemaError(
            f"deadLetter: the folder {folder} can't be made: {error.strerror}"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SchemaError(f"deadLetter: nothing can be written to the folder {folder}")


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
