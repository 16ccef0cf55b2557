"""An Iceberg table: each batch is one snapshot, and a property of the table names the batch.

A property and not the snapshot's summary decides, for snapshots expire and other engines add some;
the summary says the same to people. Where no catalogue is given, it is a SQLite file in the table's
folder, and `metadata/version-hint.text` names the newest metadata for readers without a catalogue.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.pipeline.tables.columns import small_types
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
    state_folder,
    unreadable,
)
from penstock.pipeline.tables.lake import DATA, LakeTable, footer_of
from penstock.pipeline.tables.snapshots import current_snapshots, is_held

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table import Table as Opened

    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.tables.evolution import Evolution
    from penstock.pipeline.tables.interface import StagedFile, Values
    from penstock.pipeline.tables.partitions import PartitionField
    from penstock.pipeline.tables.staging import Piece

try:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.conversions import partition_to_py
    from pyiceberg.exceptions import (
        CommitFailedException,
        CommitStateUnknownException,
        NoSuchTableError,
        ValidationError,
        ValidationException,
    )
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
    from pyiceberg.typedef import Record
    from pyiceberg.types import DateType, PrimitiveType
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError
except ModuleNotFoundError as missing:
    raise TableError(f"{missing}: pip install 'penstock-broker[tables]'") from missing

QUERY: Final = "penstock.query"
BATCH: Final = "penstock.batch"
OFFSETS: Final = "penstock.offsets"
POSITIONS: Final = "penstock.positions"
SNAPSHOT: Final = "penstock.snapshot"
SEQUENCE: Final = "penstock.sequence"
"""The newest batch, and the snapshot that held it first, with its number in the order of all:
properties of the table."""

SNAPSHOTS_KEPT: Final = timedelta(days=1)
"""How long a reader may go on with the snapshot that it began with. All of them are in each version
of the table's metadata, so a week of small batches would slow each commit down."""

