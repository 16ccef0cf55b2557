"""A Delta table: each batch is one commit to its log, with the query's transaction number."""

from __future__ import annotations

import datetime as dt
import json
import os
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock import wall_clock
from penstock.pipeline.tables.commits import (
    Batch,
    Change,
    ConflictError,
    LiveFile,
    OutcomeUnknownError,
)
from penstock.pipeline.tables.interface import (
    Offsets,
    TableConfig,
    TableError,
    another_query,
    nothing_to_fill,
    unreadable,
)
from penstock.pipeline.tables.lake import DATA, LakeTable, footer_of
from penstock.pipeline.tables.storage import flush_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow.parquet as pq

    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.tables.evolution import Evolution
    from penstock.pipeline.tables.interface import StagedFile
    from penstock.pipeline.tables.partitions import PartitionField
    from penstock.pipeline.tables.staging import Piece

try:
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
    from deltalake.transaction import AddAction, RemoveAction
except ModuleNotFoundError as missing:
    raise TableError(f"{missing}: pip install 'penstock-broker[tables]'") from missing

QUERY: Final = "penstock.query"
"""The property of the table that names the query that writes to it; each commit says it too."""

RESTORE: Final = "RESTORE"
"""The operation by which any engine makes an older version of a table its newest one."""

NEWEST_COMMITS: Final = 100
"""In which a batch is looked for before all are read that the log has."""

STATISTICS_LENGTH_MAX: Final = 64
"""Text that is longer has no statistics: it would fill the log."""


