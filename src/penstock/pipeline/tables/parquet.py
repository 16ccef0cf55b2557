"""A Parquet table that holds each row of a stream once, whatever ends a run and whenever.

Tasks write files into a staging folder under names that no other attempt shares. A batch is decided
by one record, made visible by an atomic link: it names the staged files and what they are to be
called. Then each file is renamed into the table. A run that is killed before the record leaves
nothing in the table; a run that is killed after it has the renames finished by the next one, which
Spark gives the same batch again. So any reader of Parquet sees every row once, without a manifest.

Names that begin with an underscore are left out by Spark and other readers of Parquet folders.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa

from penstock.pipeline.file_names import topic_in_name
from penstock.pipeline.tables.evolution import check_names, evolution
from penstock.pipeline.tables.interface import (
    Held,
    Merged,
    Snapshot,
    StagedFile,
    TableConfig,
    TableError,
    another_query,
    covered,
    differ,
    nothing_to_fill,
    older_checkpoint,
    other_parts,
    unknown_positions,
    unreadable,
)
from penstock.pipeline.tables.partitions import check_folders, hive_folder, parse_partitions
from penstock.pipeline.tables.staging import Stager
from penstock.pipeline.tables.storage import flush_folder, local_folder
from penstock.pipeline.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.pipeline.source.offsets import OffsetsJson

COMMITS_KEPT: Final = 100
"""As many as Spark keeps of its own batches."""


_PARTS: Final = b"penstock.partition_by"


class Decision(NamedTuple):
    """One batch's record."""

    query: str
    files: list[StagedFile]
    positions: OffsetsJson | None
    """Where the batch after it begins; earlier versions did not say."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises TableError."""
        try:
            record = json.loads(path.read_bytes())
            files = [StagedFile.from_record(file) for file in record["files"]]
            return cls(record["query"], files, record.get("positions"))
        except (ValueError, KeyError, TypeError) as error:
            raise unreadable("the record", str(path), error) from error


