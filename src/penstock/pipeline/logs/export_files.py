"""One file of an export, written whole or not at all. Runs on the executors."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.source.tasks import read_task
from penstock.pipeline.tables.storage import flush_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.pipeline.logs.manifest import ExportedFile
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import Task

STAGING: Final = "_staging"
"""Folder of files that are being written, under names that no other attempt shares."""

_GROUP_BYTES: Final = 64 << 20
"""Arrow bytes of a row group."""


def write_file(folder: Path, file: ExportedFile, task: Task, options: SourceOptions) -> int:
    """Write what a task reads, unless the file is there; return how many rows it has.

    Raises SourceError and OSError.
    """
    path = folder / file.name
    if not path.exists():
        staged = folder / STAGING / f"{uuid.uuid4().hex}.parquet"
        _write(staged, read_task(task, options), arrow_schema(options.columns))
        path.parent.mkdir(parents=True, exist_ok=True)
        staged.replace(path)
        for each in (path.parent, path.parent.parent, folder):
            flush_folder(each)
    return int(pq.read_metadata(path).num_rows)


def _write(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        with pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=["key", "timestampType", "headers.list.element.key"],
            write_page_checksum=True,
        ) as writer:
            for group in _groups(batches):
                writer.write_table(pa.Table.from_batches(group, schema))
        file.flush()
        os.fsync(file.fileno())


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield gathered
            gathered, size = [], 0
    if gathered:
        yield gathered
