"""Iceberg tables of a REST catalogue, and what is said of one that can't be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableError, TableFormat
from penstock.pipeline.tables.lake import LakeTable
from penstock.pipeline.tables.opening import open_table
from rest_catalogue import TOKEN, RestCatalogue, rest_catalogue
from table_readers import READERS, offsets_seen

SCHEMA = pa.schema([pa.field("key", pa.int64()), pa.field("offset", pa.int64())])
SETTING = "PYICEBERG_CATALOG__PENSTOCK__"


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestCatalogue]:
    set_token(monkeypatch, TOKEN)
    with rest_catalogue(tmp_path / "catalogue") as server:
        yield server


def set_token(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """Have pyiceberg's environment, which it reads once, name a token."""
    settings = {"catalog": {"penstock": {"token": token}}}
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG.config", settings)


def opened(tmp_path: Path, url: str, **settings: Any) -> LakeTable:
    place = str(tmp_path / "orders")
    table = open_table(TableConfig(place, TableFormat.ICEBERG, catalog=url, **settings))
    assert isinstance(table, LakeTable)
    return table


def give(table: LakeTable, batch: int) -> None:
    offsets = range(batch * 5, batch * 5 + 5)
    rows = pa.record_batch([[each % 3 for each in offsets], list(offsets)], schema=SCHEMA)
    (piece,) = table.prepare(SCHEMA).write([rows], "q", batch)
    place = ("a", 0, offsets.start, offsets.stop)
    file = StagedFile(piece.staged, *place, piece.rows, piece.size, footer=piece.footer)
    table.commit("q", batch, [file])


def seen(table: LakeTable) -> list[int]:
    (found,) = {
        tuple(offsets_seen(reader, table.config)) for reader in READERS[TableFormat.ICEBERG]
    }
    return list(found)


def test_a_table_of_a_rest_catalogue_has_each_row_once(
    catalogue: RestCatalogue, tmp_path: Path
) -> None:
    for batch in (0, 0, 1, 2):
        give(opened(tmp_path, catalogue.url), batch)
    table = opened(tmp_path, catalogue.url)
    assert table.compact().files == 3
    assert seen(table) == list(range(15))
    assert catalogue.tables.list_tables("default") == [("default", "orders")]
    assert not (tmp_path / "orders" / "_penstock" / "catalog.db").exists()


def test_a_catalogue_is_asked_for_its_settings_once_by_a_table(
    catalogue: RestCatalogue, tmp_path: Path
) -> None:
    give(opened(tmp_path, catalogue.url), 0)
    catalogue.asked.clear()
    table = opened(tmp_path, catalogue.url)
    assert table.is_there()
    assert table.held("q") is not None
    assert table.is_there()
    assert catalogue.asked == ["/v1/config", *["/v1/namespaces/default/tables/orders"] * 3]


@pytest.mark.parametrize("keys", [(), ("key",)])
def test_a_commit_whose_answer_is_lost_is_found_to_be_made(
    catalogue: RestCatalogue, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    table = opened(tmp_path, catalogue.url, keys=keys)
    give(table, 0)
    catalogue.answers_lost = 1
    give(table, 1)
    catalogue.answers_lost = 1
    table.compact()
    assert len(table._files()) == 1
    assert seen(table) == (list(range(7, 10)) if keys else list(range(10)))


def test_of_two_runs_one_is_refused(catalogue: RestCatalogue, tmp_path: Path) -> None:
    first, second = (opened(tmp_path, catalogue.url) for _ in range(2))
    give(first, 0)
    second.prepare(SCHEMA)
    apply = second._apply

    def apply_late(change: Any) -> None:
        give(first, 1)
        apply(change)

    second._apply = apply_late  # type: ignore[method-assign]
    with pytest.raises(TableError, match="another run writes to"):
        give(second, 1)
    assert seen(first) == list(range(10))


def test_a_table_of_that_name_somewhere_else_is_refused(
    catalogue: RestCatalogue, tmp_path: Path
) -> None:
    give(opened(tmp_path / "one", catalogue.url), 0)
    with pytest.raises(TableError, match=r"default\.orders of the catalogue lies in"):
        give(opened(tmp_path / "two", catalogue.url), 0)


def test_a_catalogue_that_can_t_be_used_is_said_before_a_row(
    catalogue: RestCatalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url, says in (
        ("http://127.0.0.1:1", "127.0.0.1"),
        (f"{catalogue.url}/elsewhere", "nothing is here"),
        ("sqlite:////none/at/all.db", "unable to open database file"),
        ("orders", "Could not parse"),
    ):
        with pytest.raises(TableError, match=f"can't be used: .*{says}.*--catalog") as raised:
            opened(tmp_path, url).prepare(SCHEMA)
        assert "SELECT" not in str(raised.value)
    with pytest.raises(TableError, match=r"http://\*\*\*@127\.0\.0\.1:1") as raised:
        opened(tmp_path, "http://me:s3cr@t@127.0.0.1:1").prepare(SCHEMA)
    assert "s3cr" not in str(raised.value)
    set_token(monkeypatch, "wrong")
    with pytest.raises(TableError, match=r"no token that is known.*__TOKEN"):
        opened(tmp_path, catalogue.url).prepare(SCHEMA)
    settings = {"catalog": {"penstock": {"token": TOKEN, "warehouse": "another"}}}
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG.config", settings)
    with pytest.raises(TableError, match=r"Unable to find warehouse.*__WAREHOUSE"):
        opened(tmp_path, catalogue.url).prepare(SCHEMA)
    assert not list(tmp_path.glob("**/*.parquet"))
