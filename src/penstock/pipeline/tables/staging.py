"""How tasks write files of a table: durably, and under names that no other attempt shares."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.tables.changes import as_changes
from penstock.pipeline.tables.columns import fitted
from penstock.pipeline.tables.interface import ChangeForm, Values
from penstock.pipeline.tables.partitions import parted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.pipeline.tables.partitions import PartitionField
    from penstock.pipeline.tables.storage import Folder

ROW_GROUP_BYTES: Final = 64 << 20
"""Arrow bytes that are gathered for one row group: readers work best on few large ones."""

GATHERED_BYTES_MAX: Final = 256 << 20
"""Arrow bytes that one task gathers for all files that it has open."""

OPEN_FILES_MAX: Final = 64
"""Files that one task has open; of more parts of a table, those begun first are ended first."""

_REPEATED: Final = ("key", "topic", "partition", "timestampType")
"""Keys repeat and values do not: a dictionary of values would be built only to be thrown away."""


class Piece(NamedTuple):
    """One file that a task wrote."""

    staged: str
    """Its path below the stager's folder."""
    rows: int
    size: int
    values: Values
    footer: bytes


class Changes(NamedTuple):
    """How rows say what becomes of the row of their key."""

    form: ChangeForm
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Stager:
    """Writes rows of one schema to files that no reader sees; pickled to the executors."""

    folder: Folder
    schema: pa.Schema
    """What files have; rows are made to fit."""
    compression: str
    target_bytes: int
    by_batch: bool = False
    """Whether each batch has a folder of its own, in which what it leaves is found."""
    fields: tuple[PartitionField, ...] = ()
    changes: Changes | None = None

    def write(self, batches: Iterable[pa.RecordBatch], query: str, batch: int) -> Iterator[Piece]:
        """Write files of about the target's size; each is whole when it is yielded."""
        inside = f"{query}-{batch}/" if self.by_batch else ""
        files: dict[Values, _OpenFile] = {}
        try:
            for values, rows in self._parts(batches):
                file = files.get(values)
                if file is None:
                    if len(files) == OPEN_FILES_MAX:
                        yield files.pop(next(iter(files))).end()
                    file = files[values] = _OpenFile(self, inside, values)
                file.add(rows)
                if file.gathered_bytes >= ROW_GROUP_BYTES:
                    file.write_group()
                elif sum(each.gathered_bytes for each in files.values()) >= GATHERED_BYTES_MAX:
                    max(files.values(), key=lambda each: each.gathered_bytes).write_group()
                if file.size >= self.target_bytes:
                    yield files.pop(values).end()
            for values in list(files):
                yield files.pop(values).end()
        finally:
            for file in files.values():
                file.leave()

    def _parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Values, pa.RecordBatch]]:
        for batch in batches:
            rows = batch
            if self.changes is not None:
                rows = as_changes(batch, self.changes.form, self.changes.keys)
            if rows.num_rows:
                for values, part in parted(self.fields, rows):
                    yield values, fitted(part, self.schema)

    def dictionaries(self) -> list[str] | bool:
        """Return the columns that are written with a dictionary."""
        named = [name for name in self.schema.names if name in _REPEATED]
        return named if "value" in self.schema.names else True


class _OpenFile:
    """One file that is being written."""

    def __init__(self, stager: Stager, inside: str, values: Values) -> None:
        self._name = f"{inside}{uuid.uuid4().hex}.parquet"
        self._values = values
        self._open = ExitStack()
        self._sink = self._open.enter_context(stager.folder.writing(self._name))
        self._writer = pq.ParquetWriter(
            self._sink,
            stager.schema,
            compression=stager.compression,
            use_dictionary=stager.dictionaries(),
            # A row group is large, and the rows of some offsets or times lie in few of its pages.
            write_page_index=True,
        )
        self._gathered: list[pa.RecordBatch] = []
        self.gathered_bytes = 0

    @property
    def size(self) -> int:
        """Bytes that are written."""
        return int(self._sink.tell())

    def add(self, rows: pa.RecordBatch) -> None:
        self._gathered.append(rows)
        self.gathered_bytes += rows.nbytes

    def write_group(self) -> None:
        """Write what was gathered as one row group."""
        table = pa.Table.from_batches(self._gathered, self._writer.schema)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._gathered, self.gathered_bytes = [], 0

    def end(self) -> Piece:
        try:
            if self._gathered:
                self.write_group()
            self._writer.close()
            footer = self._writer.writer.metadata
            size = self.size
            self._open.close()
        except OSError:
            self.leave()
            raise
        return Piece(self._name, footer.num_rows, size, self._values, serialized(footer))

    def leave(self) -> None:
        """Close what is not whole and is part of nothing, where a disk may be full."""
        self._writer.is_open = False
        with suppress(OSError, ValueError):
            self._open.close()


def serialized(metadata: pq.FileMetaData) -> bytes:
    """Return what `pq.read_metadata` reads."""
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    return bytes(sink.getvalue())
