from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableError
from penstock.pipeline.tables.parquet import COMMITS_KEPT, ParquetTable

SCHEMA = pa.schema([pa.field("value", pa.binary())])


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    return made_in(tmp_path / "table")


def made_in(folder: Path) -> ParquetTable:
    made = ParquetTable(TableConfig(str(folder)))
    made.prepare(SCHEMA)
    return made


def stage(table: ParquetTable) -> Path:
    return Path(table.prepare(SCHEMA).folder.path) / f"{uuid.uuid4().hex}.parquet"


def staged(table: ParquetTable, start: int, end: int, content: str = "rows") -> StagedFile:
    file = stage(table)
    file.write_text(content)
    return StagedFile(file.name, "a", 0, start, end, end - start)


def visible(table: ParquetTable) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(table.path.glob("*.parquet"))}


def name(start: int, end: int) -> str:
    return f"part-a-00000-{start:020}-{end:020}.parquet"


def test_staged_files_are_no_part_of_the_table(table: ParquetTable) -> None:
    staged(table, 0, 5)
    assert visible(table) == {}


def test_a_committed_batch_is_part_of_the_table(table: ParquetTable) -> None:
    assert table.commit("q", 0, [staged(table, 0, 5), staged(table, 5, 7)]) == 7
    assert list(visible(table)) == [name(0, 5), name(5, 7)]


@pytest.mark.parametrize("topic", ["t" * 249, "persistent://public/default/" + "t" * 200])
def test_a_topic_may_have_a_long_name(table: ParquetTable, topic: str) -> None:
    for batch in range(2):
        for of in (topic, f"{topic[:-1]}u"):
            file = replace(staged(table, 0, 10), topic=of)
            table.commit("q", 2 * batch + (of != topic), [file])
    assert len(visible(table)) == 4


def test_a_batch_that_is_given_again_changes_nothing(table: ParquetTable) -> None:
    table.commit("q", 0, [staged(table, 0, 5, "first")])
    assert table.commit("q", 0, [staged(table, 0, 5, "second")]) == 5
    assert visible(table) == {name(0, 5): "first"}


def test_a_batch_that_is_given_again_in_other_pieces_changes_nothing(table: ParquetTable) -> None:
    table.commit("q", 0, [staged(table, 0, 6, "whole")])
    table.commit("q", 0, [staged(table, 0, 3, "half"), staged(table, 3, 6, "half")])
    assert visible(table) == {name(0, 6): "whole"}


def test_a_commit_that_was_cut_off_is_finished(
    table: ParquetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [staged(table, 0, 5, "first"), staged(table, 5, 9, "first")]
    rename = Path.rename
    renamed: list[Path] = []

    def killed_after_one(self: Path, target: Path) -> Path:
        if renamed:
            raise KeyboardInterrupt
        renamed.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", killed_after_one)
    with pytest.raises(KeyboardInterrupt):
        table.commit("q", 0, files)
    monkeypatch.undo()
    assert len(visible(table)) == 1
    again = made_in(table.path)
    again.commit("q", 0, [staged(again, 0, 9, "second")])
    assert visible(table) == {name(0, 5): "first", name(5, 9): "first"}


def test_leftovers_of_ended_attempts_are_removed(table: ParquetTable) -> None:
    leftover = stage(table)
    leftover.write_text("half a file")
    table.commit("q", 0, [staged(table, 0, 5)])
    assert not leftover.exists()


def test_another_query_is_refused(table: ParquetTable) -> None:
    table.commit("q", 0, [staged(table, 0, 5)])
    with pytest.raises(TableError, match="written by another query"):
        table.commit("other", 0, [staged(table, 0, 5)])
    assert list(visible(table)) == [name(0, 5)]


def test_a_checkpoint_that_went_back_is_refused(table: ParquetTable) -> None:
    table.commit("q", 0, [staged(table, 0, 5)])
    with pytest.raises(TableError, match="committed with other offsets"):
        table.commit("q", 0, [staged(table, 0, 8)])


def test_a_checkpoint_that_went_far_back_is_refused(table: ParquetTable) -> None:
    for batch in range(1, 4):
        table.commit("q", batch, [staged(table, batch, batch + 1)])
    with pytest.raises(TableError, match="older than the table"):
        table.commit("q", 0, [staged(table, 0, 1)])


def test_a_topic_that_was_made_anew_adds_its_rows_to_those_of_the_earlier_one(
    table: ParquetTable,
) -> None:
    table.commit("q", 0, [staged(table, 0, 5, "earlier")])
    table.commit("q", 1, [staged(table, 0, 5, "anew")])
    table.commit("q", 1, [staged(table, 0, 5, "the batch once more")])
    assert sorted(visible(table).values()) == ["anew", "earlier"]


def test_a_file_that_was_removed_by_hand_is_noticed(table: ParquetTable) -> None:
    table.commit("q", 0, [staged(table, 0, 5)])
    (table.path / name(0, 5)).unlink()
    with pytest.raises(TableError, match="removed by hand"):
        table.commit("q", 0, [staged(table, 0, 5)])


def test_a_folder_of_other_origin_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.parquet").touch()
    with pytest.raises(TableError, match="no pipeline of Penstock wrote"):
        made_in(tmp_path)


def test_old_records_are_removed(table: ParquetTable) -> None:
    for batch in range(COMMITS_KEPT + 3):
        table.commit("q", batch, [staged(table, batch, batch + 1)])
    assert len(list(table.path.glob("_penstock/commits/*.json"))) == COMMITS_KEPT


def test_offsets_without_rows_are_part_of_the_record(table: ParquetTable) -> None:
    empty = StagedFile("", "a", 0, 5, 9, 0)
    assert table.commit("q", 0, [staged(table, 0, 5), empty]) == 5
    with pytest.raises(TableError, match="committed with other offsets"):
        table.commit("q", 0, [staged(table, 0, 5)])
    assert list(visible(table)) == [name(0, 5)]


def test_pieces_of_one_task_have_names_of_their_own(table: ParquetTable) -> None:
    pieces = [replace(staged(table, 0, 5, str(number)), piece=number) for number in range(2)]
    table.commit("q", 0, pieces)
    assert sorted(visible(table).values()) == ["0", "1"]


def test_records_of_earlier_versions_are_understood(table: ParquetTable) -> None:
    files = [{"staged": "x.parquet", "topic": "a", "partition": 0, "start": 0, "end": 5, "rows": 5}]
    record = table.path / "_penstock" / "commits" / f"{0:020}.json"
    record.write_text(json.dumps({"query": "q", "files": files}))
    (table.path / "_penstock" / "staging" / "x.parquet").write_text("first")
    assert table.commit("q", 0, [staged(table, 0, 5, "second")]) == 5
    assert visible(table) == {name(0, 5): "first"}