CREATED_WITH: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Properties of a new table: what its metadata was before goes by itself."""

HINT: Final = "metadata/version-hint.text"

_EPOCH: Final = date(1970, 1, 1)

_PASSWORD: Final = re.compile(r"//[^/\s]*@")
"""A name and a password in a URL, which no message repeats."""

FILES: Final = "penstock.pipeline.tables.durable_io.DurableFileIO"


class IcebergTable(LakeTable):
    """One table in a folder, and its catalogue."""

    widens = True
    stores_derived = False

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        self._loaded: Opened | None = None
        self._known: dict[str, list[DataFile]] = {}

    def _open(self, columns: pa.Schema, fields: tuple[PartitionField, ...]) -> None:
        try:
            self._load()
        except NoSuchTableError:
            if self.place.holds_parquet():
                raise TableError(
                    f"{self.place.uri} holds Parquet files and is no Iceberg table of this "
                    "catalogue: choose an empty folder"
                ) from None
            self._loaded = self._create(columns, fields)
        if self._table.location().rstrip("/") != self.place.uri:
            raise TableError(
                f"{'.'.join(self._identifier)} of the catalogue lies in "
                f"{self._table.location()} and not in {self.place.uri}: name the table otherwise"
            )
        self._write_hint()  # A run may have ended before it did.

    def _evolve(self, change: Evolution) -> None:
        with _overtaken(), self._table.update_schema() as update:
            try:
                update.union_by_name(pa.schema([*change.added, *change.changed]))
            except ValueError as error:
                # It leaves `value` and `element` out of paths, so `a.value.b` may be two fields.
                raise TableError(
                    f"pyiceberg can't tell a new field of {self.place.uri} from another one "
                    f"({error}): name it otherwise"
                ) from error
        self._write_hint()

    def _parts(self) -> list[str]:
        return [field.name for field in self._table.spec().fields]

    def _expressions(self) -> list[str]:
        schema = self._table.schema()
        return [
            f"{field.transform}({schema.find_column_name(field.source_id)})"
            for field in self._table.spec().fields
        ]

    @property
    def _identifier(self) -> tuple[str, str]:
        return "default", self.place.name

    @cached_property
    def _catalog(self) -> Catalog:
        """Return the catalogue, by what pyiceberg's own settings say of one named penstock too."""
        uri = self._catalog_uri()
        store = self.place.store
        properties = {"py-io-impl": FILES, "uri": uri, **(store.iceberg() if store else {})}
        is_rest = uri.startswith(("http://", "https://"))
        if not is_rest:
            properties["warehouse"] = self.place.uri
        if self.config.catalog is None and self.place.local is not None:
            state_folder(self.place.local).mkdir(parents=True, exist_ok=True)
        with self._asking_catalogue():
            return load_catalog("penstock", type="rest" if is_rest else "sql", **properties)

    def _catalog_uri(self) -> str:
        if self.config.catalog is not None:
            return self.config.catalog
        if self.place.local is None:
            raise TableError(
                f"{self.place.uri} is in an object store, where no catalogue can be kept as a "
                "file: name one with --catalog, by its URL or as a database"
            )
        return f"sqlite:///{state_folder(self.place.local)}/catalog.db"

    @contextmanager
    def _asking_catalogue(self) -> Iterator[None]:
        """Raise TableError for a catalogue that is away, asks for more, or is none."""
        try:
            yield
        except NoSuchTableError:
            raise
        except (FileNotFoundError, ValidationError) as error:
            # pyiceberg reads with it the file that the catalogue names.
            raise unreadable("the newest metadata", self.place.uri, error) from error
        except Exception as error:  # each kind of catalogue has its own
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            words = (
                f"Iceberg's catalogue {self._catalog_uri()} can't be used: {text}. "
                "--catalog has to be its URL; PYICEBERG_CATALOG__PENSTOCK__TOKEN, __CREDENTIAL and "
                "__WAREHOUSE of the environment say what else it asks for"
            )
            raise TableError(_PASSWORD.sub("//***@", words)) from error

    def _create(self, columns: pa.Schema, fields: tuple[PartitionField, ...]) -> Opened:
        catalog = self._catalog
        with self._asking_catalogue():
            catalog.create_namespace_if_not_exists(self._identifier[:1])
        try:
            transaction = catalog.create_table_transaction(
                self._identifier, columns, location=self.place.uri, properties=CREATED_WITH
            )
        except Exception as error:  # pyiceberg raises many kinds
            raise TableError(f"an Iceberg table can't have these columns: {error}") from error
        with transaction, transaction.update_spec() as spec:
            for field in fields:
                spec.add_field(field.column, field.transform.value, field.name)
        return catalog.load_table(self._identifier)

    @property
    def _table(self) -> Opened:
        return self._load() if self._loaded is None else self._loaded

    def _load(self) -> Opened:
        """Load the newest metadata. Raises NoSuchTableError and TableError."""
        catalog = self._catalog
        with self._asking_catalogue():
            self._loaded = catalog.load_table(self._identifier)
        return self._loaded

    def _schema(self) -> pa.Schema:
        return small_types(self._table.schema().as_arrow())

    def _refresh(self) -> None:
        with self._asking_catalogue():
            self._table.refresh()

    def is_there(self) -> bool:
        file = self._catalog_uri().removeprefix("sqlite:///")
        if self.config.catalog is None and not Path(file).exists():
            return False  # To ask for it would make it.
        try:
            self._load()
        except NoSuchTableError:
            return False
        return True

    def _owner(self) -> str | None:
        return self._table.properties.get(self._key(QUERY))

    def _key(self, name: str) -> str:
        """Return a property of the query that writes, or that of a backfill beside it."""
        return _filled(name) if self.config.backfill else name

    def _own(self, query: str) -> None:
        backfill = self.config.backfill
        if backfill and self._table.properties.get(QUERY) is None:
            raise nothing_to_fill(self.place.uri)
        owner = self._owner()
        if owner is None or (backfill and owner != query):
            with self._table.transaction() as transaction:
                transaction.set_properties({self._key(QUERY): query})
                if self._key(BATCH) in self._table.properties:
                    transaction.remove_properties(self._key(BATCH))
        elif owner != query:
            raise another_query(self.place.uri)

    def _noted(self, query: str) -> int | None:
        batch = self._table.properties.get(self._key(BATCH))
        return None if batch is None or self._owner() != query else int(batch)

    def _committed(self, query: str) -> int | None:
        noted = self._noted(query)
        if noted is None or self._holds_newest():
            return noted
        said = next(self._summaries_of(query), None)
        return None if said is None else int(said[BATCH])

    def _holds_newest(self) -> bool:
        """Whether the newest batch's snapshot is the current one or before it, as far as known."""
        return is_held(self._table, self._key(SNAPSHOT), self._key(SEQUENCE))

    def lacks_filled(self, query: str) -> bool:
        properties, names = self._table.properties, (_filled(SNAPSHOT), _filled(SEQUENCE))
        last, filled = (int(properties.get(each, 0)) for each in (SEQUENCE, names[1]))
        is_newer = self._noted(query) is not None and filled > last > 0
        return is_newer and not is_held(self._table, *names)

    def _summaries_of(self, query: str) -> Iterator[Mapping[str, str]]:
        for snapshot in current_snapshots(self._table):
            if snapshot.summary is not None and snapshot.summary.get(QUERY) == query:
                yield snapshot.summary

    def _offsets(self, query: str, batch: int) -> tuple[Offsets, ...] | None:
        offsets = self._table.properties[self._key(OFFSETS)]
        if batch != self._noted(query):
            said = self._summaries_of(query)
            offsets = next(each[OFFSETS] for each in said if int(each[BATCH]) == batch)
        return tuple(Offsets(*each) for each in json.loads(offsets))

    def _positions(self, query: str, batch: int) -> OffsetsJson | None:
        if batch != self._noted(query):
            return None
        positions: OffsetsJson | None = json.loads(
            self._table.properties.get(self._key(POSITIONS), "null")
        )
        return positions

    def _files(self) -> list[LiveFile]:
        manifests = self._manifests()
        # A manifest never changes, so each is read once.
        self._known = {each.manifest_path: self._data_files(each) for each in manifests}
        return [self._live(file) for files in self._known.values() for file in files]

    def _manifests(self) -> list[ManifestFile]:
        snapshot = self._table.current_snapshot()
        with self._reading_manifests():
            return [] if snapshot is None else snapshot.manifests(self._table.io)

    @contextmanager
    def _reading_manifests(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, FileNotFoundError, ValueError) as error:  # as pyiceberg reads Avro
            raise unreadable("a manifest", self.place.uri, error) from error

    def _obstacle(self) -> str | None:
        if any(each.content is ManifestContent.DELETES for each in self._manifests()):
            return "it has delete files of another engine, which has to write its data anew first"
        return None

    def _data_files(self, manifest: ManifestFile) -> list[DataFile]:
        known = self._known.get(manifest.manifest_path)
        if known is not None:
            return known
        with self._reading_manifests():
            entries = manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
            return [entry.data_file for entry in entries]

    def _live(self, file: DataFile) -> LiveFile:
        name = file.file_path.removeprefix(f"{self.place.uri}/")
        values = tuple(self._part(file, index) for index in range(len(self._table.spec().fields)))
        return LiveFile(name, file.file_size_in_bytes, file.record_count, values, file)

    def _part(self, file: DataFile, index: int) -> str | None:
        value = file.partition[index]
        return None if value is None else str(value)

    def _apply(self, change: Change) -> None:
        summary = _properties(change.batch)
        transaction = self._table.transaction()
        before = self._table.current_snapshot()
        snapshot = None if before is None else before.snapshot_id
        if change.added or change.removed:
            update = transaction.update_snapshot(snapshot_properties=summary)
            with update.overwrite() if change.removed else update.merge_append() as files:
                for added in change.added:
                    files.append_data_file(self._data_file(added))
                for removed in change.removed:
                    files.delete_data_file(removed.entry)
            snapshot = files.snapshot_id
        if change.batch is not None:
            # Not in the summary, of which there is one for each snapshot.
            said = summary | {POSITIONS: json.dumps(change.batch.positions)}
            made = transaction.table_metadata.snapshot_by_id(snapshot) if snapshot else None
            if made is not None:
                said[SNAPSHOT] = str(made.snapshot_id)
                said[SEQUENCE] = str(made.sequence_number or 0)
            transaction.set_properties({self._key(name): value for name, value in said.items()})
        # What somebody else committed meanwhile may be this very batch: nothing is tried again.
        transaction._snapshot_producers.clear()
        try:
            with _overtaken():
                transaction.commit_transaction()
        except (CommitStateUnknownException, RequestException) as error:
            self._refresh()
            self._write_hint()
            raise OutcomeUnknownError(str(error)) from error
        self._write_hint()

    def _data_file(self, file: StagedFile | Piece) -> DataFile:
        schema = self._table.schema()
        statistics = data_file_statistics_from_parquet_metadata(
            footer_of(file),
            compute_statistics_plan(schema, self._table.properties),
            parquet_path_to_id_mapping(schema),
        )
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self.place.uri}/{DATA}/{file.staged}",
            file_format=FileFormat.PARQUET,
            partition=Record(*self._partition(file.values)),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            spec_id=self._table.spec().spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _partition(self, values: Values) -> list[Any]:
        """Return the values of a part as Iceberg keeps them: days and hours are numbers."""
        schema = self._table.schema()
        pairs = zip(self._table.spec().fields, values, strict=True)
        return [
            None if value is None else _kept(value, str(field.transform), schema, field.source_id)
            for field, value in pairs
        ]

    def _write_hint(self) -> None:
        """Name the newest metadata for readers that know only the folder.

        Who commits at the same moment does so too: the last to write has looked after it.
        """
        hinted = None
        while (newest := self._table.metadata_location) != hinted:
            name = newest.rpartition("/")[2].removesuffix(".metadata.json")
            self.folder.replace(HINT, name.encode())
            hinted = newest
            self._refresh()

    def _expire(self) -> None:
        oldest = datetime.now(UTC) - SNAPSHOTS_KEPT
        with _overtaken():
            self._table.maintenance.expire_snapshots().older_than(oldest).commit()
        self._write_hint()
        named = {f"{DATA}/{name}" for name in self._named_data()} | self._named_metadata()
        for folder, endings in ((DATA, (".parquet",)), ("metadata", (".avro",))):
            found = [
                f"{folder}/{each.name}"
                for each in self.folder.below(folder).found()
                if each.name.endswith(endings) and each.modified < oldest
            ]
            self.folder.remove(name for name in found if name not in named)

    def _named_data(self) -> set[str]:
        """Return the data files of all snapshots, below the folder of such files."""
        manifests = {
            each.manifest_path: each
            for snapshot in self._table.snapshots()
            for each in snapshot.manifests(self._table.io)
        }
        files = (file for each in manifests.values() for file in self._data_files(each))
        return {self._live(file).name.removeprefix(f"{DATA}/") for file in files}

    def _named_metadata(self) -> set[str]:
        """Return the manifests of all snapshots, and their lists."""
        paths = [snapshot.manifest_list for snapshot in self._table.snapshots()]
        paths += [
            each.manifest_path
            for snapshot in self._table.snapshots()
            for each in snapshot.manifests(self._table.io)
        ]
        return {path.removeprefix(f"{self.place.uri}/") for path in paths}


