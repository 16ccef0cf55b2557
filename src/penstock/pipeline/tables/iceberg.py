"""An Iceberg table: each batch is one snapshot, and a property of the table names the batch.

A property and not the snapshot's summary decides, for snapshots expire and other engines add some;
the summary says the same to people. Where no catalogue is given, it is a SQLite file in the table's
folder, and `metadata/version-hint.text` names the newest metadata for readers without a catalogue.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.pipeline.tables.interface import Offsets, TableConfig, TableError, another_query
from penstock.pipeline.tables.lake import (
    DATA,
    Batch,
    Change,
    ConflictError,
    LakeTable,
    LiveFile,
    footer_of,
)
from penstock.pipeline.tables.locks import locked
from penstock.pipeline.tables.staging import Stager
from penstock.pipeline.tables.storage import local_folder

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table as Opened

    from penstock.pipeline.tables.interface import StagedFile
    from penstock.pipeline.tables.staging import Piece

try:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import (
        CommitFailedException,
        NoSuchTableError,
        ValidationException,
    )
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import ListType, MapType, NestedField, StructType
except ModuleNotFoundError as missing:
    raise TableError(f"{missing}: pip install 'penstock-broker[tables]'") from missing

QUERY: Final = "penstock.query"
BATCH: Final = "penstock.batch"
OFFSETS: Final = "penstock.offsets"
"""The newest batch that the table holds: properties of the table."""

SNAPSHOTS_KEPT: Final = timedelta(days=1)
"""How long a reader may go on with the snapshot that it began with. All of them are in each version
of the table's metadata, so a week of small batches would slow each commit down."""

