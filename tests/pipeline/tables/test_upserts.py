"""Tables with keys: the last row of each stays, or none, however often a batch is given."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.pipeline.tables.changes import as_changes
from penstock.pipeline.tables.interface import (
    ChangeForm,
    StagedFile,
    TableConfig,
    TableError,
    TableFormat,
)
from penstock.pipeline.tables.lake import LakeTable
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.table import Table
from table_readers import ROWS

LAKES = [TableFormat.DELTA, TableFormat.ICEBERG]
RAW = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.struct([pa.field("key", pa.string())]))),
    ]
)
ROW = pa.struct(
    [pa.field("id", pa.int64()), pa.field("part", pa.string()), pa.field("note", pa.string())]
)
ENVELOPE = pa.schema(
    [
        pa.field("op", pa.string()),
        pa.field("before", ROW),
        pa.field("after", ROW),
        pa.field("ts_ms", pa.int64()),
    ]
)
State = dict[Any, Any]


def raw(*pairs: tuple[str, str | None]) -> pa.RecordBatch:
    rows = [
        {"key": k.encode(), "value": v and v.encode(), "headers": [{"key": "h"}]} for k, v in pairs
    ]
    return pa.RecordBatch.from_pylist(rows, schema=RAW)


def row(number: int, note: str, part: str = "p") -> dict[str, Any]:
    return {"id": number, "part": part, "note": note}


def envelopes(*changes: tuple[str | None, Any, Any]) -> pa.RecordBatch:
    rows = [{"op": op, "before": old, "after": new, "ts_ms": 1} for op, old, new in changes]
    return pa.RecordBatch.from_pylist(rows, schema=ENVELOPE)


def give(table: Table, batch: int, *partitions: pa.RecordBatch) -> int:
    files: list[StagedFile] = []
    for partition, rows in enumerate(partitions):
        for piece in table.prepare(rows.schema).write([rows], "q", batch):
            place = ("a", partition, batch * 100, batch * 100 + 100)
            files.append(StagedFile(piece.staged, *place, piece.rows, piece.size))
    return table.commit("q", batch, files)


def seen(table: Table, *keys: str) -> State:
    found = []
    for reader in ROWS[table.config.format]:
        rows = reader(table.config.location).to_pylist()
        state = {tuple(each[key] for key in keys): each for each in rows}
        assert len(state) == len(rows), "a key has two rows"
        found.append(state)
    assert all(each == found[0] for each in found)
    return found[0]


def values(table: Table) -> dict[str, str]:
    return {k.decode(): each["value"].decode() for (k,), each in seen(table, "key").items()}


def keyed(folder: Path, kind: TableFormat, **settings: Any) -> Table:
    return open_table(TableConfig(str(folder / "t"), kind, **{"keys": ("key",), **settings}))


@pytest.mark.parametrize("kind", LAKES)
def test_the_last_row_of_a_key_stays(tmp_path: Path, kind: TableFormat) -> None:
    table = keyed(tmp_path, kind)
    give(table, 0, raw(("a", "1"), ("b", "1"), ("a", "2")), raw(("c", "1")))
    assert values(table) == {"a": "2", "b": "1", "c": "1"}
    for _ in range(2):
        give(table, 1, raw(("b", None), ("c", "2"), ("d", "1"), ("e", "1"), ("e", None)))
        assert values(table) == {"a": "2", "c": "2", "d": "1"}
    give(table, 2, raw(("b", "3"), ("nobody", None)))
    assert values(table) == {"a": "2", "b": "3", "c": "2", "d": "1"}
    assert not [each for each in tmp_path.glob("t/_penstock/changes/**/*") if each.is_file()]


@pytest.mark.parametrize("kind", LAKES)
def test_a_batch_may_take_everything_away(tmp_path: Path, kind: TableFormat) -> None:
    table = keyed(tmp_path, kind)
    give(table, 0, raw(("a", "1"), ("b", "1")))
    give(table, 1, raw(("b", None), ("a", None)))
    assert values(table) == {}
    give(table, 2, raw(("a", "1")))
    assert values(table) == {"a": "1"}


@pytest.mark.parametrize("kind", LAKES)
def test_files_without_a_changed_key_stay(tmp_path: Path, kind: TableFormat) -> None:
    table = keyed(tmp_path, kind)
    assert isinstance(table, LakeTable)
    give(table, 0, raw(("a", "1"), ("b", "1")))
    give(table, 1, raw(("x", "1"), ("z", "1")))
    before = {file.name for file in table._files()}
    give(table, 2, raw(("y", "1"), ("b", "2")))
    after = {file.name for file in table._files()}
    assert len(before & after) == 1
    assert values(table) == {"a": "1", "b": "2", "x": "1", "y": "1", "z": "1"}


@pytest.mark.parametrize("kind", LAKES)
def test_envelopes_of_debezium(tmp_path: Path, kind: TableFormat) -> None:
    settings = {"keys": ("id",), "changes": ChangeForm.DEBEZIUM, "partition_by": ("part",)}
    table = keyed(tmp_path, kind, **settings)
    made = [("c", None, row(n, "new")) for n in range(4)]
    give(table, 0, envelopes(("r", None, row(9, "read")), *made))
    changes = envelopes(
        ("u", row(0, "new"), row(0, "changed", part="q")),
        ("d", row(1, "new"), None),
        (None, None, None),
        ("u", row(2, "new"), row(20, "moved")),
        ("u", None, row(3, "changed")),
        ("m", None, None),
    )
    for _ in range(2):
        give(table, 1, changes)
        notes = {number: each["note"] for (number,), each in seen(table, "id").items()}
        assert notes == {0: "changed", 3: "changed", 9: "read", 20: "moved"}


@pytest.mark.parametrize("kind", LAKES)
def test_random_changes_by_two_keys_end_as_a_dictionary_does(
    tmp_path: Path, kind: TableFormat
) -> None:
    chance = random.Random(7)
    settings = {"keys": ("id", "part"), "changes": ChangeForm.DEBEZIUM, "target_bytes": 3000}
    table = keyed(tmp_path, kind, **settings)
    state: State = {}
    for batch in range(8):
        changes = []
        for number in range(chance.randrange(1, 30)):
            key = (chance.randrange(12), chance.choice(["p", "q", "r"]))
            new = row(key[0], f"{batch}-{number}", key[1])
            if chance.random() < 0.3 and key in state:
                changes.append(("d", state.pop(key), None))
            elif chance.random() < 0.2 and state:
                old = chance.choice(sorted(state))
                changes.append(("u", state.pop(old), new))
                state[key] = new
            else:
                changes.append(("u" if key in state else "c", state.get(key), new))
                state[key] = new
        for _ in range(chance.choice([1, 2])):
            give(table, batch, envelopes(*changes))
        assert seen(table, "id", "part") == state


def test_changes_without_a_key_are_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path, TableFormat.DELTA)
    rows = raw(("a", "1")).set_column(0, "key", pa.array([None], pa.binary()))
    with pytest.raises(TableError, match="1 changes have no key"):
        give(table, 0, rows)


def test_a_plain_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="use --table-format delta or iceberg"):
        keyed(tmp_path, TableFormat.PARQUET).prepare(RAW)


@pytest.mark.parametrize(
    ("settings", "schema", "message"),
    [
        ({"keys": ("id",)}, RAW, "key 'id' is none of the columns key, value, headers"),
        ({"keys": ("headers",)}, RAW, "can't be of type list"),
        ({"changes": ChangeForm.DEBEZIUM}, RAW, "have the columns op, before and after"),
    ],
)
def test_what_can_be_no_key_is_refused(
    tmp_path: Path, settings: Any, schema: pa.Schema, message: str
) -> None:
    with pytest.raises(TableError, match=message):
        keyed(tmp_path, TableFormat.DELTA, **settings).prepare(schema)
    assert not (tmp_path / "t").exists()


def test_a_change_that_a_table_can_t_follow_is_refused() -> None:
    with pytest.raises(TableError, match="'t' can't be followed"):
        as_changes(envelopes(("t", None, None)), ChangeForm.DEBEZIUM, ["id"])
    with pytest.raises(TableError, match="say nothing of the row that they delete"):
        as_changes(envelopes(("d", None, None)), ChangeForm.DEBEZIUM, ["id"])
