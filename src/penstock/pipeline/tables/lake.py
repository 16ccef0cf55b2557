"""What Delta and Iceberg share: one commit adds and removes files at once, for every reader.

Tasks write data files where they stay, in a folder for each batch. No reader sees one before a
commit names it, and that commit says which batch of which query it is. So a batch that Spark runs
again is found to be there. Small files are merged by the same means.
"""

from __future__ import annotations

import itertools
import logging
import time
import uuid
from abc import abstractmethod
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.tables import merging
from penstock.pipeline.tables.changes import check_keys, columns_of, staged_schema
from penstock.pipeline.tables.commits import Batch, Change, ConflictError, OutcomeUnknownError
from penstock.pipeline.tables.evolution import Evolution, check_names, evolution
from penstock.pipeline.tables.filling import DeletedKeys
from penstock.pipeline.tables.interface import (
    Held,
    Merged,
    Offsets,
    Snapshot,
    StagedFile,
    TableConfig,
    TableError,
    covered,
    differ,
    no_pipeline_s,
    older_checkpoint,
    other_parts,
    taken_back,
    unknown_positions,
)
from penstock.pipeline.tables.partitions import parse_partitions, with_derived
from penstock.pipeline.tables.staging import Changes, Stager
from penstock.pipeline.tables.table import Table
from penstock.pipeline.tables.upserting import ChangedKeys, KeyRange, filtered, key_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.tables.commits import LiveFile
    from penstock.pipeline.tables.partitions import PartitionField
    from penstock.pipeline.tables.staging import Piece
    from penstock.pipeline.tables.storage import Folder

logger = logging.getLogger(__name__)

DATA: Final = "data"
"""The folder of data files, below the table's own."""

CHANGES: Final = "_penstock/changes"
"""The folder in which changes are staged, which are no data files."""

EXPIRY_SECONDS: Final = 3600
"""How often a run that merges looks for versions and files that nobody needs any more."""

CONFLICTS_MAX: Final = 10
"""How often a commit is tried where somebody else commits at the same time."""

LOST_MERGES_MAX: Final = 3
"""Merges that a job's commits undo before the next ones keep the job from committing meanwhile."""


Turn: TypeAlias = "Callable[[], AbstractContextManager[None]]"
"""What keeps others from committing while it is held."""


