"""What Delta and Iceberg share: one commit adds and removes files at once, for every reader.

Tasks write data files where they stay, in a folder for each batch. No reader sees one before a
commit names it, and that commit says which batch of which query it is. So a batch that Spark runs
again is found to be there. Small files are merged by the same means.
"""

from __future__ import annotations

import logging
import time
import uuid
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.tables.interface import (
    Offsets,
    StagedFile,
    Table,
    TableError,
    covered,
    older_checkpoint,
)
from penstock.pipeline.tables.merging import choose, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.pipeline.tables.staging import Piece, Stager
    from penstock.pipeline.tables.storage import Folder

logger = logging.getLogger(__name__)

DATA: Final = "data"
"""The folder of data files, below the table's own."""

EXPIRY_SECONDS: Final = 3600
"""How often a run that merges looks for versions and files that nobody needs any more."""

CONFLICTS_MAX: Final = 3
"""How often a merge is tried again where somebody else changed the same files; then it is left."""


class ConflictError(Exception):
    """Somebody else changed the table between the look at it and the commit."""


@dataclass(frozen=True)
class LiveFile:
    """One file that is part of the table."""

    name: str
    """Its path below the table's folder."""
    size: int
    rows: int
    values: tuple[str | None, ...] = ()
    """Those that all of its rows have in the columns that the table is partitioned by."""
    entry: Any = None
    """What the format knows it by."""


class Batch(NamedTuple):
    """Which batch of which query a commit holds."""

    query: str
    number: int
    offsets: tuple[Offsets, ...]


@dataclass(frozen=True)
class Change:
    """The files that one commit adds and removes."""

    added: Sequence[StagedFile | Piece]
    removed: Sequence[LiveFile] = ()
    batch: Batch | None = None
    """None where the rows stay the same."""


class LakeTable(Table):
    """A table of which one commit replaces any files by any others."""

    folder: Folder
    _expired_at = float("-inf")

    @abstractmethod
    def _schema(self) -> pa.Schema:
        """Return the table's columns, as its files have them."""

    @abstractmethod
    def _refresh(self) -> None:
        """Look at what others have committed."""

    @abstractmethod
    def _own(self, query: str) -> None:
        """Note that a query writes to the table; raises TableError where another one does."""

    @abstractmethod
    def _committed(self, query: str) -> int | None:
        """Return the number of the newest batch that the table holds of a query."""

    @abstractmethod
    def _offsets(self, query: str, batch: int) -> tuple[Offsets, ...] | None:
        """Return what the newest batch covers; None where the table does not know any more."""

    @abstractmethod
    def _files(self) -> list[LiveFile]:
        """Return the files that the table is made of."""

    @abstractmethod
    def _apply(self, change: Change) -> None:
        """Commit, durably; raises ConflictError."""

    @abstractmethod
    def _expire(self) -> None:
        """Forget versions that are older than what readers may look at, and files of no version."""

    def commit(self, query: str, batch: int, files: Sequence[StagedFile]) -> int:
        self._refresh()
        self._own(query)
        offsets = covered(files)
        newest = self._committed(query)
        staged = [file for file in files if file.staged]
        if newest is None or batch > newest:
            self._add(staged, Batch(query, batch, offsets))
            self._remove_leftovers(query, batch, staged)
        elif batch < newest or self._offsets(query, batch) not in {None, offsets}:
            raise older_checkpoint(self.config.location, batch)
        else:
            self._data.remove(file.staged for file in staged)
        self.compact()
        return sum(file.rows for file in staged)

    def compact(self) -> int:
        """Merge small files while there are enough of them; return how many were merged.

        Each row is there once for every reader at any moment.
        """
        merged = 0
        conflicts = 0
        while group := choose(self._files(), self.config.target_bytes):
            try:
                self._merge(group)
            except ConflictError as error:
                conflicts += 1
                if conflicts == CONFLICTS_MAX:
                    logger.warning("small files stay for now: %s", error)
                    break
                self._refresh()
            else:
                merged += len(group)
        if merged and time.monotonic() - self._expired_at > EXPIRY_SECONDS:
            self._expire()
            self._expired_at = time.monotonic()
        return merged

    @property
    def _data(self) -> Folder:
        return self.folder.below(DATA)

    def _add(self, staged: Sequence[StagedFile], batch: Batch) -> None:
        self._data.flush(file.staged for file in staged)
        try:
            self._apply(Change(staged, batch=batch))
        except ConflictError as error:
            raise TableError(
                f"another run writes to {self.config.location}: wait for its end, or stop it "
                f"({error})"
            ) from error

    def _merge(self, group: Sequence[LiveFile]) -> None:
        rows = rows_of(self.folder, [file.name for file in group], self._schema())
        stager = self._stager(self._schema())
        pieces = list(stager.write(rows, f"merged-{uuid.uuid4().hex}", 0))
        self._data.flush(piece.staged for piece in pieces)
        assert sum(piece.rows for piece in pieces) == sum(file.rows for file in group)
        try:
            self._apply(Change(pieces, group))
        except ConflictError:
            self._data.remove(piece.staged for piece in pieces)
            raise

    def _remove_leftovers(self, query: str, batch: int, staged: Sequence[StagedFile]) -> None:
        """Remove what ended attempts at this batch left beside what was committed of it."""
        kept = {file.staged for file in staged}
        inside = f"{query}-{batch}"
        found = [f"{inside}/{each.name}" for each in self._data.below(inside).found()]
        self._data.remove(name for name in found if name not in kept)

    @abstractmethod
    def _stager(self, schema: pa.Schema) -> Stager:
        """Return what writes files of the table."""


def footer_of(file: StagedFile | Piece) -> pq.FileMetaData:
    """Return what Parquet says of a file."""
    return pq.read_metadata(pa.BufferReader(file.footer))
