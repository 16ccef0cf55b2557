"""Goal: a folder whose name is empty, as of a variable that is not set, is no working directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.cli.failure import EXIT_USAGE


@pytest.mark.parametrize(
    "words",
    [
        ["recover", "--data-folder", ""],
        ["recover", "--rebuild", "--data-folder", ""],
        ["audit", "--data-folder", ""],
        ["export", "topic", "--to", ""],
        ["import", ""],
        ["pipeline", "run", "topic", "--table", ""],
        ["pipeline", "run", "topic", "--table", "table", "--checkpoint", ""],
        ["pipeline", "run", "topic", "--table", "s3://bucket/table", "--state", ""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == EXIT_USAGE, result.output
    assert "it is empty" in result.output
    assert not list(tmp_path.iterdir())
