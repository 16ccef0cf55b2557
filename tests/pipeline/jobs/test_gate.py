from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.pipeline.jobs import gate
from penstock.pipeline.jobs.config import Expectation, Otherwise
from penstock.pipeline.jobs.gate import UNMET, Gate, UnmetError
from penstock.pipeline.jobs.steps import MET
from penstock.pipeline.tables.staging import Stager
from penstock.pipeline.tables.storage import local_folder

ROWS = pa.schema([("offset", pa.int64())])


def gate_of(folder: Path, *otherwise: Otherwise) -> Gate:
    expectations = tuple(
        Expectation(f"divisible by {index + 2}", "…", each) for index, each in enumerate(otherwise)
    )
    table = Stager(local_folder(folder / "table"), ROWS, "zstd", 1 << 20)
    quarantined = ROWS.append(pa.field(UNMET, pa.string()))
    quarantine = Stager(local_folder(folder / "quarantine"), quarantined, "zstd", 1 << 20)
    return Gate("query", 1, table, quarantine, expectations)


def batch_of(rows: range, expectations: int) -> pa.RecordBatch:
    met = [[row % (index + 2) == 0 for index in range(expectations)] for row in rows]
    return pa.RecordBatch.from_pydict({"offset": list(rows), MET: met})


def written(folder: Path, passing: Gate, batches: list[pa.RecordBatch]) -> tuple[Any, Any, Any]:
    """Return the offsets of the table, those of the quarantine by reason, and the counts."""
    lines = [line for found in passing.stage(batches) for line in found.to_pylist()]
    files = {
        into: [line["staged"] for line in lines if line["into"] == into]
        for into in (gate.TABLE, gate.QUARANTINE)
    }
    kept = [
        row
        for name in files[gate.TABLE]
        for row in pq.read_table(folder / "table" / name)["offset"].to_pylist()
    ]
    bad = [
        row
        for name in files[gate.QUARANTINE]
        for row in pq.read_table(folder / "quarantine" / name).to_pylist()
    ]
    assert Counter(line["into"] for line in lines)[gate.COUNTS] == 1
    return kept, [(row["offset"], row[UNMET]) for row in bad], lines[-1]["unmet"]


def test_each_row_goes_where_its_first_unmet_expectation_says(tmp_path: Path) -> None:
    passing = gate_of(tmp_path, Otherwise.DROP, Otherwise.QUARANTINE, Otherwise.KEEP)
    batches = [batch_of(range(6), 3), batch_of(range(6, 24), 3)]
    kept, bad, unmet = written(tmp_path, passing, batches)
    assert kept == [0, 6, 12, 18]
    assert bad == [(row, "divisible by 3") for row in range(0, 24, 2) if row % 3]
    assert unmet == [12, 16, 18]


def test_a_row_that_ends_the_run_is_named(tmp_path: Path) -> None:
    passing = gate_of(tmp_path, Otherwise.DROP, Otherwise.FAIL)
    with pytest.raises(UnmetError, match=r"'divisible by 3' .* is not met: offset=2"):
        written(tmp_path, passing, [batch_of(range(6), 2)])


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    passing = gate_of(tmp_path, Otherwise.QUARANTINE)
    assert written(tmp_path, passing, []) == ([], [], [0])


def test_what_is_quarantined_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "ROW_GROUP_BYTES", 64)
    passing = gate_of(tmp_path, Otherwise.QUARANTINE)
    batches = [batch_of(range(1, 21, 2), 1) for _ in range(10)]
    kept, bad, unmet = written(tmp_path, passing, batches)
    assert (kept, len(bad), unmet) == ([], 100, [100])
    assert len(list((tmp_path / "quarantine").glob("*.parquet"))) == 10
