"""What tasks write: files of a size, durable and described."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.pipeline.tables import staging
from penstock.pipeline.tables.staging import Stager
from penstock.pipeline.tables.storage import local_folder

SCHEMA = pa.schema([pa.field("offset", pa.int64()), pa.field("value", pa.binary())])


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield pa.record_batch([[number], [b"%1000d" % number]], schema=SCHEMA)


def test_a_file_is_described_by_its_footer(tmp_path: Path) -> None:
    stager = pickle.loads(pickle.dumps(Stager(local_folder(tmp_path), SCHEMA, "zstd", 1 << 20)))
    (piece,) = stager.write(batches(3), "query", 7)
    path = tmp_path / piece.staged
    assert (piece.rows, piece.size) == (3, path.stat().st_size)
    footer = pq.read_metadata(pa.BufferReader(piece.footer))
    assert footer.row_group(0).column(0).statistics.max == 2
    assert pq.read_table(path)["offset"].to_pylist() == [0, 1, 2]
    assert footer.row_group(0).column(0).has_column_index, "readers leave out pages by it"


def test_the_next_file_begins_at_the_target_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "ROW_GROUP_BYTES", 2000)
    stager = Stager(local_folder(tmp_path), SCHEMA, "none", 4000)
    pieces = list(stager.write(batches(10), "query", 7))
    files = [pq.read_table(tmp_path / piece.staged)["offset"].to_pylist() for piece in pieces]
    assert [row for rows in files for row in rows] == list(range(10))
    assert 1 < len(files) < 10
    assert all(piece.size >= 4000 for piece in pieces[:-1])


def test_a_batch_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    stager = Stager(local_folder(tmp_path), SCHEMA, "zstd", 1 << 20, by_batch=True)
    (piece,) = stager.write(batches(1), "query", 7)
    assert Path(piece.staged).parent == Path("query-7")
    assert (tmp_path / piece.staged).exists()


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    stager = Stager(local_folder(tmp_path), SCHEMA, "zstd", 1 << 20)
    assert list(stager.write(iter(()), "query", 7)) == []
    assert list(tmp_path.iterdir()) == []
