"""Which files a table is made of at one moment, and up to which offsets: whatever a run does."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.pipeline.tables import merging
from penstock.pipeline.tables.interface import (
    Held,
    Snapshot,
    StagedFile,
    TableConfig,
    TableError,
    TableFormat,
)
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.parquet import ParquetTable
from penstock.pipeline.tables.table import Table
from taking_back import take_back

SCHEMA = pa.schema([pa.field("key", pa.int64()), pa.field("offset", pa.int64())])
FORMATS = list(TableFormat)
ROWS = 5


def config(folder: Path, kind: TableFormat, **settings: object) -> TableConfig:
    return TableConfig(str(folder / "table"), kind, **settings)  # type: ignore[arg-type]


def stage(table: Table, batch: int, partition: int = 0) -> list[StagedFile]:
    """Stage the rows of a batch of one partition."""
    first = batch * ROWS
    numbers = list(range(first, first + ROWS))
    rows = pa.record_batch([[each % 7 for each in numbers], numbers], schema=SCHEMA)
    place = ("a", partition, first, first + ROWS)
    return [
        StagedFile(piece.staged, *place, piece.rows, piece.size, number, piece.values, piece.footer)
        for number, piece in enumerate(table.prepare(SCHEMA).write([rows], "q", batch))
    ]


def give(table: Table, batch: int) -> None:
    table.commit("q", batch, stage(table, batch), {"a": {"0": (batch + 1) * ROWS, "id": "x"}})


def offsets(snapshot: Snapshot) -> list[int]:
    tables = [pq.read_table(file, columns=["offset"], partitioning=None) for file in snapshot.files]
    return sorted(offset for table in tables for offset in table["offset"].to_pylist())


def holds_all_up_to_its_end(snapshot: Snapshot) -> None:
    assert offsets(snapshot) == list(range(int(snapshot.positions["a"]["0"])))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_without_a_batch_has_none(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    assert table.snapshot() is None
    table.prepare(SCHEMA)
    assert open_table(table.config).snapshot() is None


@pytest.mark.parametrize("kind", FORMATS)
def test_it_says_where_the_newest_batch_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: TableFormat
) -> None:
    monkeypatch.setattr(merging, "SMALL_FILES_MAX", 2)
    table, reader = (open_table(config(tmp_path, kind)) for _ in range(2))
    for batch in range(5):
        give(table, batch)
        found = reader.snapshot()
        assert found is not None
        assert found.positions == {"a": {"0": (batch + 1) * ROWS, "id": "x"}}
        assert found.schema.equals(SCHEMA)
        holds_all_up_to_its_end(found)
    give(table, 4)
    assert reader.snapshot() == found


@pytest.mark.parametrize("kind", FORMATS)
def test_what_no_commit_names_is_no_part_of_it(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    give(table, 0)
    stage(table, 1)
    found = open_table(table.config).snapshot()
    assert found is not None
    holds_all_up_to_its_end(found)


@pytest.mark.parametrize("kind", FORMATS)
def test_parts_and_batches_without_rows(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind, partition_by=("key",)))
    give(table, 0)
    table.commit("q", 1, [StagedFile("", "a", 0, ROWS, 2 * ROWS, 0)], {"a": {"0": 2 * ROWS}})
    found = table.snapshot()
    assert found is not None
    assert offsets(found) == list(range(ROWS))
    assert found.positions == {"a": {"0": 2 * ROWS}}


@pytest.mark.parametrize("kind", [TableFormat.DELTA, TableFormat.ICEBERG])
def test_of_rows_of_the_newest_of_each_key(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind, keys=("key",)))
    for batch in range(3):
        give(table, batch)
    found = table.snapshot()
    assert found is not None
    assert offsets(found) == list(range(3 * ROWS))[-7:]


@pytest.mark.parametrize("kind", FORMATS)
def test_it_is_whole_while_a_run_writes_and_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: TableFormat
) -> None:
    monkeypatch.setattr(merging, "SMALL_FILES_MAX", 2)
    table, reader = (open_table(config(tmp_path, kind)) for _ in range(2))
    give(table, 0)

    def run() -> None:
        for batch in range(1, 7):
            give(table, batch)

    run_beside = threading.Thread(target=run)
    run_beside.start()
    seen = 0
    while run_beside.is_alive() or not seen:
        found = reader.snapshot()
        assert found is not None
        holds_all_up_to_its_end(found)
        seen += 1
    run_beside.join()
    found = reader.snapshot()
    assert found is not None
    assert len(offsets(found)) == 7 * ROWS


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_of_an_earlier_version_is_refused(tmp_path: Path, kind: TableFormat) -> None:
    table = open_table(config(tmp_path, kind))
    table.commit("q", 0, stage(table, 0))
    with pytest.raises(TableError, match="does not say up to which offsets it goes"):
        table.snapshot()


# Tables that another engine takes back to an older version.

LAKES = [TableFormat.DELTA, TableFormat.ICEBERG]


def taken_back(folder: Path, kind: TableFormat, to: int) -> Table:
    """Return a table of three batches that was taken back to one of them, opened anew."""
    table = open_table(config(folder, kind))
    for batch in range(3):
        give(table, batch)
    take_back(folder / "table", kind, to)
    return open_table(table.config)


@pytest.mark.parametrize("kind", LAKES)
def test_a_table_that_was_taken_back_holds_an_older_batch(
    tmp_path: Path, kind: TableFormat
) -> None:
    table = taken_back(tmp_path, kind, 1)
    assert table.was_taken_back("q")
    held = table.held("q")
    assert held is not None
    assert held.batch == 1
    take_back(tmp_path / "table", kind, 0)
    take_back(tmp_path / "table", kind, 2)
    assert not table.was_taken_back("q")
    assert table.held("q") == Held(2, {"a": {"0": 3 * ROWS, "id": "x"}})


@pytest.mark.parametrize("kind", LAKES)
def test_merges_and_batches_without_rows_take_nothing_back(
    tmp_path: Path, kind: TableFormat
) -> None:
    table = open_table(config(tmp_path, kind))
    table.prepare(SCHEMA)
    nothing = [StagedFile("", "a", 0, 0, 0, 0)]
    for batch, end in enumerate((0, 2 * ROWS, 3 * ROWS, 3 * ROWS)):
        files = stage(table, batch) if batch in {1, 2} else nothing
        table.commit("q", batch, files, {"a": {"0": end}})
        assert open_table(table.config).held("q") == Held(batch, {"a": {"0": end}})
    assert table.compact().files == 2
    assert open_table(table.config).held("q") == Held(3, {"a": {"0": 3 * ROWS}})
    take_back(tmp_path / "table", kind, 1)
    assert open_table(table.config).was_taken_back("q")


@pytest.mark.parametrize("kind", LAKES)
def test_a_run_notices_that_its_table_is_taken_back_beside_it(
    tmp_path: Path, kind: TableFormat
) -> None:
    table = open_table(config(tmp_path, kind))
    for batch in range(4):
        give(table, batch)
    take_back(tmp_path / "table", kind, 1)
    with pytest.raises(TableError, match=r"was taken back to an older version \(RESTORE, rollback"):
        give(table, 4)
    take_back(tmp_path / "table", kind, 3)
    give(table, 4)
    found = table.snapshot()
    assert found is not None
    holds_all_up_to_its_end(found)


@pytest.mark.parametrize("kind", LAKES)
def test_batches_that_were_taken_back_can_be_written_again(
    tmp_path: Path, kind: TableFormat
) -> None:
    table = taken_back(tmp_path, kind, 0)
    give(table, 0)
    with pytest.raises(TableError, match="the checkpoint is older than the table"):
        table.commit("q", 0, stage(table, 1))
    for batch in range(1, 5):
        give(table, batch)
        give(open_table(table.config), batch)
    found = table.snapshot()
    assert found is not None
    holds_all_up_to_its_end(found)
    assert not table.was_taken_back("q")


def test_a_live_table_goes_on_where_delta_was_taken_back_to(tmp_path: Path) -> None:
    found = taken_back(tmp_path, TableFormat.DELTA, 1).snapshot()
    assert found is not None
    assert found.positions == {"a": {"0": 2 * ROWS, "id": "x"}}
    holds_all_up_to_its_end(found)


def test_a_live_table_of_iceberg_that_was_taken_back_is_refused(tmp_path: Path) -> None:
    table = taken_back(tmp_path, TableFormat.ICEBERG, 1)
    with pytest.raises(TableError, match=r"was taken back to an older version \(RESTORE, rollback"):
        table.snapshot()


@pytest.mark.parametrize("said", [{}, {"version": None, "timestamp": "2026-11-27 01:00:00.0"}])
def test_a_restore_that_names_no_version_is_known_by_its_files(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    table = taken_back(tmp_path, TableFormat.DELTA, 1)
    newest = max((tmp_path / "table" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    (about,) = (each["commitInfo"] for each in actions if "commitInfo" in each)
    about["operationParameters"] = said
    newest.write_text("\n".join(json.dumps(each) for each in actions))
    held = table.held("q")
    assert held is not None
    assert held.batch == 1


# A folder of Parquet files: its files appear one by one.


@pytest.fixture
def folder(tmp_path: Path) -> ParquetTable:
    return ParquetTable(config(tmp_path, TableFormat.PARQUET))


@pytest.mark.parametrize("renamed", [0, 1])
def test_a_batch_counts_when_all_of_its_files_are_there(
    folder: ParquetTable, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    give(folder, 0)
    files = [*stage(folder, 1), *stage(folder, 1, partition=1)]
    cut_off(monkeypatch, lambda: folder.commit("q", 1, files, {"a": {"0": 10, "1": 10}}), renamed)
    found = folder.snapshot()
    assert found is not None
    holds_all_up_to_its_end(found)
    folder.commit("q", 1, files, {"a": {"0": 10, "1": 10}})
    found = folder.snapshot()
    assert found is not None
    assert offsets(found) == sorted([*range(10), *range(5, 10)])
    assert found.positions == {"a": {"0": 10, "1": 10}}


def test_a_first_batch_that_was_cut_off_is_none(
    folder: ParquetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = stage(folder, 0)
    cut_off(monkeypatch, lambda: folder.commit("q", 0, files, {"a": {"0": 5}}), 0)
    assert folder.snapshot() is None


def cut_off(monkeypatch: pytest.MonkeyPatch, commit: Callable[[], object], renamed: int) -> None:
    """End a run after so many renames, as kill -9 does."""
    rename = Path.rename
    calls = iter(range(renamed))

    def killed(self: Path, target: Path) -> Path:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            commit()


def test_what_appears_while_the_folder_is_looked_at_is_of_later_batches(
    folder: ParquetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches are written meanwhile, and only the second one's file is seen."""
    give(folder, 0)
    walk = os.walk

    def slow(path: Path) -> object:
        for place, inside, names in walk(path):
            if names == ["part-a-00000-00000000000000000000-00000000000000000005.parquet"]:
                give(folder, 1)
                give(folder, 2)
                names.append("part-a-00000-00000000000000000010-00000000000000000015.parquet")
            yield place, inside, names

    monkeypatch.setattr(os, "walk", slow)
    found = folder.snapshot()
    assert found is not None
    holds_all_up_to_its_end(found)
    assert len(found.files) == 1


def test_older_files_that_were_removed_by_hand_stay_away(folder: ParquetTable) -> None:
    for batch in range(3):
        give(folder, batch)
    next(folder.path.glob("*.parquet")).unlink()
    found = folder.snapshot()
    assert found is not None
    assert found.positions == {"a": {"0": 15, "id": "x"}}
    assert len(found.files) == 2
