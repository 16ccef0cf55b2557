"""The short benchmarks compare themselves with a result that was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

import saved


def test_each_number_stands_beside_its_saved_one() -> None:
    (line,) = saved.lines({"seconds": 2.0}, {"seconds": 3.0})
    assert line.split() == ["seconds", "2", "3", "1.50"]


@pytest.mark.parametrize("before", [{}, {"seconds": 0.0}])
def test_without_a_saved_number_there_is_no_ratio(before: dict[str, float]) -> None:
    (line,) = saved.lines(before, {"seconds": 3.0})
    assert line.split() == ["seconds", "-", "3", "-"]


def test_only_what_is_kept_is_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(saved, "FOLDER", tmp_path / "results")
    saved.compare("thing", {"seconds": 1.0}, save=False)
    saved.compare("thing", {"seconds": 2.0}, save=True)
    assert "now/saved" not in capsys.readouterr().out
    saved.compare("thing", {"seconds": 3.0}, save=False)
    assert "1.50" in capsys.readouterr().out
