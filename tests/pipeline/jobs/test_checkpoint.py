from __future__ import annotations

from pathlib import Path

import pytest

from penstock.pipeline.jobs import checkpoint
from penstock.pipeline.jobs.batch_ends import CheckpointError
from penstock.pipeline.jobs.checkpoint import Checkpoint, PlannedBatch

END = {"orders": {"0": 17, "id": "an id"}}


def test_a_batch_is_planned_and_done(tmp_path: Path) -> None:
    made = Checkpoint(tmp_path / "checkpoint")
    assert made.newest() is None
    assert made.is_plain
    made.plan(0, {"orders": {"0": 3}})
    made.finish(0)
    made.plan(1, END)
    again = Checkpoint(tmp_path / "checkpoint")
    assert again.newest() == PlannedBatch(1, END, is_done=False)
    assert again.end_of(0) == {"orders": {"0": 3}}
    made.finish(1)
    assert again.newest() == PlannedBatch(1, END, is_done=True)
    assert again.is_plain


def test_a_query_keeps_its_name(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path).query() == Checkpoint(tmp_path).query()
    assert Checkpoint(tmp_path / "other").query() != Checkpoint(tmp_path).query()


def test_what_only_spark_reads_is_seen(tmp_path: Path) -> None:
    made = Checkpoint(tmp_path)
    made.plan(0, END)
    offsets = tmp_path / "offsets" / "0"
    of_one = offsets.read_text()
    for text in (of_one.replace("v1", "v2"), of_one + "\n{}"):
        offsets.write_text(text)
        assert not made.is_plain
    offsets.write_text(of_one)
    (tmp_path / "state").mkdir()
    assert not made.is_plain


def test_older_batches_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "BATCHES_KEPT", 3)
    made = Checkpoint(tmp_path)
    for batch in range(checkpoint.BATCHES_KEPT + 5):
        made.plan(batch, END)
        (tmp_path / "offsets" / f".{batch}.crc").touch()
        made.finish(batch)
    for kind in ("offsets", "commits"):
        kept = [int(each.name) for each in (tmp_path / kind).glob("[0-9]*")]
        assert sorted(kept) == list(range(5, checkpoint.BATCHES_KEPT + 5))
    assert len(list((tmp_path / "offsets").glob(".*.crc"))) == checkpoint.BATCHES_KEPT


def test_a_checksum_that_spark_left_is_not_of_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    stale = tmp_path / "offsets" / ".0.crc"
    stale.write_bytes(b"crc of a file that never came to be")
    Checkpoint(tmp_path).plan(0, END)
    assert not stale.exists()


@pytest.mark.parametrize("text", ["", "v1\n{}\n", "v1\n{}\n{"])
def test_a_damaged_one_is_named(tmp_path: Path, text: str) -> None:
    made = Checkpoint(tmp_path)
    made.plan(0, END)
    (tmp_path / "offsets" / "0").write_text(text)
    with pytest.raises(CheckpointError, match="offsets/0 does not say where its batch ends"):
        made.newest()
