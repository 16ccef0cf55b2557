"""The operating system's files, as a log uses them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.log import RealFileSystem
from penstock.log import files as module


def test_what_is_renamed_while_a_folder_is_listed_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checkpoint.new").write_bytes(b"new")
    (tmp_path / "segment").write_bytes(b"segment")
    scan = os.scandir

    @contextmanager
    def renaming(directory: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scan(directory) as found:
            entries = list(found)
        (tmp_path / "checkpoint.new").rename(tmp_path / "checkpoint")
        yield entries

    monkeypatch.setattr(module.os, "scandir", renaming)
    assert RealFileSystem().entries(tmp_path) == {"segment": 7}
