"""The first use of a fresh installation, in part: this environment instead of five new ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import newcomer
from newcomer import WAYS, first_foreign_read, first_send, used

ENVIRONMENT = Path(sys.executable).parents[1]
STARTED = {way.on_lowest_level: way for way in WAYS if not way.without_home}.values()
"""In one environment all but these start the same."""


@pytest.mark.parametrize("way", STARTED, ids=lambda way: way.name)
def test_nothing_is_compiled_at_the_first_use(way: newcomer.Way, tmp_path: Path) -> None:
    for title, step in (("send", first_send), ("read", first_foreign_read)):
        numbers = used(way, ENVIRONMENT, tmp_path / title, title, step)
        assert numbers[title] > 0


def test_a_broken_promise_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newcomer, "RESIDENT_MIB_MAX", 1)
    with pytest.raises(newcomer.BrokenPromiseError, match="the broker holds"):
        used(WAYS[0], ENVIRONMENT, tmp_path / "data", "send", first_send)
