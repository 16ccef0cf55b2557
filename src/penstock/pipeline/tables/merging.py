"""Which small files are merged, and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import pyarrow.parquet as pq

from penstock.pipeline.tables.columns import fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.pipeline.tables.storage import Folder

SMALL_FILES_MAX: Final = 32
"""As many small files may stay where they don't make up one of the target's size."""

READ_ROWS: Final = 64 << 10


class Sized(Protocol):
    """A file, as far as merging looks at it."""

    @property
    def size(self) -> int: ...
    @property
    def values(self) -> tuple[str | None, ...]: ...


File = TypeVar("File", bound=Sized)


def choose(files: Sequence[File], target: int, *, most: int) -> list[File]:
    """Return small files of one partition of the table that are worth one merge; else none.

    They are when they make up a file of the target's size, or are more than `most`. So a byte is
    written again a few times at most, however small the batches are: what is merged is no longer
    small, or is counted as one.
    """
    partitions: dict[tuple[str | None, ...], list[File]] = {}
    for file in files:
        if file.size < target // 2:
            partitions.setdefault(file.values, []).append(file)
    for small in partitions.values():
        size = sum(file.size for file in small)
        if len(small) > 1 and (size >= target or len(small) > most):
            return _up_to(small, target)
    return []


def _up_to(files: list[File], target: int) -> list[File]:
    """Return the smallest files up to a size, two at least."""
    chosen: list[File] = []
    size = 0
    for file in sorted(files, key=lambda file: file.size):
        if size + file.size > target and len(chosen) > 1:
            break
        chosen.append(file)
        size += file.size
    return chosen


def rows_of(folder: Folder, names: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, one after the other, with the columns that a schema has now."""
    for name in names:
        with folder.reading(name) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(batch_size=READ_ROWS):
                yield fitted(batch, schema)
