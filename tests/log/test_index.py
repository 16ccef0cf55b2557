"""The sparse indexes by themselves: their layout, and look-ups over saved and unsaved entries."""

from __future__ import annotations

import struct
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faulty_files import FaultyFileSystem
from penstock.log.index import EntryFile, SegmentIndex
from penstock.log.reading import lending

DIRECTORY = Path("/data/0")
PATH = DIRECTORY / "entries"
LAYOUT = struct.Struct(">ii")


@pytest.fixture
def disk() -> FaultyFileSystem:
    return new_disk()


def new_disk() -> FaultyFileSystem:
    disk = FaultyFileSystem()
    disk.make_directory(DIRECTORY)
    return disk


@given(
    saved=st.integers(0, 30),
    unsaved=st.integers(0, 30),
    step=st.integers(1, 5),
    key=st.integers(-2, 70),
)
def test_a_look_up_gives_the_nearest_entries_below(
    saved: int, unsaved: int, step: int, key: int
) -> None:
    entries = [(number * step, number) for number in range(saved + unsaved)]
    disk = new_disk()
    file = EntryFile(disk, PATH, LAYOUT, 0)
    for number, entry in enumerate(entries):
        if number == saved:
            file.save()
        file.append(entry)
    expected = [entry for entry in reversed(entries) if entry[0] <= key][:8]
    with lending(disk) as lend:
        assert file.below(key, lend) == expected
    assert file.last() == (entries[-1] if entries else None)


def test_entries_are_written_out_in_blocks(disk: FaultyFileSystem) -> None:
    writes: list[str] = []
    disk.hook = lambda operation, path: writes.append(operation)
    file = EntryFile(disk, PATH, LAYOUT, 0)
    for number in range(1_100):
        file.append((number, number))
    assert writes.count("pwritev") == 2
    assert disk.entries(DIRECTORY) == {"entries": 1_024 * LAYOUT.size}
    with lending(disk) as lend:
        assert file.below(1_000, lend)[0] == (1_000, 1_000)
        assert file.below(1_050, lend)[0] == (1_050, 1_050)


def test_a_file_that_became_shorter_offers_what_is_left(disk: FaultyFileSystem) -> None:
    file = EntryFile(disk, PATH, LAYOUT, 0)
    for number in range(20):
        file.append((number, number))
    file.save()
    disk.content(PATH).write(10 * LAYOUT.size, None)
    with lending(disk) as lend:
        assert file.below(4, lend)[0] == (4, 4)
        assert all(entry in [(n, n) for n in range(10)] for entry in file.below(15, lend))


def test_the_layout_is_kafkas(disk: FaultyFileSystem) -> None:
    index = SegmentIndex(disk, DIRECTORY / "0", 100)
    index.add(0, 80, 4, 1_000)
    index.add(80, 80, 9, 3_000)
    index.add(160, 80, 14, 2_000)
    index.save()
    assert bytes(disk.content(DIRECTORY / "0.index").live) == struct.pack(">ii", 14, 160)
    assert bytes(disk.content(DIRECTORY / "0.timeindex").live) == struct.pack(">qi", 3_000, 9)


@pytest.mark.parametrize("damaged", [b"\0" * 16, b"\x7f" * 16, b"\0\0\0\5\0\0\0\5\0\0\0\4\0\0\0\6"])
def test_entries_that_do_not_ascend_do_not_fit(disk: FaultyFileSystem, damaged: bytes) -> None:
    disk.open(DIRECTORY / "0.index", write=True, create=True).pwritev([damaged], 0)
    index = SegmentIndex(disk, DIRECTORY / "0", 100, (len(damaged), 0))
    index.cut(position=50, last_offset=20)
    with lending(disk) as lend:
        assert index.offsets.below(100, lend) == []
    assert index.fits == (damaged[0] == 0x7F)  # Entries beyond the cut are no sign of damage.


@given(st.lists(st.tuples(st.integers(61, 2_000), st.integers(-1, 9)), min_size=1), st.integers(1))
def test_a_run_is_indexed_as_its_batches_would_be(
    batches: list[tuple[int, int]], run_length: int
) -> None:
    first, second = new_disk(), new_disk()
    one_by_one, in_runs = (SegmentIndex(each, PATH, 1_000) for each in (first, second))
    run_length = min(run_length, len(batches))
    position = 0
    for start in range(0, len(batches), run_length):
        run = batches[start : start + run_length]
        positions = list(accumulate((size for size, _ in run), initial=0))
        for number, (size, time) in enumerate(run):
            one_by_one.add(position + positions[number], size, start + number, time)
        offsets = range(100 + start, 100 + start + len(run))
        latest = list(accumulate((time for _, time in run), max))
        in_runs.add_run((100, position), positions[-1], positions[:-1], offsets, latest)
        position += positions[-1]
    for index in (one_by_one, in_runs):
        index.save()
    for path in one_by_one.paths:
        assert first.content(path).live == second.content(path).live
