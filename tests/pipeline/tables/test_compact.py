"""`pipeline compact`: all small files are merged, also while a job commits to the same table."""

from __future__ import annotations

import errno
import fcntl
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.pipeline.tables import merging
from penstock.pipeline.tables.commits import ConflictError
from penstock.pipeline.tables.interface import Merged, StagedFile, TableConfig, TableError
from penstock.pipeline.tables.interface import TableFormat as Format
from penstock.pipeline.tables.lake import CONFLICTS_MAX, LOST_MERGES_MAX, LakeTable
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.table import Table
from table_readers import READERS, offsets_seen

SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
    ]
)
KINDS = [Format.DELTA, Format.ICEBERG]
ROWS = 5
THREE_HOURS = 3 * 3_600_000_000


def opened(folder: Path, kind: Format, **settings: Any) -> LakeTable:
    table = open_table(TableConfig(str(folder / "table"), kind, **settings))
    assert isinstance(table, LakeTable)
    return table


def give(table: Table, batch: int) -> None:
    """Commit five rows of three keys, the same ones from the third batch on."""
    offsets = range(batch * ROWS, batch * ROWS + ROWS)
    keys = [each % 3 + 3 * min(batch, 2) for each in offsets]
    columns = [keys, list(offsets), [each * THREE_HOURS for each in offsets]]
    pieces = table.prepare(SCHEMA).write([pa.record_batch(columns, schema=SCHEMA)], "q", batch)
    files = [
        StagedFile(
            piece.staged,
            *("a", 0, offsets.start, offsets.stop),
            *(piece.rows, piece.size, number, piece.values, piece.footer),
        )
        for number, piece in enumerate(pieces)
    ]
    table.commit("q", batch, files)


@pytest.mark.parametrize("kind", KINDS)
def test_small_files_of_each_part_become_one(tmp_path: Path, kind: Format) -> None:
    writer = opened(tmp_path, kind, partition_by=("day(timestamp)",))
    for batch in range(3):
        give(writer, batch)
    before = writer._files()
    days = {file.values for file in before}
    assert len(before) > len(days) == 2
    table = opened(tmp_path, kind)  # as of the folder alone, which says how it is partitioned
    assert table.compact() == Merged(len(before), 2)
    assert {(file.values, file.rows) for file in table._files()} == {
        (values, sum(file.rows for file in before if file.values == values)) for values in days
    }
    assert table.compact() == Merged(0, 0)
    give(writer, 3)
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == list(range(4 * ROWS)), reader


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_commits_while_files_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Format, keyed: bool
) -> None:
    keys = ("key",) if keyed else ()
    job = opened(tmp_path, kind, keys=keys)
    for batch in range(3):
        give(job, batch)
    table = opened(tmp_path, kind)
    apply = table._apply
    batches = iter([3, 4])

    def apply_late(change: Any) -> None:
        for batch in batches:
            give(job, batch)
            break
        apply(change)

    monkeypatch.setattr(table, "_apply", apply_late)
    table.compact()
    rows = [2, 3, 4, 7, 8, 9, 22, 23, 24] if keyed else list(range(5 * ROWS))
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == rows, reader


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_whose_commits_are_overtaken_by_merges_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Format
) -> None:
    job = opened(tmp_path, kind, keys=("key",))
    for batch in range(3):
        give(job, batch)
    other = opened(tmp_path, kind)
    apply = job._apply
    overtaken = iter([other._files()])

    def apply_late(change: Any) -> None:
        for files in overtaken:
            other._merge(files)
        apply(change)

    monkeypatch.setattr(job, "_apply", apply_late)
    give(job, 3)
    for reader in READERS[kind]:
        assert offsets_seen(reader, job.config) == [2, 3, 4, 7, 8, 9, 17, 18, 19], reader


