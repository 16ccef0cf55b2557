"""`penstock pipeline compact` by what it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from command_line import Penstock
from penstock.pipeline.tables.interface import StagedFile, TableConfig, TableFormat
from penstock.pipeline.tables.opening import open_table

SCHEMA = pa.schema([pa.field("offset", pa.int64())])


def filled(config: TableConfig, batches: int) -> None:
    table = open_table(config)
    for batch in range(batches):
        rows = pa.record_batch([[batch]], schema=SCHEMA)
        (piece,) = table.prepare(SCHEMA).write([rows], "q", batch)
        place = ("a", 0, batch, batch + 1)
        file = StagedFile(piece.staged, *place, 1, piece.size, footer=piece.footer)
        table.commit("q", batch, [file])


def test_it_says_what_it_merged(command: Penstock, tmp_path: Path) -> None:
    folder = str(tmp_path / "table")
    filled(TableConfig(folder, TableFormat.ICEBERG), 3)
    definition = tmp_path / "orders.toml"
    definition.write_text(
        '[read]\nserver = "127.0.0.1:1"\ntopics = ["orders"]\n'
        '[write]\ntable = "table"\nformat = "iceberg"\n'
    )
    done = command("pipeline", "compact", folder, "--format", "json")
    assert json.loads(done.stdout) == {"merged": 3, "into": 1}
    done = command("pipeline", "compact", str(definition))
    assert done.stdout == f"{definition}: no two small files are left to merge\n"


@pytest.mark.parametrize("name", ["table", "nothing"])
def test_it_says_why_it_can_t(command: Penstock, tmp_path: Path, name: str) -> None:
    filled(TableConfig(str(tmp_path / "table")), 1)
    done = command("pipeline", "compact", str(tmp_path / name), code=1)
    assert "delta or iceberg" in done.stderr if name == "table" else "no table" in done.stderr


def test_a_name_that_is_not_utf_8_is_refused(command: Penstock, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    done = command("pipeline", "compact", str(folder), code=1)
    assert "\\xff' is not UTF-8, as names of tables have to be" in done.stderr
    assert "Traceback" not in done.stderr
