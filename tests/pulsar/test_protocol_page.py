"""Goal: the page that goes through Pulsar's protocol leaves no command out, and what it names as
proof is there.
"""

from __future__ import annotations

import re
from pathlib import Path

from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand

TESTS = Path(__file__).parent
PAGE = (TESTS.parents[1] / "docs" / "pulsar-protocol.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| (\w+) \|", re.MULTILINE)
NAMED = re.compile(r"`(test_\w+)`")


def rows() -> list[str]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.endswith(("| test |", "| --- |"))]


def test_every_command_has_a_row() -> None:
    kinds = BaseCommand.DESCRIPTOR.enum_types_by_name["Type"].values
    assert ROW.findall(PAGE) == [(str(kind.number), kind.name) for kind in kinds]


def test_every_row_names_a_test_that_is_there() -> None:
    files = [*TESTS.glob("test_*.py"), *(TESTS.parent / "broker").glob("test_*.py")]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    there = set(re.findall(r"def (test_\w+)\(", text))
    assert len(rows()) > 80
    for row in rows():
        named = NAMED.findall(row.rpartition(" | ")[2])
        assert named, row
        assert set(named) <= there, row
