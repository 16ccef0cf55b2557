"""How tasks write files of a table: durably, and under names that no other attempt shares."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.pipeline.tables.storage import Folder

ROW_GROUP_BYTES: Final = 64 << 20
"""Arrow bytes that are gathered for one row group: readers work best on few large ones."""

_REPEATED: Final = ("key", "topic", "partition", "timestampType")
"""Keys repeat and values do not: a dictionary of values would be built only to be thrown away."""


class Piece(NamedTuple):
    """One file that a task wrote."""

    staged: str
    """Its path below the stager's folder."""
    rows: int
    size: int
    footer: bytes


@dataclass(frozen=True)
class Stager:
    """Writes rows of one schema to files that no reader sees; pickled to the executors."""

    folder: Folder
    schema: pa.Schema
    compression: str
    target_bytes: int
    by_batch: bool = False
    """Whether each batch has a folder of its own, in which what it leaves is found."""

    def write(self, batches: Iterable[pa.RecordBatch], query: str, batch: int) -> Iterator[Piece]:
        """Write files of about the target's size; each is whole when it is yielded."""
        inside = f"{query}-{batch}/" if self.by_batch else ""
        groups = _row_groups(batches)
        for first in groups:
            name = f"{inside}{uuid.uuid4().hex}.parquet"
            yield self._write(name, first, groups)

    def _write(
        self, name: str, group: list[pa.RecordBatch], following: Iterator[list[pa.RecordBatch]]
    ) -> Piece:
        with self.folder.writing(name) as sink:
            writer = pq.ParquetWriter(
                sink, self.schema, compression=self.compression, use_dictionary=self._dictionaries()
            )
            with writer:
                write_group(writer, group)
                while sink.tell() < self.target_bytes and (more := next(following, None)):
                    write_group(writer, more)
            metadata = writer.writer.metadata
            return Piece(name, metadata.num_rows, sink.tell(), serialized(metadata))

    def _dictionaries(self) -> list[str] | bool:
        named = [name for name in self.schema.names if name in _REPEATED]
        return named if "value" in self.schema.names else True


def write_group(writer: pq.ParquetWriter, group: list[pa.RecordBatch]) -> None:
    """Write batches as one row group."""
    table = pa.Table.from_batches(group, writer.schema)
    writer.write_table(table, row_group_size=table.num_rows)


def serialized(metadata: pq.FileMetaData) -> bytes:
    """Return what `pq.read_metadata` reads."""
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    return bytes(sink.getvalue())


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
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
