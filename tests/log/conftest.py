"""Both file systems, for the tests that any must pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem
from log_batches import SMALL
from penstock.log import FileSystem, Flusher, LocalLog, LogConfig, RealFileSystem

pytest.register_assert_rewrite("log_conformance")


@pytest.fixture(params=["memory", "disk"])
def files(request: pytest.FixtureRequest) -> FileSystem:
    return FaultyFileSystem() if request.param == "memory" else RealFileSystem()


@pytest.fixture
def open_anywhere(files: FileSystem, flusher: Flusher, tmp_path: Path) -> Callable[..., LocalLog]:
    """Open the test's log, on whichever file system the test runs on."""

    def open_log(config: LogConfig = SMALL, leader_epoch: int = 0) -> LocalLog:
        return LocalLog.open(tmp_path / "0", config, files, flusher, leader_epoch)

    return open_log