class DeltaLakeTable(LakeTable):
    """One table in a folder; its log says which files are part of it."""

    widens = False
    stores_derived = True

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        self._opened: DeltaTable | None = None
        self._walked: dict[str, int] = {}

    def _open(self, columns: pa.Schema, fields: tuple[PartitionField, ...]) -> None:
        try:
            self._opened = self._load()
        except TableNotFoundError:
            if self.place.holds_parquet():
                raise TableError(
                    f"{self.place.uri} holds Parquet files and is no Delta table: choose an empty "
                    "folder"
                ) from None
            self._opened = self._create(columns, [field.name for field in fields])

    def _load(self) -> DeltaTable:
        try:
            return DeltaTable(self.place.uri, storage_options=self.place.delta_options())
        except TableNotFoundError:
            raise
        except DeltaError as error:
            raise unreadable("the log", self.place.uri, error) from error

    def _create(self, columns: pa.Schema, parts: list[str]) -> DeltaTable:
        schema = delta_schema(columns)
        options = self.place.delta_options()
        try:
            return DeltaTable.create(
                self.place.uri, schema, partition_by=parts, storage_options=options
            )
        except DeltaError as error:
            raise TableError(f"{self.place.uri} can't become a Delta table: {error}") from error

    def _evolve(self, change: Evolution) -> None:
        try:
            # It merges what is nested in columns that are there.
            fields = delta_schema(pa.schema([*change.added, *change.changed])).fields
            self._table.alter.add_columns(fields)
        except CommitFailedError as error:
            raise ConflictError(str(error)) from error
        self._refresh()

    def _parts(self) -> list[str]:
        return list(self._table.metadata().partition_columns)

    @property
    def _table(self) -> DeltaTable:
        if self._opened is None:
            self._opened = self._load()
        return self._opened

    def _schema(self) -> pa.Schema:
        return pa.schema(self._table.schema().to_arrow())

    def _refresh(self) -> None:
        self._table.update_incremental()

    def is_there(self) -> bool:
        return DeltaTable.is_deltatable(self.place.uri, self.place.delta_options())

    def _owner(self) -> str | None:
        return self._table.metadata().configuration.get(QUERY)

    def _own(self, query: str) -> None:
        owner = self._owner()
        if self.config.backfill:
            if owner is None:
                raise nothing_to_fill(self.place.uri)
            return
        if owner is None:
            self._table.alter.set_table_properties({QUERY: query}, raise_if_not_exists=False)
            self._refresh()
        elif owner != query:
            raise another_query(self.place.uri)

    def _noted(self, query: str) -> int | None:
        return self._table.transaction_version(query)

    def _committed(self, query: str) -> int | None:
        noted = self._noted(query)
        if noted is None or not self._restored(query):
            return noted
        commit = next(self._commits_of(query), None)
        return None if commit is None else int(commit["penstock.batch"])

    def _restored(self, query: str) -> list[dict[str, Any]]:
        """Return what came after the newest batch of a query, newest first, RESTOREs among it.

        Nothing where there was no RESTORE.
        """
        version, known = self._table.version(), self._walked.get(query, -1)
        if version == known:
            return []
        # The log may be read beyond the version that is open, so its newest commits are later ones.
        for looked_at in (max(version - known, 1), NEWEST_COMMITS, None):
            commits = self._table.history(looked_at)
            since = list(takewhile(lambda each: _is_later(each, query, known), commits))
            if len(since) < len(commits):
                break
        if any(each.get("operation") == RESTORE for each in since):
            return since
        self._walked[query] = version
        return []

    def lacks_filled(self, query: str) -> bool:
        since = self._restored(query)
        held = {each["version"] for each in self._without_restored(since)}
        return any(QUERY in each and each["version"] not in held for each in since)

    def _offsets(self, query: str, batch: int) -> tuple[Offsets, ...] | None:
        commit = self._commit_of(query, batch)
        if commit is None:
            return None
        return tuple(Offsets(*each) for each in json.loads(commit["penstock.offsets"]))

    def _positions(self, query: str, batch: int) -> OffsetsJson | None:
        commit = self._commit_of(query, batch) or {}
        positions: OffsetsJson | None = json.loads(commit.get("penstock.positions", "null"))
        return positions

    def _commit_of(self, query: str, batch: int) -> dict[str, Any] | None:
        """Return what the log says of a batch's commit; it may be read beyond the version open."""
        commits = self._commits_of(query)
        return next((each for each in commits if each["penstock.batch"] == batch), None)

    def _commits_of(self, query: str) -> Iterator[dict[str, Any]]:
        """Yield what the log says of a query's batches that the table holds, newest first."""
        seen = 0
        for looked_at in (NEWEST_COMMITS, None):
            commits = self._table.history(looked_at)
            for commit in islice(self._without_restored(commits), seen, None):
                seen += 1
                if commit.get(QUERY) == query:
                    yield commit

    def _without_restored(self, commits: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield those of some commits, newest first, that are behind no RESTORE."""
        newest: int | None = None
        for commit in commits:
            if newest is not None and commit["version"] > newest:
                continue
            yield commit
            if commit.get("operation") == RESTORE:
                newest = self._restored_to(commit)

    def _restored_to(self, restore: dict[str, Any]) -> int:
        """Return the version whose files a RESTORE made the table's own; -1 where none is left."""
        version = str(restore.get("operationParameters", {}).get("version"))
        if version.isdecimal():
            return int(version)
        # Engines say a time in different forms.
        files = self._files_at(restore["version"])
        earlier = range(restore["version"] - 1, -1, -1)
        return next((each for each in earlier if self._files_at(each) == files), -1)

    def _files_at(self, version: int) -> set[str] | None:
        """Return the files of a version; None of one that the log does not have any more."""
        try:
            options = self.place.delta_options()
            then = DeltaTable(self.place.uri, version=version, storage_options=options)
        except DeltaError:
            return None
        return set(then.file_uris())

    def _files(self) -> list[LiveFile]:
        parts = self._parts()
        return [
            LiveFile(
                each["path"],
                each["size_bytes"],
                each["num_records"],
                tuple(_part(each["partition"][name]) for name in parts),
            )
            for each in pa.table(self._table.get_add_actions()).to_pylist()
        ]

    def _obstacle(self) -> str | None:
        if "deletionVectors" in (self._table.protocol().reader_features or []):
            return "it has deletion vectors, which are left to the engine that made them"
        return None

    def _apply(self, change: Change) -> None:
        now = wall_clock.now_ms()
        rows_change = change.batch is not None
        parts = self._parts()
        actions: list[AddAction | RemoveAction] = [
            _added(file, parts, now, rows_change) for file in change.added
        ]
        actions += [
            RemoveAction(
                file.name, rows_change, now, file.size, dict(zip(parts, file.values, strict=True))
            )
            for file in change.removed
        ]
        try:
            self._table.create_write_transaction(
                actions,
                "append",
                self._table.schema(),
                partition_by=parts,
                commit_properties=_properties(change.batch),
            )
        except CommitFailedError as error:
            # An object store may have been asked twice, where its first answer was lost.
            local = self.place.local is not None
            raise (ConflictError if local else OutcomeUnknownError)(str(error)) from error
        except DeltaError as error:
            raise TableError(f"{self.place.uri} can't be written: {error}") from error
        self._refresh()
        self._flush_log()

    def _flush_log(self) -> None:
        """Have the newest commit survive a power cut, before Spark notes that it is done."""
        if self.place.local is None:
            return
        name = f"{self._table.version():020}.json"
        log = self.place.local / "_delta_log"
        with (log / name).open("rb") as file:
            os.fsync(file.fileno())
        flush_folder(log)

    def _expire(self) -> None:
        try:
            # Delta's own bound: a week.
            self._table.vacuum(dry_run=False, full=True)
        except CommitFailedError as error:
            raise ConflictError(str(error)) from error
        self._refresh()


def _is_later(commit: dict[str, Any], query: str, version: int) -> bool:
    """Whether a commit is behind a version, and is no batch of a query."""
    return bool(commit["version"] > version and commit.get(QUERY) != query)


def _properties(batch: Batch | None) -> CommitProperties:
    # deltalake would try again by itself, and takes it for no conflict that a file which this
    # commit replaces was merged into another one meanwhile: its rows would be there twice.
    if batch is None:
        return CommitProperties(max_commit_retries=0)
    return CommitProperties(
        max_commit_retries=0,
        app_transactions=[Transaction(batch.query, batch.number)],
        custom_metadata={
            "penstock.query": batch.query,
            "penstock.batch": batch.number,
            "penstock.offsets": json.dumps(batch.offsets),
            "penstock.positions": json.dumps(batch.positions),
        },
    )


def _added(file: StagedFile | Piece, parts: list[str], now: int, rows_change: bool) -> AddAction:
    statistics = json.dumps(_statistics(footer_of(file)))
    values = dict(zip(parts, file.values, strict=True))
    return AddAction(f"{DATA}/{file.staged}", file.size, values, now, rows_change, statistics)


def _part(value: Any) -> str | None:
    """Return the value of a part as it is staged."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def delta_schema(columns: pa.Schema) -> Schema:
    """Return columns as Delta knows them; raises TableError where it has no such types."""
    try:
        return Schema.from_arrow(columns)
    except Exception as error:  # deltalake raises bare ones
        raise TableError(f"a Delta table can't have these columns: {error}") from error


def _statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    """Return what Delta's log says of a file: rows, and of each column its nulls and its ends."""
    nulls: dict[str, int] = {}
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    for index in range(footer.num_columns):
        columns = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        name = columns[0].path_in_schema
        found = [column.statistics for column in columns]
        if "." in name or any(each is None or not each.has_null_count for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        ends = [each for each in found if each.has_min_max]
        if ends and len(ends) == sum(each.num_values > 0 for each in found):
            low, high = _text(min(e.min for e in ends)), _text(max(e.max for e in ends))
            if low is not None and high is not None:
                lowest[name], highest[name] = low, high
    return {
        "numRecords": footer.num_rows,
        "minValues": lowest,
        "maxValues": highest,
        "nullCount": nulls,
    }


def _text(value: Any) -> Any:
    """Return a value in the form that Delta's log has for it; None where it has none.

    Nor has a float: Parquet leaves NaN out of a file's ends, and to Delta it is the highest value.
    """
    text: Any
    match value:
        case bool() | bytes():
            text = None
        case int():
            text = value
        case dt.datetime():
            text = (value.astimezone(dt.UTC) if value.tzinfo else value).isoformat(
                timespec="microseconds"
            )
        case dt.date():
            text = value.isoformat()
        case str():
            text = value if len(value) <= STATISTICS_LENGTH_MAX else None
        case _:
            text = None
    return text