class ParquetTable(Table):
    """One table's folder."""

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        if self.place.local is None:
            raise TableError(
                f"{self.place.uri}: a plain folder of Parquet needs a disk that can rename files: "
                "use --table-format delta or iceberg, or a local folder"
            )
        self.path = self.place.local
        own = self.state / "backfill" if config.backfill else self.state
        self._staging = own / "staging"
        self._commits = own / "commits"

    def prepare(self, schema: pa.Schema) -> Stager:
        config = self.config
        if config.keys:
            raise TableError(
                f"{self.path} can't be changed by key, for nothing could replace rows of several "
                "Parquet files at once: use --table-format delta or iceberg"
            )
        mine = self.is_there()
        if config.backfill and not mine:
            raise nothing_to_fill(str(self.path))
        if not mine and self.path.is_dir() and any(self.path.glob("**/*.parquet")):
            raise TableError(
                f"{self.path} holds Parquet files that no pipeline of Penstock wrote: choose an "
                "empty folder"
            )
        check_names(schema, str(self.path))
        fields = parse_partitions(config.partition_by, schema)
        for folder in (self._staging, self._commits):
            folder.mkdir(parents=True, exist_ok=True)
        columns = self._columns(schema)
        staging = local_folder(self._staging)
        return Stager(staging, columns, config.compression, config.target_bytes, fields=fields)

    def _columns(self, wanted: pa.Schema) -> pa.Schema:
        """Return the table's columns with those that are new; readers need no record of them."""
        record = self._columns_record
        parts = json.dumps(self.config.partition_by).encode()
        wanted = wanted.with_metadata({_PARTS: parts})
        known = self._known_columns() if record.exists() else wanted
        if known.metadata[_PARTS] != parts:
            raise other_parts(str(self.path), json.loads(known.metadata[_PARTS]))
        change = evolution(known, wanted, widens=False, location=str(self.path))
        changed = {each.name: each for each in change.changed}
        kept = [changed.get(each.name, each) for each in known]
        columns = pa.schema([*kept, *change.added], known.metadata)
        if columns != known or not record.exists():
            draft = f"{uuid.uuid4().hex}.arrow"
            with local_folder(self._staging).writing(draft) as file:
                file.write(columns.serialize())
            (self._staging / draft).replace(record)
        return columns.remove_metadata()

    @property
    def _columns_record(self) -> Path:
        return self.state / "columns.arrow"

    def _known_columns(self) -> pa.Schema:
        try:
            return pa.ipc.read_schema(self._columns_record)
        except pa.ArrowInvalid as error:
            raise unreadable("the record of columns", str(self._columns_record), error) from error

    def commit(
        self,
        query: str,
        batch: int,
        files: Sequence[StagedFile],
        positions: OffsetsJson | None = None,
    ) -> int:
        record = self._decide(query, batch, files, positions)
        for file in record:
            self._publish(file)
        for folder in {self._target(file).parent for file in record}:
            flush_folder(folder)
        flush_folder(self.path)
        self._clear(batch)
        return sum(file.rows for file in record)

    def _decide(
        self,
        query: str,
        batch: int,
        files: Sequence[StagedFile],
        positions: OffsetsJson | None,
    ) -> list[StagedFile]:
        newest = max(self._commits.glob("*.json"), default=None)
        if newest is not None and Decision.read(newest).query != query:
            raise another_query(str(self.path))
        path = self._commits / f"{batch:020d}.json"
        if not path.exists():
            if newest is not None and newest.name > path.name:
                raise older_checkpoint(str(self.path), batch)
            check_folders(self.config.partition_by, (file.values for file in files))
            files = [replace(file, again=self._has(file)) for file in files]
            record = {"query": query, "files": [_recorded(file) for file in files]}
            self._write_record(path, record | {"positions": positions})
        decided = Decision.read(path)
        if covered(decided.files) != covered(files) or differ(decided.positions, positions):
            raise older_checkpoint(str(self.path), batch)
        return decided.files

    def is_there(self) -> bool:
        return (self.state / "commits").is_dir()

    def held(self, query: str) -> Held | None:
        newest = max(self._commits.glob("*.json"), default=None)
        if newest is None:
            return None
        decision = Decision.read(newest)
        return Held(int(newest.stem), decision.positions) if decision.query == query else None

    def missing(self) -> list[str]:
        if self._columns_record.exists():
            self._known_columns()
        decisions = map(Decision.read, self._commits.glob("*.json"))
        named = (file for each in decisions for file in each.files if file.staged)
        # A run that was killed may have decided a batch and not renamed its files.
        gone = (
            self._target(file)
            for file in named
            if not self._target(file).exists() and not (self._staging / file.staged).exists()
        )
        return sorted(str(path.relative_to(self.path)) for path in gone)

    def snapshot(self) -> Snapshot | None:
        """See `Table.snapshot`: files appear one by one, so those of a batch count once all have.

        Batches before the newest one are whole before the folder is looked at, and what has
        appeared in it is of a batch that was decided before the decisions are looked at again.
        """
        newest = max(self._commits.glob("*.json"), default=None)
        if newest is None:
            return None
        found = set(self._found())
        decisions = sorted(self._commits.glob("*.json"))
        whole = max((each for each in decisions if each < newest), default=None)
        pending: set[Path] = set()
        for path in (each for each in decisions if each >= newest):
            pending |= {self._target(file) for file in Decision.read(path).files if file.staged}
            if pending <= found:
                whole, pending = path, set()
        if whole is None:
            return None
        positions = Decision.read(whole).positions
        if positions is None:
            raise unknown_positions(str(self.path))
        schema = self._known_columns().remove_metadata()
        return Snapshot(tuple(map(str, sorted(found - pending))), schema, positions)

    def compact(self) -> Merged:
        """Refuse: readers that list a folder would see rows twice, or miss some, meanwhile."""
        raise TableError(
            f"files of {self.path} can't be merged, for nothing could replace several Parquet "
            "files at once for those who list a folder: use --table-format delta or iceberg"
        )

    def _found(self) -> Iterator[Path]:
        """Yield the files that readers of the folder see."""
        for folder, inside, names in os.walk(self.path):
            inside[:] = [name for name in inside if not name.startswith(("_", "."))]
            for name in names:
                if name.endswith(".parquet") and not name.startswith(("_", ".")):
                    yield Path(folder, name)

    def _has(self, file: StagedFile) -> bool:
        return self._target(file).exists()

    def _target(self, file: StagedFile) -> Path:
        return self.path / hive_folder(self.config.partition_by, file.values) / _name(file)

    def _write_record(self, path: Path, record: dict[str, Any]) -> None:
        draft = self._staging / f"{uuid.uuid4().hex}.json"
        with draft.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, never replaces what another run decided.
        os.link(draft, path)
        draft.unlink()
        flush_folder(self._commits)

    def _publish(self, file: StagedFile) -> None:
        target = self._target(file)
        if not file.staged or target.exists():
            return
        target.parent.mkdir(exist_ok=True, parents=True)
        try:
            (self._staging / file.staged).rename(target)
        except FileNotFoundError:
            raise TableError(
                f"{target} is missing though its batch was committed: it was removed by hand, and "
                "its rows can be had again only by a new table from a new checkpoint"
            ) from None

    def _clear(self, batch: int) -> None:
        """Remove what ended attempts left, and the oldest records."""
        for leftover in self._staging.iterdir():
            leftover.unlink(missing_ok=True)
        for record in sorted(self._commits.glob("*.json")):
            if int(record.stem) <= batch - COMMITS_KEPT:
                record.unlink(missing_ok=True)


def _name(file: StagedFile) -> str:
    """Return the name of a file in the table."""
    rest = f"-{file.partition:05}-{file.start:020}-{file.end:020}"
    if file.piece:
        rest += f"-{file.piece}"
    rest += f"-{file.staged}" if file.again else ".parquet"
    return f"part-{topic_in_name(file.topic, len('part-') + len(rest))}{rest}"


def _recorded(file: StagedFile) -> dict[str, Any]:
    return {name: value for name, value in asdict(file).items() if name != "footer"}