CREATED_WITH: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Properties of a new table: what its metadata was before goes by itself."""

FILES: Final = "penstock.pipeline.tables.durable_io.DurableFileIO"


class IcebergTable(LakeTable):
    """One table in a folder, and its catalogue."""

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        self._path = Path(config.location).absolute()
        self.folder = local_folder(self._path)
        self._loaded: Opened | None = None
        self._known: dict[str, list[DataFile]] = {}

    @property
    def checkpoint(self) -> Path:
        return self._path / "_checkpoint"

    @property
    def spark_log(self) -> Path:
        return self._path / "_penstock" / "spark.log"

    def only_writer(self) -> AbstractContextManager[None]:
        return locked(self._path / "_penstock" / "lock", str(self._path))

    def prepare(self, schema: pa.Schema) -> Stager:
        catalog = self._catalog()
        try:
            self._loaded = catalog.load_table(self._identifier)
        except NoSuchTableError:
            self._refuse_other_files()
            self._loaded = self._create(catalog, schema)
        return self._stager(schema)

    @property
    def _identifier(self) -> tuple[str, str]:
        return "default", self._path.name

    def _catalog(self) -> Catalog:
        (self._path / "_penstock").mkdir(parents=True, exist_ok=True)
        return load_catalog(
            "penstock",
            type="sql",
            uri=f"sqlite:///{self._path}/_penstock/catalog.db",
            warehouse=str(self._path),
            **{"py-io-impl": FILES},
        )

    def _create(self, catalog: Catalog, schema: pa.Schema) -> Opened:
        catalog.create_namespace_if_not_exists(self._identifier[:1])
        created = catalog.create_table_if_not_exists(
            self._identifier, schema, location=str(self._path), properties=CREATED_WITH
        )
        self._write_hint(created)
        return created

    def _refuse_other_files(self) -> None:
        if any(self._path.glob("**/*.parquet")):
            raise TableError(
                f"{self._path} holds Parquet files and is no Iceberg table of this catalogue: "
                "choose an empty folder"
            )

    def _stager(self, schema: pa.Schema) -> Stager:
        config = self.config
        return Stager(
            self.folder.below(DATA),
            with_ids(schema, self._table.schema()),
            config.compression,
            config.target_bytes,
            by_batch=True,
        )

    @property
    def _table(self) -> Opened:
        if self._loaded is None:
            self._loaded = self._catalog().load_table(self._identifier)
        return self._loaded

    def _schema(self) -> pa.Schema:
        return small_types(self._table.schema().as_arrow())

    def _refresh(self) -> None:
        self._table.refresh()

    def _own(self, query: str) -> None:
        owner = self._table.properties.get(QUERY)
        if owner is None:
            with self._table.transaction() as transaction:
                transaction.set_properties({QUERY: query})
        elif owner != query:
            raise another_query(self.config.location)

    def _committed(self, query: str) -> int | None:  # noqa: ARG002  # there is one
        batch = self._table.properties.get(BATCH)
        return None if batch is None else int(batch)

    def _offsets(self, query: str, batch: int) -> tuple[Offsets, ...] | None:  # noqa: ARG002
        return tuple(Offsets(*each) for each in json.loads(self._table.properties[OFFSETS]))

    def _files(self) -> list[LiveFile]:
        snapshot = self._table.current_snapshot()
        manifests = [] if snapshot is None else snapshot.manifests(self._table.io)
        # A manifest never changes, so each is read once.
        self._known = {each.manifest_path: self._data_files(each) for each in manifests}
        return [self._live(file) for files in self._known.values() for file in files]

    def _data_files(self, manifest: ManifestFile) -> list[DataFile]:
        known = self._known.get(manifest.manifest_path)
        if known is not None:
            return known
        entries = manifest.fetch_manifest_entry(self._table.io, discard_deleted=True)
        return [entry.data_file for entry in entries]

    def _live(self, file: DataFile) -> LiveFile:
        name = file.file_path.removeprefix(f"{self._path}/")
        return LiveFile(name, file.file_size_in_bytes, file.record_count, entry=file)

    def _apply(self, change: Change) -> None:
        summary = _properties(change.batch)
        transaction = self._table.transaction()
        if summary:
            transaction.set_properties(summary)
        if change.added or change.removed:
            update = transaction.update_snapshot(snapshot_properties=summary)
            with update.overwrite() if change.removed else update.merge_append() as files:
                for added in change.added:
                    files.append_data_file(self._data_file(added))
                for removed in change.removed:
                    files.delete_data_file(removed.entry)
        # What somebody else committed meanwhile may be this very batch: nothing is tried again.
        transaction._snapshot_producers.clear()
        try:
            transaction.commit_transaction()
        except (CommitFailedException, ValidationException) as error:
            raise ConflictError(str(error)) from error
        self._write_hint(self._table)

    def _data_file(self, file: StagedFile | Piece) -> DataFile:
        schema = self._table.schema()
        statistics = data_file_statistics_from_parquet_metadata(
            footer_of(file),
            compute_statistics_plan(schema, self._table.properties),
            parquet_path_to_id_mapping(schema),
        )
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self._path}/{DATA}/{file.staged}",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            spec_id=self._table.spec().spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _write_hint(self, table: Opened) -> None:
        """Name the newest metadata for readers that know only the folder."""
        name = Path(table.metadata_location).name.removesuffix(".metadata.json")
        draft = self._path / "_penstock" / "version-hint"
        draft.write_text(name)
        draft.rename(self._path / "metadata" / "version-hint.text")

    def _expire(self) -> None:
        oldest = datetime.now(UTC) - SNAPSHOTS_KEPT
        self._table.maintenance.expire_snapshots().older_than(oldest).commit()
        self._write_hint(self._table)
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
        return {path.removeprefix(f"{self._path}/") for path in paths}


def _properties(batch: Batch | None) -> dict[str, str]:
    if batch is None:
        return {}
    offsets = json.dumps(batch.offsets)
    return {QUERY: batch.query, BATCH: str(batch.number), OFFSETS: offsets}


def with_ids(schema: pa.Schema, table: Schema) -> pa.Schema:
    """Return a schema whose fields carry the ids that the table knows its columns by."""
    return pa.schema([_with_id(each, table.find_field(each.name)) for each in schema])


def _with_id(field: pa.Field, known: NestedField) -> pa.Field:
    metadata = {"PARQUET:field_id": str(known.field_id)}
    return pa.field(field.name, _ids_inside(field.type, known.field_type), metadata=metadata)


def _ids_inside(kind: pa.DataType, known: Any) -> pa.DataType:
    match known:
        case StructType():
            by_name = {each.name: each for each in known.fields}
            return pa.struct([_with_id(each, by_name[each.name]) for each in kind])
        case ListType():
            return pa.list_(_with_id(kind.value_field, known.element_field))
        case MapType():
            key = _with_id(kind.key_field, known.key_field).with_nullable(False)
            return pa.map_(key, _with_id(kind.item_field, known.value_field))
    return kind


def small_types(schema: pa.Schema) -> pa.Schema:
    """Return a schema without Arrow's large types, which are no others in a file."""
    return pa.schema([each.with_type(_small(each.type)) for each in schema])


def _small(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_small(each.type)) for each in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_small(kind.value_type)))
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(_small(kind.key_type))
        return pa.map_(key, kind.item_field.with_type(_small(kind.item_type)))
    return kind