@contextmanager
def _overtaken() -> Iterator[None]:
    """Raise ConflictError where somebody else has changed the table since it was looked at.

    Raises TableError where a catalogue's database takes nothing.
    """
    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise ConflictError(str(error)) from error
    except SQLAlchemyError as error:
        # If it was committed after all, that is seen when the batch is done again.
        why = str(error).partition("\n")[0]
        raise TableError(f"the database of Iceberg's catalogue refuses a commit: {why}") from error


def _filled(name: str) -> str:
    """Return what a property of the query that writes is called of a backfill beside it."""
    return name.replace(".", ".backfill.")


def _properties(batch: Batch | None) -> dict[str, str]:
    if batch is None:
        return {}
    offsets = json.dumps(batch.offsets)
    return {QUERY: batch.query, BATCH: str(batch.number), OFFSETS: offsets}


def _kept(value: str, transform: str, schema: IcebergSchema, source: int) -> Any:
    kind = schema.find_type(source)
    assert isinstance(kind, PrimitiveType), "only those name parts"
    if transform == "day" or isinstance(kind, DateType):
        return (date.fromisoformat(value) - _EPOCH).days
    if transform == "hour":
        day, hour = date.fromisoformat(value[:10]), int(value[11:])
        return (day - _EPOCH).days * 24 + hour
    return partition_to_py(kind, value)
