"""Ranges of sound batches: what is known of them, and that they are what a read returns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log_batches import append, make_batch, write_now
from penstock.limits import FROM_FILE_BYTES
from penstock.log import Flusher, LocalLog, LogConfig, RealFileSystem
from penstock.log.header import Magic, read_header
from penstock.log.scan import Place
from penstock.log.verified import Verified
from penstock.session import FileRange

BATCH = st.tuples(st.integers(61, 90_000), st.integers(1, 20), st.sampled_from([2, 0x50]))


@given(
    sizes=st.lists(BATCH, min_size=1, max_size=60),
    checked=st.lists(st.tuples(st.integers(0, 59), st.integers(1, 20)), max_size=15),
    asked=st.lists(st.tuples(st.integers(0, 59), st.integers(0, 500_000), st.integers(0, 1_000))),
)
def test_a_range_is_whole_batches_of_one_encoding_that_were_checked(
    sizes: list[tuple[int, int, int]],
    checked: list[tuple[int, int]],
    asked: list[tuple[int, int, int]],
) -> None:
    places = [Place(0, 0)]
    for size, count, _ in sizes:
        places.append(Place(places[-1].position + size, places[-1].offset + count))
    verified = Verified()
    known: set[int] = set()
    for first, count in checked:
        run = range(first, min(first + count, len(sizes)))
        if run and len({sizes[number][2] for number in run}) == 1:
            verified.add(places[first], *places[run[-1] + 1], sizes[first][2])
            known.update(run)
    for first, max_bytes, end in asked:
        if first >= len(sizes):
            continue
        magic = sizes[first][2]
        found = verified.range_from(places[first], max_bytes, end, magic)
        assert verified.range_from(places[first], max_bytes, end, 0x49) is None
        if found is not None:
            last = places.index(found)
            assert first < last
            assert found.position - places[first].position <= max_bytes
            assert found.offset <= end
            for number in range(first, last):
                assert number in known
                assert sizes[number][2] == magic


def test_what_is_appended_is_known_at_once_and_costs_little_memory() -> None:
    verified = Verified()
    place = Place(0, 0)
    for _ in range(40_000):
        following = Place(place.position + 40_000, place.offset + 10)
        verified.add(place, *following, 2)
        place = following
    found = verified.range_from(Place(400_000, 100), 1 << 20, 1 << 40, 2)
    assert found is not None
    assert 500_000 < found.position - 400_000 <= 1 << 20
    assert verified.range_from(Place(0, 0), 1 << 40, 1 << 40, 2) == place
    (run,) = verified._runs
    assert len(run._positions) <= 16_384


def test_encodings_that_alternate_are_remembered_in_part() -> None:
    verified = Verified()
    for number in range(1_000):
        place = Place(number * 100, number)
        verified.add(place, place.position + 100, place.offset + 1, 2 + number % 2)
    assert len(verified._runs) <= 32
    assert verified.range_from(Place(99_900, 999), 100, 1_000, 3) == Place(100_000, 1_000)


def content(found: FileRange | None) -> bytes:
    assert found is not None
    return os.pread(found.descriptor, len(found), found.position)


def open_real(tmp_path: Path, flusher: Flusher, **config: int) -> LocalLog:
    return LocalLog.open(tmp_path / "0", LogConfig(**config), RealFileSystem(), flusher)


async def test_a_range_is_what_a_read_returns(tmp_path: Path, flusher: Flusher) -> None:
    log = open_real(tmp_path, flusher, segment_bytes=1 << 20)
    for number in range(200):
        append(log, make_batch(2, 10_000, seed=number))
    write_now(log)
    assert log.segment_count == 2
    offset = 0
    while offset < log.end_offset:
        whole = bytes((await log.read(offset, 1 << 18)).data)
        found = log.sound_range(offset, 1 << 18, Magic.KAFKA)
        if found is None:
            offset = (await log.read(offset, 1 << 18)).next_offset
            continue
        data = content(found)
        assert len(data) >= FROM_FILE_BYTES
        assert whole.startswith(data)
        assert read_header(data).base_offset == offset
        offset += 2 * (len(data) // 10_061)
    assert log.sound_range(0, 1 << 18, Magic.PULSAR) is None
    assert log.sound_range(0, FROM_FILE_BYTES - 1, Magic.KAFKA) is None
    below = log.sound_range(0, 1 << 18, Magic.KAFKA, 11)
    assert below is None or len(below) <= 5 * 10_061
    log.abandon()


async def test_what_was_not_verified_is_read_and_checked_first(
    tmp_path: Path, flusher: Flusher
) -> None:
    log = open_real(tmp_path, flusher)
    for number in range(50):
        append(log, make_batch(1, 10_000, seed=number))
    write_now(log)
    log.close()
    log = open_real(tmp_path, flusher)
    assert log.sound_range(0, 1 << 20, Magic.KAFKA) is None
    whole = bytes((await log.read(0, 1 << 20)).data)
    assert content(log.sound_range(0, 1 << 20, Magic.KAFKA)) == whole
    log.abandon()


async def test_damage_that_was_met_is_in_no_range(tmp_path: Path, flusher: Flusher) -> None:
    log = open_real(tmp_path, flusher)
    for number in range(50):
        append(log, make_batch(1, 10_000, seed=number))
    write_now(log)
    (path,) = (tmp_path / "0").glob("*.log")
    descriptor = os.open(path, os.O_RDWR)
    os.pwrite(descriptor, b"\xff\x00\xff", 20 * 10_061 + 100)
    os.close(descriptor)
    batches = await log.read(0, 1 << 20)
    assert batches.next_offset == 20
    with pytest.raises(Exception, match="damaged"):
        await log.read(20, 100)
    assert log.sound_range(0, 1 << 20, Magic.KAFKA) is None
    log.abandon()


async def test_a_range_outlives_the_removal_of_its_segment(
    tmp_path: Path, flusher: Flusher
) -> None:
    log = open_real(tmp_path, flusher, segment_bytes=1 << 20)
    for number in range(200):
        append(log, make_batch(1, 10_000, seed=number))
    write_now(log)
    whole = bytes((await log.read(0, 1 << 18)).data)
    found = log.sound_range(0, 1 << 18, Magic.KAFKA)
    await log.trim(150)
    assert log.segment_count == 1
    log.abandon()
    assert whole.startswith(content(found))


async def test_stored_batches_are_what_a_read_returns(tmp_path: Path, flusher: Flusher) -> None:
    log = open_real(tmp_path, flusher, segment_bytes=1 << 20)
    sizes = [FROM_FILE_BYTES + number * 1_000 for number in range(40)]
    sizes[20] = 500
    for number, size in enumerate(sizes):
        append(log, make_batch(2, size, seed=number))
    write_now(log)
    offset, met = 0, []
    while offset < log.end_offset:
        found = log.sound_batches(offset, 1 << 18, 9, Magic.KAFKA)
        assert len(found) <= 4
        for header, body in found:
            whole = bytes((await log.read(header.base_offset, 1)).data)
            assert (header, content(body)) == (read_header(whole), whole[61:])
            assert len(body) >= FROM_FILE_BYTES
            met.append(header.base_offset)
        offset = (await log.read(offset, 1)).next_offset if not found else met[-1] + 2
    assert 40 not in met
    assert len(met) >= 35
    assert log.sound_batches(0, 1 << 18, 1, Magic.KAFKA) == []
    assert log.sound_batches(0, 1 << 18, 9, Magic.IGGY) == []
    assert len(log.sound_batches(0, 1 << 18, 9, Magic.KAFKA, 4)) == 2
    log.abandon()


async def test_a_header_that_turned_bad_ends_the_stored_batches(
    tmp_path: Path, flusher: Flusher
) -> None:
    log = open_real(tmp_path, flusher)
    for number in range(10):
        append(log, make_batch(1, 50_000, seed=number))
    write_now(log)
    assert (await log.read(0, 1)).next_offset == 1
    (path,) = (tmp_path / "0").glob("*.log")
    descriptor = os.open(path, os.O_RDWR)
    # Of each a byte of its offset, record count, length and last offset delta.
    for at, number, sound in ((0, 7, 6), (59, 5, 5), (10, 3, 3), (26, 2, 2)):
        os.pwrite(descriptor, b"\x7f", number * 50_061 + at)
        found = log.sound_batches(0, 1 << 20, 100, Magic.KAFKA)
        assert [header.base_offset for header, _ in found] == list(range(sound))
    os.truncate(path, 50_061 + 30)
    assert log.sound_batches(0, 1 << 20, 100, Magic.KAFKA) == []
    os.close(descriptor)
    log.abandon()