class LakeTable(Table):
    """A table of which one commit replaces any files by any others."""

    widens: bool
    """Whether the type of a column can become a wider one."""
    stores_derived: bool
    """Whether the table has columns for what it is partitioned by."""

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        self.folder = self.place.folder
        self._expired_at = float("-inf")
        self._ranges: dict[str, KeyRange | None] = {}
        self._seen: dict[str, int] = {}

    @abstractmethod
    def _open(self, columns: pa.Schema, fields: tuple[PartitionField, ...]) -> None:
        """Open the table, or make it. Raises TableError where the folder holds something else."""

    @abstractmethod
    def _evolve(self, change: Evolution) -> None:
        """Add columns and nested fields, and widen some. Raises ConflictError."""

    @abstractmethod
    def _parts(self) -> list[str]:
        """Return the names of what the table is partitioned by."""

    def _expressions(self) -> list[str]:
        """Return by what the rows of the table's files are cut into parts."""
        return self._parts()

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
    def _owner(self) -> str | None:
        """Return the query that writes to the table."""

    @abstractmethod
    def _noted(self, query: str) -> int | None:
        """Return the number of the newest batch that a query has ever committed."""

    @abstractmethod
    def _committed(self, query: str) -> int | None:
        """Return that of the newest one which the table, taken back perhaps, still holds."""

    @abstractmethod
    def _offsets(self, query: str, batch: int) -> tuple[Offsets, ...] | None:
        """Return what the batch that the table holds covers; None where it is not known."""

    @abstractmethod
    def _positions(self, query: str, batch: int) -> OffsetsJson | None:
        """Return where the batch that the table holds ends; None where it is not known."""

    @abstractmethod
    def _files(self) -> list[LiveFile]:
        """Return the files that the table is made of."""

    @abstractmethod
    def _apply(self, change: Change) -> None:
        """Commit, durably; raises ConflictError."""

    @abstractmethod
    def _obstacle(self) -> str | None:
        """Return why files can't be written again: another engine may have marked rows in them."""

    @abstractmethod
    def _expire(self) -> None:
        """Forget versions that are older than what readers may look at, and files of no version.

        Raises ConflictError.
        """

    def prepare(self, schema: pa.Schema) -> Stager:
        config = self.config
        columns = schema
        if config.keys:
            columns = columns_of(schema, config.changes)
            check_keys(config.keys, columns)
        check_names(columns, self.place.uri)
        fields = parse_partitions(config.partition_by, columns)
        columns = with_derived(fields, columns) if self.stores_derived else columns
        self._open(columns, fields)
        if self._parts() != [field.name for field in fields]:
            raise other_parts(self.place.uri, self._parts())
        self._have_columns(columns)
        return self._change_stager() if config.keys else self._stager()

    def _have_columns(self, columns: pa.Schema) -> None:
        """Add what the table lacks; a run and a backfill may come to it at the same moment."""
        for attempt in range(1, CONFLICTS_MAX + 1):
            change = evolution(self._schema(), columns, widens=self.widens, location=self.place.uri)
            if not (change.added or change.changed):
                return
            try:
                self._evolve(change)
            except ConflictError as error:
                if attempt == CONFLICTS_MAX:
                    raise TableError(
                        f"{self.place.uri} can't be given columns: others change it again and "
                        f"again ({error})"
                    ) from error
                self._refresh()
            else:
                return

    def _stager(self) -> Stager:
        """Return what writes files of the table."""
        config = self.config
        schema = self._schema()
        return Stager(
            self._data,
            schema,
            config.compression,
            config.target_bytes,
            by_batch=True,
            fields=parse_partitions(config.partition_by, schema),
        )

    def _change_stager(self) -> Stager:
        """Return what writes changes, which are no part of the table."""
        config = self.config
        return Stager(
            self.folder.below(CHANGES),
            staged_schema(self._schema()),
            config.compression,
            config.target_bytes,
            by_batch=True,
            changes=Changes(config.changes, config.keys),
        )

    def commit(
        self,
        query: str,
        batch: int,
        files: Sequence[StagedFile],
        positions: OffsetsJson | None = None,
    ) -> int:
        self._refresh()
        self._own(query)
        offsets = covered(files)
        newest = self._still_held(query)
        staged = [file for file in files if file.staged]
        if newest is None or batch > newest:
            self._add(staged, Batch(query, batch, offsets, positions))
        elif (
            batch < newest
            or self._offsets(query, batch) not in {None, offsets}
            or differ(self._positions(query, batch), positions)
        ):
            raise older_checkpoint(self.place.uri, batch)
        self._seen[query] = batch
        # Files that were staged once more stay until they are old: they might be the very same.
        if self.config.keys:
            _empty(self.folder.below(f"{CHANGES}/{query}-{batch}"), set())
        if self._obstacle() is None:
            try:
                self._merge_small(most=merging.SMALL_FILES_MAX)
            except (ConflictError, OSError) as error:
                logger.warning("small files of %s stay for now: %s", self.place.uri, error)
        return sum(file.rows for file in staged)

    def _still_held(self, query: str) -> int | None:
        """Return what `_committed` does; raises TableError where a batch went that was there."""
        newest, seen = self._committed(query), self._seen.get(query)
        lacks = seen is not None and not self.config.backfill and self.lacks_filled(query)
        if lacks or (-1 if newest is None else newest) < (-1 if seen is None else seen):
            raise taken_back(self.place.uri)
        return newest

    def held(self, query: str) -> Held | None:
        self._refresh()
        newest = self._committed(query)
        if newest is None:
            return None
        self._seen[query] = newest
        return Held(newest, self._positions(query, newest))

    def was_taken_back(self, query: str) -> bool:
        self._refresh()
        return self._committed(query) != self._noted(query)

    def missing(self) -> list[str]:
        self._refresh()
        there = {each.name for each in self.folder.found()}
        # Other engines may have added files of other folders.
        own = (each.name for each in self._files() if not each.name.startswith(_ELSEWHERE))
        return sorted(name for name in own if name not in there)

    def snapshot(self) -> Snapshot | None:
        if not self.is_there():
            return None
        self._refresh()
        query = self._owner()
        newest = None if query is None else self._committed(query)
        if query is None or newest is None:
            return None
        obstacle = self._obstacle()
        if obstacle is not None:
            raise TableError(f"{self.place.uri} can't be read by its files: {obstacle}")
        positions = self._positions(query, newest)
        if positions is None:
            is_newest = newest == self._noted(query)
            raise (unknown_positions if is_newest else taken_back)(self.place.uri)
        files = tuple(f"{self.place.uri}/{file.name}" for file in self._files())
        return Snapshot(files, self._schema(), positions)

    def compact(self) -> Merged:
        if not self.is_there() or self._owner() is None:
            raise no_pipeline_s(self.place.uri)
        self._refresh()
        obstacle = self._obstacle()
        if obstacle is not None:
            raise TableError(f"files of {self.place.uri} can't be merged: {obstacle}")
        try:
            return self._merge_small(most=1, turn=self._turn())
        except ConflictError as error:
            raise TableError(
                f"a run commits to {self.place.uri} again and again before a merge is done: "
                f"the job itself merges its files, or try again later ({error})"
            ) from error

    def _turn(self) -> Turn:
        """Return what keeps a job from committing meanwhile: nothing does on another machine."""
        has_home = self.config.home is not None or self.place.local is not None
        return self.committing if has_home else nullcontext

    def _merge_small(self, *, most: int, turn: Turn = nullcontext) -> Merged:
        """Merge small files while there are more of them; raises ConflictError.

        Only the commit of a merge takes a turn, so a job waits for no merge, until it has undone
        some by writing the same files anew.
        """
        merged = Merged(0, 0)
        conflicts = 0
        while True:
            turns = (turn, nullcontext) if conflicts >= LOST_MERGES_MAX else (nullcontext, turn)
            try:
                with turns[0]():
                    if conflicts:
                        self._refresh()
                    group = merging.choose(self._files(), self.config.target_bytes, most=most)
                    if not group:
                        break
                    into = self._merge(group, turns[1])
            except ConflictError:
                conflicts += 1
                if conflicts == CONFLICTS_MAX:
                    raise
            else:
                conflicts = 0
                merged = Merged(merged.files + len(group), merged.into + into)
        if merged.files and time.monotonic() - self._expired_at > EXPIRY_SECONDS:
            self._forget_old()
        return merged

    def _forget_old(self) -> None:
        try:
            self._expire()
        except ConflictError as error:
            logger.warning("old versions of %s stay for now: %s", self.place.uri, error)
        self._expired_at = time.monotonic()

    @property
    def _data(self) -> Folder:
        return self.folder.below(DATA)

    def _add(self, staged: Sequence[StagedFile], batch: Batch) -> None:
        for attempt in range(1, CONFLICTS_MAX + 1):
            change = Change(staged, batch=batch)
            if self.config.keys and staged:
                changed = self._filled if self.config.backfill else self._upserted
                change = changed(staged, batch)
            self._data.flush(file.staged for file in change.added)
            try:
                self._apply(change)
            except ConflictError as error:
                self._refresh()
                committed = self._still_held(batch.query) == batch.number
                if committed and isinstance(error, OutcomeUnknownError) and self._holds(change):
                    break
                if attempt == CONFLICTS_MAX or committed:
                    raise TableError(
                        f"another run writes to {self.place.uri}: wait for its end, or stop "
                        f"it ({error})"
                    ) from error
            else:
                break
        kept = {file.staged for file in change.added}
        inside = f"{batch.query}-{batch.number}"
        _empty(self._data.below(inside), {name.removeprefix(f"{inside}/") for name in kept})

    def _filled(self, staged: Sequence[StagedFile], batch: Batch) -> Change:
        """Write the rows of those keys that nothing newer has changed."""
        changed = self._changed(staged)
        deleted = DeletedKeys(self.state)
        deleted.note(f"batch-{batch.number:020}", changed.deleted())
        for keys in deleted.read():
            changed.leave_out(keys)
        for file in self._files():
            if changed.may_be_in(self._key_range(file)):
                changed.leave_out(changed.keys_in(self.folder, file.name))
        rows = changed.new_rows(self._schema())
        return Change(list(self._stager().write(rows, batch.query, batch.number)), batch=batch)

    def _changed(self, staged: Sequence[StagedFile]) -> ChangedKeys:
        obstacle = self._obstacle()
        if obstacle is not None:
            raise TableError(f"{self.place.uri} can't be changed by key: {obstacle}")
        names = [file.staged for file in sorted(staged, key=_place)]
        return ChangedKeys(self.folder.below(CHANGES), names, self.config.keys)

    def _upserted(self, staged: Sequence[StagedFile], batch: Batch) -> Change:
        """Write the batch's rows, and again those files that hold older ones of their keys."""
        changed = self._changed(staged)
        schema = self._schema()
        touched = [
            (file, kept)
            for file in self._files()
            if changed.may_be_in(self._key_range(file))
            and (kept := changed.kept(self.folder, file.name)) is not None
        ]
        rows = itertools.chain(
            *(
                filtered(merging.rows_of(self.folder, [file.name], schema), kept)
                for file, kept in touched
            ),
            changed.new_rows(schema),
        )
        pieces = list(self._stager().write(rows, batch.query, batch.number))
        return Change(pieces, [file for file, _ in touched], batch)

    def _rows_of(self, files: Sequence[LiveFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return merging.rows_of(self.folder, [file.name for file in files], schema)

    def _key_range(self, file: LiveFile) -> KeyRange | None:
        if file.name not in self._ranges:
            self._ranges[file.name] = key_range(self.folder, file.name, self.config.keys[0])
        return self._ranges[file.name]

    def _merge(self, group: Sequence[LiveFile], turn: Turn = nullcontext) -> int:
        """Have fewer files in place of some; return how many. Raises ConflictError."""
        schema = self._schema()
        rows = self._rows_of(group, schema)
        stager = replace(self._stager(), fields=parse_partitions(self._expressions(), schema))
        inside = f"merged-{uuid.uuid4().hex}"
        try:
            pieces = list(stager.write(rows, inside, 0))
        except OSError:
            # A disk that is full gets no fuller by what can't be ended.
            _empty(self._data.below(f"{inside}-0"), set())
            raise
        self._data.flush(piece.staged for piece in pieces)
        assert sum(piece.rows for piece in pieces) == sum(file.rows for file in group)
        try:
            self._put_in_place(pieces, group, schema, turn)
        except OutcomeUnknownError:
            raise  # They may be part of the table: where they are not, they go when they are old.
        except ConflictError:
            self._data.remove(piece.staged for piece in pieces)
            raise
        return len(pieces)

    def _put_in_place(
        self, pieces: Sequence[Piece], group: Sequence[LiveFile], schema: pa.Schema, turn: Turn
    ) -> None:
        """Commit a merge: a commit in between spoils it only where it took a file of the group.

        Raises ConflictError.
        """
        names = {file.name for file in group}
        error = ConflictError("a job wrote files anew that were being merged")
        for attempt in range(CONFLICTS_MAX):
            with turn():
                if attempt or turn is not nullcontext:
                    self._refresh()
                if isinstance(error, OutcomeUnknownError) and self._holds(Change(pieces)):
                    return
                there = [file for file in self._files() if file.name in names]
                if len(there) < len(group) or self._schema() != schema or self._obstacle():
                    break
                try:
                    self._apply(Change(pieces, there))
                except ConflictError as found:
                    error = error if isinstance(error, OutcomeUnknownError) else found
                else:
                    return
        raise error

    def _holds(self, change: Change) -> bool:
        """Whether the files that a commit was to add are part of the table."""
        names = {file.name for file in self._files()}
        return all(f"{DATA}/{file.staged}" in names for file in change.added)


_ELSEWHERE: Final = ("/", "file:", "s3:", "s3a:", "gs:", "abfs:", "abfss:", "az:")
"""How the names of files begin that do not lie below the table's folder."""


def _empty(folder: Folder, kept: AbstractSet[str]) -> None:
    """Remove what ended attempts left in a folder."""
    folder.remove(name for name, _ in folder.found() if name not in kept)


def _place(file: StagedFile) -> tuple[str, int, int, int]:
    return file.topic, file.partition, file.start, file.piece


def footer_of(file: StagedFile | Piece) -> pq.FileMetaData:
    """Return what Parquet says of a file."""
    return pq.read_metadata(pa.BufferReader(file.footer))
