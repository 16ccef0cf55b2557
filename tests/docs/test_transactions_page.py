"""Goal: what the page on transactions says of refusals is proved by the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "transactions.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(test_\w+)`")


def test_every_row_names_a_test_that_is_there() -> None:
    files = (
        each for folder in ("broker", "kafka", "pulsar") for each in (TESTS / folder).glob("*.py")
    )
    there = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())}
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [line for line in lines if not line.endswith(("| test |", "| --- |"))]
    assert len(rows) > 30
    for row in rows:
        named = NAMED.findall(row.rpartition(" | ")[2])
        assert named, row
        assert set(named) <= there, row
