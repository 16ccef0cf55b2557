"""Two brokers never share a data folder, and a crash leaves no lock behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from penstock.broker.errors import DataFolderError
from penstock.server.data_folder import LOCK_NAME, DataFolderLock


def test_the_folder_is_made_and_held(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "data"
    held = pytest.raises(DataFolderError, match=rf"process id {os.getpid()};.*--data-folder")
    with DataFolderLock(folder), held:
        DataFolderLock(folder).__enter__()
    with DataFolderLock(folder):
        pass


def test_it_is_held_where_its_file_is_removed(tmp_path: Path) -> None:
    with DataFolderLock(tmp_path):
        (tmp_path / LOCK_NAME).unlink()
        with pytest.raises(DataFolderError, match="in use"):
            DataFolderLock(tmp_path).__enter__()
    with DataFolderLock(tmp_path):
        pass


def test_a_folder_that_can_not_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderError, match=r"can't be used.*--data-folder"):
        DataFolderLock(tmp_path / "file" / "data").__enter__()


@pytest.mark.parametrize("target", ["file", "missing"])
def test_what_is_no_folder_is_named_so(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "data").symlink_to(tmp_path / target)
    with pytest.raises(DataFolderError, match=r"can't be used: Not a directory; .*--data-folder"):
        DataFolderLock(tmp_path / "data").__enter__()


def test_a_broker_stops_when_its_data_folder_is_removed(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.start()
    try:
        broker.data_folder.rename(tmp_path / "away")
        broker.wait_for_log("was removed or replaced under the broker", 20)
        assert not broker.data_folder.exists()
    finally:
        broker.end()
