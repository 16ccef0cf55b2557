"""Tables in an object store: the same promises, with conditional writes in place of a lock."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from azurite import ACCOUNT, CONTAINER, Azurite, azurite, install
from azurite import KEY as AZURE_KEY
from object_store import KEY, ObjectStore, object_store
from penstock.pipeline.tables.iceberg import FILES
from penstock.pipeline.tables.interface import Merged, StagedFile, TableConfig, TableError
from penstock.pipeline.tables.interface import TableFormat as Format
from penstock.pipeline.tables.lake import LakeTable
from penstock.pipeline.tables.opening import format_of, open_table
from penstock.pipeline.tables.places import place_of

SCHEMA = pa.schema([pa.field("key", pa.string()), pa.field("offset", pa.int64())])
KINDS = [Format.DELTA, Format.ICEBERG]
URI = "s3://bucket/tables/orders"
AZURE_URI = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/tables/orders"


@pytest.fixture(scope="module")
def shared_store() -> Iterator[ObjectStore]:
    with object_store() as opened:
        yield opened


@pytest.fixture
def store(shared_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    monkeypatch.setenv("AWS_ENDPOINT_URL", shared_store.address)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    shared_store.clear()
    return shared_store


@pytest.fixture(scope="module")
def shared_azurite() -> Iterator[Azurite]:
    if not install():
        pytest.skip("Azurite is not at hand: it needs npm")
    with azurite() as opened:
        yield opened


@pytest.fixture
def azure(shared_azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> Azurite:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", shared_azurite.endpoint)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY)
    shared_azurite.clear()
    return shared_azurite


@pytest.fixture(params=["store", pytest.param("azure", marks=pytest.mark.soak)])
def uri(request: pytest.FixtureRequest) -> str:
    """Where a table lies in a store that is ready for it."""
    request.getfixturevalue(request.param)
    return URI if request.param == "store" else AZURE_URI


def opened(kind: Format, tmp_path: Path, uri: str = URI, **settings: Any) -> LakeTable:
    catalog = f"sqlite:///{tmp_path}/catalog.db" if kind is Format.ICEBERG else None
    home = str(tmp_path / "state")
    table = open_table(TableConfig(uri, kind, catalog=catalog, home=home, **settings))
    assert isinstance(table, LakeTable)
    return table


def stage(table: LakeTable, start: int, end: int, batch: int) -> StagedFile:
    keys = [f"k{each % 3}" for each in range(start, end)]
    rows = pa.record_batch([keys, list(range(start, end))], schema=SCHEMA)
    stager = pickle.loads(pickle.dumps(table.prepare(SCHEMA)))
    (piece,) = stager.write([rows], "q", batch)
    place = ("a", 0, start, end)
    return StagedFile(piece.staged, *place, piece.rows, piece.size, footer=piece.footer)


def give(table: LakeTable, batch: int) -> None:
    table.commit("q", batch, [stage(table, batch * 5, batch * 5 + 5, batch)])


def seen(table: LakeTable) -> list[int]:
    uri = table.config.location
    place = place_of(uri)
    assert place.store is not None
    if table.config.format is Format.DELTA:
        options = {**place.store.settings, "allow_http": "true"}
        rows = deltalake.DeltaTable(uri, storage_options=options).to_pyarrow_table()
    else:
        properties = {"uri": table.config.catalog, "py-io-impl": FILES, **place.store.iceberg()}
        catalog = load_catalog("penstock", type="sql", **properties)
        rows = catalog.load_table(("default", "orders")).scan().to_arrow()
    return sorted(rows["offset"].to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_there_once(uri: str, tmp_path: Path, kind: Format) -> None:
    table = opened(kind, tmp_path, uri)
    with table.only_writer():
        for batch in (0, 0, 1, 1):
            give(table, batch)
    leftover = stage(table, 10, 15, 2)
    give(table, 2)
    assert not [each for each in table.folder.found() if leftover.staged in each.name]
    assert format_of(uri) is kind
    assert opened(kind, tmp_path, uri).compact() == Merged(3, 1)
    assert seen(table) == list(range(15))


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_runs_one_is_refused(uri: str, tmp_path: Path, kind: Format) -> None:
    first, second = (opened(kind, tmp_path, uri) for _ in range(2))
    give(first, 0)
    second.prepare(SCHEMA)
    second._own("q")
    files = [stage(table, 5, 7, 1) for table in (first, second)]
    apply = second._apply

    def apply_late(change: Any) -> None:
        first.commit("q", 1, files[:1])
        apply(change)

    second._apply = apply_late  # type: ignore[method-assign]
    with pytest.raises(TableError, match="another run writes to"):
        second.commit("q", 1, files[1:])
    assert seen(first) == list(range(7))


@pytest.mark.parametrize("kind", KINDS)
def test_changes_by_key(uri: str, tmp_path: Path, kind: Format) -> None:
    table = opened(kind, tmp_path, uri, keys=("key",))
    for batch in range(3):
        give(table, batch)
    assert seen(table) == [12, 13, 14]


def test_a_commit_whose_answer_is_lost_is_found_to_be_made(
    store: ObjectStore, tmp_path: Path
) -> None:
    table = opened(Format.DELTA, tmp_path)
    for batch in range(2):
        give(table, batch)
    store.lose_an_answer("_delta_log")
    give(table, 2)
    store.lose_an_answer("_delta_log")
    table.compact()
    assert len(table._files()) == 1
    assert seen(table) == list(range(15))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("AWS_ACCESS_KEY_ID", "nobody", "InvalidAccessKeyId"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "127.0.0.1:1"),
        ("bucket", "s3://none/orders", "NoSuchBucket"),
    ],
)
def test_a_store_that_can_t_be_written_is_said_before_a_row(
    store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    says: str,
) -> None:
    uri = URI
    if name == "bucket":
        uri = value
    else:
        monkeypatch.setenv(name, value)
    table = open_table(TableConfig(uri, Format.DELTA, home=str(tmp_path)))
    with pytest.raises(TableError, match=f"can't be written: .*{says}.*AWS_"):
        table.only_writer().__enter__()
    assert store.names() == []


def test_a_store_that_keeps_the_second_of_two_writers_is_refused(
    store: ObjectStore, tmp_path: Path
) -> None:
    store.forget_conditions()
    with pytest.raises(TableError, match="If-None-Match"):
        opened(Format.DELTA, tmp_path).only_writer().__enter__()


def test_a_key_of_azure_that_is_cut_off_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before pyarrow sees it, which ends the process."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY[:-3])
    with pytest.raises(TableError, match="AZURE_STORAGE_ACCOUNT_KEY is no key"):
        open_table(TableConfig(AZURE_URI, Format.DELTA))


@pytest.mark.soak
def test_a_key_of_azure_that_is_wrong_is_said(
    azure: Azurite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURE_KEY.lower())
    table = open_table(TableConfig(AZURE_URI, Format.DELTA, home=str(tmp_path)))
    with pytest.raises(
        TableError, match=r"can't be written: .* AuthorizationFailure.*AZURE_STORAGE_ACCOUNT_KEY"
    ):
        table.only_writer().__enter__()


def test_what_an_object_store_can_t_have_is_refused(store: ObjectStore) -> None:
    with pytest.raises(TableError, match="needs a disk that can rename"):
        open_table(TableConfig(URI))
    with pytest.raises(TableError, match="needs a local folder"):
        _ = open_table(TableConfig(URI, Format.DELTA)).checkpoint
    with pytest.raises(TableError, match="--catalog"):
        open_table(TableConfig(URI, Format.ICEBERG)).prepare(SCHEMA)
    wrongs = ("ftp://somewhere/table", "s3://bucket", "gs://bucket/table", "abfss://lake/orders")
    account = "abfss://lake@account.dfs.core.windows.net"
    for wrong in (*wrongs, account, "abfss://account.dfs.core.windows.net/orders", "s3://[/a"):
        with pytest.raises(TableError, match=r"s3://bucket/path or abfss://container@account\."):
            open_table(TableConfig(wrong, Format.DELTA))
    assert store.names() == []