@pytest.mark.parametrize("kind", KINDS)
def test_a_merge_is_not_done_anew_for_rows_that_a_job_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Format
) -> None:
    job = opened(tmp_path, kind)
    for batch in range(2):
        give(job, batch)
    table = opened(tmp_path, kind)
    apply, rows_of = table._apply, table._rows_of
    merges, batches = [], iter([2, 3, 4])

    def apply_late(change: Any) -> None:
        for batch in batches:
            give(job, batch)
            break
        apply(change)

    def count(*arguments: Any) -> Any:
        merges.append(arguments)
        return rows_of(*arguments)

    monkeypatch.setattr(table, "_apply", apply_late)
    monkeypatch.setattr(table, "_rows_of", count)
    assert table.compact() == Merged(2 + 4, 2)  # those two, and then what came meanwhile
    assert len(merges) == 2
    assert offsets_seen(READERS[kind][0], table.config) == list(range(5 * ROWS))


def test_a_job_that_spoils_merges_waits_for_one_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = Format.DELTA
    job = opened(tmp_path, kind, keys=("key",))
    for batch in range(3):
        give(job, batch)
    table = opened(tmp_path, kind)
    apply, rows_of = table._apply, table._rows_of
    batches = itertools.count(3)
    merges_in_turn = []

    def spoil(*arguments: Any) -> Any:
        merges_in_turn.append(is_held(job))
        if not merges_in_turn[-1]:
            give(job, next(batches))
        return rows_of(*arguments)

    def in_turn(change: Any) -> None:
        assert is_held(job)
        apply(change)

    monkeypatch.setattr(table, "_rows_of", spoil)
    monkeypatch.setattr(table, "_apply", in_turn)
    assert table.compact().into == 1
    assert merges_in_turn == [False] * LOST_MERGES_MAX + [True]
    give(job, next(batches))
    for reader in READERS[kind]:
        assert len(offsets_seen(reader, table.config)) == 9, reader


def is_held(table: Table) -> bool:
    """Whether nobody can commit now who takes turns."""
    with (table.state / "commit.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_two_runs_add_at_the_same_moment_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Format
) -> None:
    job = opened(tmp_path, kind)
    give(job, 0)
    other = opened(tmp_path, kind)
    wider = SCHEMA.append(pa.field("note", pa.string()))
    evolve = job._evolve

    def evolve_late(change: Any) -> None:
        other.prepare(wider)
        evolve(change)

    monkeypatch.setattr(job, "_evolve", evolve_late)
    assert job.prepare(wider).schema.names == wider.names


def test_a_merge_that_is_always_overtaken_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path, Format.DELTA)
    for batch in range(2):
        give(table, batch)
    tries = []

    def refuse(change: Any) -> None:
        tries.append(change)
        raise ConflictError("somebody was faster")

    monkeypatch.setattr(table, "_apply", refuse)
    with pytest.raises(TableError, match="try again later"):
        table.compact()
    assert len(tries) == CONFLICTS_MAX**2  # as often for each merge, of which there are as many
    assert len(list(tmp_path.glob("table/data/**/*.parquet"))) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_merge_for_which_the_disk_has_no_room_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Format
) -> None:
    monkeypatch.setattr(merging, "SMALL_FILES_MAX", 2)
    table = opened(tmp_path, kind)
    for batch in range(2):
        give(table, batch)
    rows_of = table._rows_of

    def end_early(*arguments: Any) -> Any:
        yield next(rows_of(*arguments))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(table, "_rows_of", end_early)
    give(table, 2)  # which is part of the table, whatever becomes of the merge after it
    with pytest.raises(OSError, match="No space left"):
        table.compact()
    assert len(list(tmp_path.glob("table/data/**/*.parquet"))) == 3
    for reader in READERS[kind]:
        assert offsets_seen(reader, table.config) == list(range(3 * ROWS)), reader


def test_what_can_t_be_merged_is_refused(tmp_path: Path) -> None:
    folder = open_table(TableConfig(str(tmp_path / "table")))
    give(folder, 0)
    with pytest.raises(TableError, match="use --table-format delta or iceberg"):
        folder.compact()
    with pytest.raises(TableError, match="no pipeline has written"):
        open_table(TableConfig(str(tmp_path / "none"), Format.DELTA)).compact()
