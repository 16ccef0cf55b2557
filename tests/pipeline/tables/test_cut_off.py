"""A run that ends between two steps of a commit, as kill -9 ends it, and the next one after it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.pipeline.tables import merging
from penstock.pipeline.tables.delta import DeltaLakeTable
from penstock.pipeline.tables.iceberg import IcebergTable
from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableFormat
from penstock.pipeline.tables.opening import open_table
from table_readers import READERS, offsets_seen

SCHEMA = pa.schema([pa.field("key", pa.int64()), pa.field("offset", pa.int64())])
KINDS = {TableFormat.DELTA: DeltaLakeTable, TableFormat.ICEBERG: IcebergTable}
STEPS = ["_own", "_apply", "_merge", "_expire"]
KEYS = 4


class Killed(BaseException):
    """What no handler takes for an error of its own."""


@pytest.fixture
def dies(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str, bool, int], Any]:
    """Have the n-th call of a step end the run, before it or after it."""

    def die(kind: type, step: str, after: bool, call: int) -> Any:
        original = getattr(kind, step)
        calls = iter(range(call))

        def cut_off(*arguments: Any) -> Any:
            is_last = next(calls, None) == call - 1
            if is_last and not after:
                raise Killed
            result = original(*arguments)
            if is_last:
                raise Killed
            return result

        monkeypatch.setattr(kind, step, cut_off)
        return lambda: monkeypatch.setattr(kind, step, original)

    return die


def give(config: TableConfig, batch: int) -> None:
    """Do what a run does for a batch: it knows nothing of the ones before."""
    table = open_table(config)
    numbers = range(batch * 5, batch * 5 + 5)
    rows = pa.record_batch([[each % KEYS for each in numbers], list(numbers)], schema=SCHEMA)
    place = ("a", 0, numbers.start, numbers.stop)
    files = [
        StagedFile(piece.staged, *place, piece.rows, piece.size, footer=piece.footer)
        for piece in table.prepare(SCHEMA).write([rows], "q", batch)
    ]
    table.commit("q", batch, files)


def expected(keyed: bool, batches: int) -> list[int]:
    offsets = range(batches * 5)
    return list(offsets)[-KEYS:] if keyed else list(offsets)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", list(KINDS))
def test_each_row_is_there_once_wherever_a_run_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies: Callable[[type, str, bool, int], Any],
    kind: TableFormat,
    keyed: bool,
) -> None:
    monkeypatch.setattr(merging, "SMALL_FILES_MAX", 1)
    keys = ("key",) if keyed else ()
    config = TableConfig(str(tmp_path / "table"), kind, keys=keys)
    deaths = [(step, after) for step in STEPS for after in (False, True)]
    random.Random(5).shuffle(deaths)
    killed = 0
    for batch, (step, after) in enumerate(deaths):
        undo = dies(KINDS[kind], step, after, 1)
        try:
            give(config, batch)
        except Killed:
            killed += 1
        undo()
        if batch:
            for reader in READERS[kind]:
                assert offsets_seen(reader, config) in (
                    expected(keyed, batch),
                    expected(keyed, batch + 1),
                ), (step, after)
        give(config, batch)
        for reader in READERS[kind]:
            assert offsets_seen(reader, config) == expected(keyed, batch + 1), (step, after)
    assert killed >= (4 if keyed else 7)
