"""The faulty file system forgets what it says it does; or else the crash tests prove nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival, each_once, failing

DIRECTORY = Path("/data/0")
FILE = DIRECTORY / "file"


@pytest.fixture
def disk() -> FaultyFileSystem:
    disk = FaultyFileSystem()
    disk.make_directory(DIRECTORY)
    disk.sync_directory(DIRECTORY.parent)
    return disk


def write(disk: FaultyFileSystem, data: bytes, position: int = 0, *, sync: bool = False) -> None:
    with closing(disk.open(FILE, write=True, create=True)) as file:
        file.pwritev([data], position)
        if sync:
            file.fdatasync()


def test_a_name_that_was_not_synced_is_forgotten(disk: FaultyFileSystem) -> None:
    write(disk, b"data", sync=True)
    assert disk.after_crash(Survival.NONE).entries(DIRECTORY) == {}
    assert disk.after_crash(Survival.ALL).entries(DIRECTORY) == {"file": 4}
    disk.sync_directory(DIRECTORY)
    assert disk.after_crash(Survival.NONE).entries(DIRECTORY) == {"file": 4}


def test_content_that_was_not_synced_is_forgotten(disk: FaultyFileSystem) -> None:
    write(disk, b"kept", sync=True)
    disk.sync_directory(DIRECTORY)
    write(disk, b"lost", 4)
    assert disk.after_crash(Survival.NONE).content(FILE).live == b"kept"
    assert disk.after_crash(Survival.ALL).content(FILE).live == b"keptlost"
    seen = {bytes(disk.after_crash(Survival.SOME, seed).content(FILE).live) for seed in range(99)}
    assert {b"kept", b"keptlost", b"keptlo", b"kept\0\0st"} <= seen


def test_a_rename_that_was_not_synced_is_undone(disk: FaultyFileSystem) -> None:
    write(disk, b"data", sync=True)
    disk.sync_directory(DIRECTORY)
    disk.rename(FILE, DIRECTORY / "other")
    assert disk.after_crash(Survival.NONE).entries(DIRECTORY) == {"file": 4}


def test_a_directory_is_a_name_too(disk: FaultyFileSystem) -> None:
    disk.make_directory(DIRECTORY / "inner")
    with pytest.raises(FileNotFoundError):
        disk.after_crash(Survival.NONE).entries(DIRECTORY / "inner")


def test_the_chosen_operation_fails_once(disk: FaultyFileSystem) -> None:
    disk.hook = failing(2, "pwritev")
    write(disk, b"first")
    with pytest.raises(OSError, match="made to fail"):
        write(disk, b"second")
    write(disk, b"third")
    assert disk.open_files == 0


def test_of_crashes_that_leave_and_promise_the_same_one_is_looked_at(
    disk: FaultyFileSystem,
) -> None:
    write(disk, b"data", sync=True)
    disk.sync_directory(DIRECTORY)
    same = [disk.after_crash(each) for each in Survival]
    write(disk, b"more")
    others = [disk.after_crash(Survival.ALL), disk.after_crash(Survival.NONE)]
    others[1].rename(FILE, FILE.with_name("another"))
    crashes = [("moment", left, 7) for left in (*same, *others)]
    crashes.append(("moment", same[0], 8))
    assert list(each_once(crashes)) == [crashes[0], *crashes[3:]]
