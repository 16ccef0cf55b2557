"""Goal: a batch that is done again is told from another one of its number by its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import limits
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.fingerprints import Fingerprint, fingerprint_of, rows_of

POSITIONS = {"orders": {"0": 17, "1": 4, "id": "a"}, "returns": {"0": 3}}
FILES = {"logOffset": 3}
"""As Spark's source of files says it: which of the entries beside the log is the last one."""


def planned(folder: Path, *sources: Any, at_ms: int = 1, version: str = "v1") -> str:
    """Plan batch 7 as Spark does, and return what it reads."""
    (folder / "offsets").mkdir(exist_ok=True)
    (folder / "metadata").write_text('{"id":"abc"}')
    lines = [version, json.dumps({"batchTimestampMs": at_ms}), *map(json.dumps, sources)]
    (folder / "offsets" / "7").write_text("\n".join(lines))
    return rows_of(str(folder), "query-abc", 7)


def test_positions_say_what_a_batch_reads(tmp_path: Path) -> None:
    first = planned(tmp_path, POSITIONS)
    assert first
    turned = {name: POSITIONS[name] for name in reversed(POSITIONS)}
    assert planned(tmp_path, turned, at_ms=2) == first, "planned again, of the same rows"
    for other in (
        POSITIONS | {"returns": {"0": 4}},
        POSITIONS | {"returns": {"0": 3, "id": "made anew"}},
        POSITIONS | {"more": {"0": 0}},
        {"orders": POSITIONS["orders"]},
    ):
        assert planned(tmp_path, other) != first
    assert planned(tmp_path, POSITIONS, POSITIONS) != first


@pytest.mark.parametrize("source", [FILES, 12, "-", [1], {}])
def test_what_only_counts_is_of_one_plan(tmp_path: Path, source: Any) -> None:
    first = planned(tmp_path, source, POSITIONS)
    assert planned(tmp_path, source, POSITIONS) == first
    assert planned(tmp_path, source, POSITIONS, at_ms=2) != first


def test_a_form_that_is_not_known_is_compared_as_it_is(tmp_path: Path) -> None:
    first = planned(tmp_path, POSITIONS, version="v2")
    assert planned(tmp_path, POSITIONS, version="v2", at_ms=2) != first


def test_a_checkpoint_is_found_where_it_is_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = planned(tmp_path, POSITIONS)
    for location in (f"file:{tmp_path}", f"file://{tmp_path}"):
        assert rows_of(location, "query-abc", 7) == first
    monkeypatch.chdir(tmp_path.parent)
    assert rows_of(tmp_path.name, "query-abc", 7) == first
    for location in (
        None,
        "s3a://bucket/checkpoint",
        "hdfs:///checkpoint",
        f"file://far{tmp_path}",
    ):
        assert rows_of(location, "query-abc", 7) == ""
    assert rows_of(str(tmp_path), "query-another", 7) == "", "it is another query's"
    assert rows_of(str(tmp_path / "none"), "query-abc", 7) == ""


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    planned(tmp_path, POSITIONS)
    with pytest.raises(SinkError, match="offsets/8 does not say what batch 8 reads"):
        rows_of(str(tmp_path), "query-abc", 8)
    (tmp_path / "offsets" / "8").write_bytes(b"v1\n\xff")
    with pytest.raises(SinkError, match="the checkpoint is damaged"):
        rows_of(str(tmp_path), "query-abc", 8)


def test_what_is_not_known_says_nothing() -> None:
    made = fingerprint_of("a", "orders", 7)
    assert Fingerprint.parse(str(made)) == made
    assert made.differs(fingerprint_of("b", "returns")) == "rows"
    for rows in ("a", ""):
        assert made.differs(fingerprint_of(rows, "returns")) == "topic"
        assert made.differs(fingerprint_of(rows, None)) == "topic"
        assert made.differs(fingerprint_of(rows, "orders")) is None
    for text in ("", "1:a", "1:a:b:c", "2:b:c", "2:b:c:8:d", "3:b:c:8"):
        assert made.differs(Fingerprint.parse(text)) is None


def test_rows_are_counted_where_it_is_not_known_which_they_are() -> None:
    made, unknown = fingerprint_of("a", "orders", 7), fingerprint_of("", "orders", 7)
    assert made.differs(fingerprint_of("a", "orders", 8)) is None
    for one, other in ((made, unknown), (unknown, made), (unknown, unknown)):
        assert one.differs(other) is None
        assert one.differs(other._replace(row_count="8")) == "row_count"
        assert one.differs(other._replace(row_count="")) is None


def test_a_fingerprint_of_an_earlier_version_has_no_count() -> None:
    earlier = Fingerprint.parse(f"1:a:{fingerprint_of('a', 'orders').topic}")
    assert earlier.differs(fingerprint_of("a", "orders", 7)) is None
    assert earlier.differs(fingerprint_of("b", "orders", 7)) == "rows"
    assert earlier.differs(fingerprint_of("a", "returns", 7)) == "topic"


def test_a_broker_takes_a_fingerprint_of_any_batch(tmp_path: Path) -> None:
    made = str(fingerprint_of(planned(tmp_path, POSITIONS), "orders", 999_999_999_999))
    assert len(made) <= limits.FINGERPRINT_CHARACTERS
