"""What the page on troubleshooting quotes is what the broker says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SOURCE = "\n".join(path.read_text() for path in (ROOT / "src" / "penstock").rglob("*.py"))
QUOTED = ["a write failed", "closed for writing: a flush failed"]
NAMED = sorted(set(re.findall(r"`([A-Z]+_[A-Z_]+|[A-Z]\w+Error|TooManyRequests)`", PAGE)))
FLAGS = sorted(set(re.findall(r"`(?:[\w ]+ )?--([a-z-]+)", PAGE)))


@pytest.mark.parametrize("line", QUOTED)
def test_lines_of_the_log_are_quoted_as_they_are(line: str) -> None:
    assert line in PAGE
    assert line in SOURCE


@pytest.mark.parametrize("name", NAMED)
def test_errors_are_named_as_they_are(name: str) -> None:
    assert re.search(rf"\b{name}\b", SOURCE)


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_are_there(flag: str) -> None:
    assert re.search(rf"\b{flag.replace('-', '[-_]')}\b", SOURCE)
