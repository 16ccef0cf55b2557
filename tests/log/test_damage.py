"""A flipped bit is reported and costs at most its own batch, wherever it is."""

from __future__ import annotations

import logging
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival
from log_batches import DIRECTORY, append, fill, headers_of, make_batch, open_log, read, read_all
from penstock.log import CorruptBatchError, Flusher, LocalLog, LogConfig, LogReadError
from penstock.log.checkpoint import read_checkpoint, write_checkpoint
from penstock.log.header import BatchHeader, Magic, build_header

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=200)
EVERY = [5, pytest.param(1, marks=pytest.mark.soak)]
"""Which bytes are damaged in turn: a header of 61 bytes has each of its own hit in some batch."""


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "penstock.log")


def closed_log(disk: FaultyFileSystem, flusher: Flusher) -> tuple[list[bytes], list[Path]]:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 15)
    log.close()
    names = sorted(name for name in disk.entries(DIRECTORY) if name.endswith(".log"))
    assert len(names) >= 2
    return stored, [DIRECTORY / name for name in names]


async def judge(log: LocalLog, stored: list[bytes], path: Path, byte: int) -> None:
    """Assert that one batch at most is gone, that its loss is told, and nothing else changed."""
    batches, damage = await read_all(log)
    missing = [batch for batch in stored if batch not in batches]
    assert batches == [batch for batch in stored if batch not in missing], (path, byte)
    assert len(missing) == len(damage) == 1, (path, byte)
    (header,) = headers_of(missing)
    assert (damage[0].base_offset, damage[0].next_offset) == (
        header.base_offset,
        header.next_offset,
    ), (path, byte)
    for offset in range(header.base_offset, header.next_offset):
        with pytest.raises(CorruptBatchError):
            await read(log, offset, 1_000)
    for header in headers_of(batches):
        assert await log.batch_at(header.last_offset) == header
    assert [each async for each in log.headers(0)] == headers_of(batches)
    assert log.corrupt_ranges == 1


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("every", EVERY)
async def test_a_flip_in_any_byte_costs_its_own_batch(
    disk: FaultyFileSystem, flusher: Flusher, every: int, *, with_index: bool
) -> None:
    stored, paths = closed_log(disk, flusher)
    for path in paths:
        for byte in range(0, len(disk.content(path).live), every):
            copy = disk.after_crash(Survival.ALL)
            copy.content(path).live[byte] ^= 1 << (byte * 5 + byte // 61) % 8
            if not with_index:
                copy.unlink(path.with_suffix(".index"))
                copy.unlink(path.with_suffix(".timeindex"))
            log = open_log(copy, flusher, CONFIG)
            await judge(log, stored, path, byte)
            log.abandon()


async def test_a_flip_in_any_bit_of_a_header_costs_its_own_batch(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    stored, paths = closed_log(disk, flusher)
    start = sum(map(len, stored[:4]))
    for bit in range(8 * 61):
        copy = disk.after_crash(Survival.ALL)
        copy.content(paths[0]).live[start + bit // 8] ^= 1 << bit % 8
        log = open_log(copy, flusher, CONFIG)
        await judge(log, stored, paths[0], start + bit // 8)
        log.abandon()


@pytest.mark.parametrize("every", EVERY)
async def test_a_flip_found_by_recovery_costs_its_own_batch(
    disk: FaultyFileSystem, flusher: Flusher, every: int
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 16)
    path = DIRECTORY / f"{0:020d}.log"
    crashed = disk.after_crash(Survival.ALL)
    for byte in range(0, len(crashed.content(path).live), every):
        copy = crashed.after_crash(Survival.ALL)
        copy.content(path).live[byte] ^= 16
        again = open_log(copy, flusher, CONFIG)
        assert len(again.recovery.corrupt) == 1, byte
        await judge(again, stored, path, byte)
        again.abandon()
    log.close()


async def test_damage_under_a_running_reader_is_met_with_an_error(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, CONFIG)
    stored = fill(log, 24)
    assert await read_all(log) == (stored, [])
    disk.content(DIRECTORY / f"{0:020d}.log").live[len(stored[0]) + 65] ^= 1
    batches, damage = await read_all(log)
    assert batches == stored[:1] + stored[2:]
    assert len(damage) == 1
    log.close()


async def test_neighbours_that_are_both_damaged_are_both_told(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    stored, paths = closed_log(disk, flusher)
    data = disk.content(paths[0]).live
    for batch in (3, 4):
        data[sum(map(len, stored[:batch])) + 64] ^= 1
    log = open_log(disk, flusher, CONFIG)
    batches, damage = await read_all(log)
    assert batches == stored[:3] + stored[5:]
    lost = {offset for d in damage for offset in range(d.base_offset, d.next_offset)}
    first, last = headers_of(stored)[3], headers_of(stored)[4]
    assert lost == set(range(first.base_offset, last.next_offset))
    log.close()


async def test_a_segment_of_noise_costs_no_other_segment(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    stored, paths = closed_log(disk, flusher)
    content = disk.content(paths[0])
    content.live[:] = bytes(byte ^ 0x55 for byte in content.live)
    log = open_log(disk, flusher, CONFIG)
    batches, damage = await read_all(log)
    assert batches == [b for b in stored if int.from_bytes(b[:8]) >= int(paths[1].stem)]
    assert [(d.base_offset, d.next_offset) for d in damage] == [(0, int(paths[1].stem))]
    log.close()


async def test_a_batch_inside_a_payload_is_not_taken_for_one_of_the_log(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    inner = make_batch(count=1, size=40)
    inner[0][:8] = (5).to_bytes(8)  # type: ignore[index]  # an offset that could be next
    body = b"before" + b"".join(inner) + b"after"
    header = build_header(Magic.KAFKA, body, record_count=9, base_timestamp=1, max_timestamp=1)
    append(log, [header, body])
    (last,) = fill(log, 1)
    disk.content(DIRECTORY / f"{0:020d}.log").live[11] ^= 64
    batches, damage = await read_all(log)
    assert batches == [last]
    assert [(d.base_offset, d.next_offset) for d in damage] == [(0, 9)]
    log.close()


async def test_a_batch_at_the_end_of_the_last_payload_is_not_taken_either(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 2)
    inner = make_batch(count=1, size=40)
    inner[0][:8] = (log.end_offset + 5).to_bytes(8)  # type: ignore[index]  # it could be next
    body = b"before" + b"".join(inner)
    header = build_header(Magic.PULSAR, body, record_count=9, base_timestamp=1, max_timestamp=1)
    append(log, [header, body])
    await log.written(log.end_offset - 1)
    disk.content(DIRECTORY / f"{0:020d}.log").live[sum(map(len, stored)) + 30] ^= 1
    batches, damage = await read_all(log)
    assert batches == stored
    assert [d.next_offset for d in damage] == [log.end_offset]
    log.close()


async def test_a_flipped_length_takes_no_memory(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher, LogConfig())
    stored = [make_batch(size=1 << 20, seed=number) for number in range(8)]
    for parts in stored:
        append(log, parts)
    await log.written(log.end_offset - 1)
    content = disk.content(DIRECTORY / f"{0:020d}.log")
    content.live[9] ^= 0x40
    tracemalloc.start()
    with pytest.raises(CorruptBatchError) as raised:
        await read(log, 0, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert raised.value.next_offset == 3
    assert peak < 6 << 20
    log.close()


async def test_a_disk_that_gives_nothing_is_an_error_of_its_own(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    stored, _ = closed_log(disk, flusher)
    log = open_log(disk, flusher, CONFIG)

    def broken(operation: str, path: Path) -> None:
        if operation == "pread":
            raise OSError(5, "Input/output error", str(path))

    disk.hook = broken
    with pytest.raises(LogReadError, match="Input/output error"):
        await read(log, 3, 100)
    with pytest.raises(LogReadError):
        await log.find_time(1_001)
    disk.hook = None
    assert await read_all(log) == (stored, [])
    log.close()


async def test_a_file_cut_short_under_a_running_log_is_met_with_an_error(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    stored = fill(log, 10)
    disk.content(DIRECTORY / f"{0:020d}.log").write(sum(map(len, stored[:6])) + 30, None)
    batches, damage = await read_all(log)
    assert batches == stored[:6]
    assert [d.next_offset for d in damage] == [log.end_offset]
    log.abandon()


async def test_times_below_the_start_are_not_found_over_damage_either(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    times = (900, 100, 100, 800)
    size = sum(map(len, make_batch(count=2)))
    for time in times:
        append(log, make_batch(count=2, timestamp=time))
    await log.trim(4)
    disk.content(DIRECTORY / f"{0:020d}.log").live[size] ^= 1
    assert await log.find_time(850) is None
    assert await log.find_time(750) == 6
    log.close()


INDEXED = LogConfig(index_interval_bytes=150)


@pytest.fixture
async def indexed_log(disk: FaultyFileSystem, flusher: Flusher) -> list[BatchHeader]:
    """Make a closed log of one segment whose times go up and down and come again."""
    log = open_log(disk, flusher, INDEXED)
    times = (1_000, 1_005, 1_010, 1_020, 1_005, 1_010, 1_010, 1_015, 1_030, 1_020, 1_030, 1_040)
    stored = []
    for number, time in enumerate(times):
        parts = make_batch(1, 40, time, seed=number)
        append(log, parts)
        stored.append(b"".join(parts))
    log.close()
    return headers_of(stored)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
async def test_a_flip_in_any_bit_of_an_index_hides_nothing(
    disk: FaultyFileSystem, flusher: Flusher, indexed_log: list[BatchHeader], suffix: str
) -> None:
    path = DIRECTORY / f"{0:020d}{suffix}"
    size = disk.entries(DIRECTORY)[path.name]
    assert size >= 4 * (8 if suffix == ".index" else 12)
    times = sorted({header.max_timestamp for header in indexed_log})
    for bit in range(8 * size):
        copy = disk.after_crash(Survival.ALL)
        copy.content(path).live[bit // 8] ^= 1 << bit % 8
        log = open_log(copy, flusher, INDEXED)
        for time in (0, *times, *(each + 1 for each in times)):
            later = [each.base_offset for each in indexed_log if each.max_timestamp >= time]
            assert await log.find_time(time) == (later[0] if later else None), (bit, time)
        for header in reversed(indexed_log):
            assert await log.batch_at(header.last_offset) == header, bit
        assert log.corrupt_ranges == 0
        assert log.rebuilt_indexes <= 1
        log.abandon()


@pytest.mark.parametrize("position", [-1, -(2**31), 2**31 - 1, 1, 61])
async def test_an_index_position_that_can_not_be_is_reported_and_the_index_rebuilt(
    disk: FaultyFileSystem,
    flusher: Flusher,
    indexed_log: list[BatchHeader],
    caplog: pytest.LogCaptureFixture,
    position: int,
) -> None:
    caplog.set_level(logging.WARNING, "penstock.log")
    path = DIRECTORY / f"{0:020d}.index"
    sound = bytes(disk.content(path).live)
    disk.content(path).live[-4:] = struct.pack(">i", position)
    log = open_log(disk, flusher, INDEXED)
    assert await log.batch_at(indexed_log[-1].last_offset) == indexed_log[-1]
    assert log.rebuilt_indexes == 1
    assert "indexing it anew" in caplog.text
    log.close()
    assert bytes(disk.content(path).live) == sound


async def test_a_segment_whose_damage_no_index_fits_is_indexed_anew_once(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, INDEXED)
    sizes = (20, 400, 20, 20)
    for number, size in enumerate(sizes):
        append(log, make_batch(1, size, seed=number))
    await log.written(log.end_offset - 1)
    disk.content(DIRECTORY / f"{0:020d}.log").live[200] ^= 1
    for _ in range(3):
        batches, damage = await read_all(log, max_bytes=1)
        assert (len(batches), len(damage)) == (3, 1)
        assert await log.batch_at(2) is not None
    assert log.rebuilt_indexes <= 1
    log.close()


async def test_bytes_that_have_no_offset_are_no_hindrance(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    """The checkpoint's offset is too low for its position."""
    log = open_log(disk, flusher, LogConfig(index_interval_bytes=200))
    stored = fill(log, 5)
    log.close()
    known = read_checkpoint(disk, DIRECTORY, len(disk.content(DIRECTORY / "checkpoint").live))
    assert known is not None
    last = headers_of(stored)[-1]
    write_checkpoint(disk, DIRECTORY, replace(known, offset=last.base_offset))
    disk.unlink(DIRECTORY / f"{0:020d}.index")
    again = open_log(disk, flusher, LogConfig(index_interval_bytes=200))
    assert again.end_offset == last.base_offset
    batches, damage = await read_all(again)
    assert batches == stored[:-1]
    assert damage == []
    again.close()
