"""Opening what a crash left: torn ends, lost files, indexes that don't fit."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival
from log_batches import (
    DIRECTORY,
    SMALL,
    append,
    fill,
    headers_of,
    make_batch,
    open_log,
    read,
    read_all,
)
from penstock.log import CorruptBatchError, Flusher, LogConfig, LogMissingError

ONE_SEGMENT = LogConfig(index_interval_bytes=300)


def crashed(disk: FaultyFileSystem) -> FaultyFileSystem:
    return disk.after_crash(Survival.ALL)


def segments(disk: FaultyFileSystem, suffix: str = ".log") -> list[Path]:
    return sorted(DIRECTORY / name for name in disk.entries(DIRECTORY) if name.endswith(suffix))


async def test_every_torn_length_of_the_last_batch_costs_only_that_batch(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 12)
    last = segments(disk)[-1]
    whole = disk.entries(DIRECTORY)[last.name]
    for torn in range(1, len(stored[-1])):
        copy = crashed(disk)
        copy.content(last).write(whole - torn, None)
        again = open_log(copy, flusher)
        assert await read_all(again) == (stored[:-1], [])
        assert again.recovery.truncated_bytes == len(stored[-1]) - torn
        assert again.end_offset == headers_of(stored)[-1].base_offset
        more = fill(again, 3, first=50)
        again.close()
        assert await read_all(open_log(copy, flusher)) == (stored[:-1] + more, [])
    log.close()


@pytest.mark.parametrize("rubbish", [b"\0" * 500, b"\xff" * 500, b"I" * 61, bytes(range(256)) * 3])
async def test_rubbish_after_the_end_is_cut_off(
    disk: FaultyFileSystem, flusher: Flusher, rubbish: bytes
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 12)
    copy = crashed(disk)
    last = copy.content(segments(copy)[-1])
    last.write(len(last.live), rubbish)
    again = open_log(copy, flusher)
    assert again.recovery.truncated_bytes == len(rubbish)
    assert await read_all(again) == (stored, [])
    log.close()


async def test_what_was_done_is_said(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher)
    fill(log, 12)
    copy = crashed(disk)
    copy.content(segments(copy)[-1]).write(30, None)
    with caplog.at_level(logging.INFO, "penstock.log"):
        again = open_log(copy, flusher)
    size = again.size_bytes
    assert f"{DIRECTORY}: recovered: checked {size + 30} bytes, cut off 30" in caplog.text
    log.close()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
async def test_a_missing_index_is_built_anew(
    disk: FaultyFileSystem, flusher: Flusher, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 60)
    log.close()
    for path in segments(disk, suffix):
        before = bytes(disk.content(path).live)
        disk.unlink(path)
        again = open_log(disk, flusher)
        assert path in again.recovery.rebuilt_indexes
        assert "indexing it anew" in caplog.text
        assert bytes(disk.content(path).live) == before
        assert await read_all(again) == (stored, [])
        again.abandon()


async def test_an_index_that_ends_within_an_entry_is_built_anew(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    fill(log, 60)
    log.close()
    path = segments(disk, ".index")[1]
    before = bytes(disk.content(path).live)
    disk.content(path).write(len(before) - 3, None)
    again = open_log(disk, flusher)
    assert path in again.recovery.rebuilt_indexes
    assert bytes(disk.content(path).live) == before
    again.abandon()


@pytest.mark.parametrize("keep", [0, 8, 16])
async def test_an_index_that_lacks_entries_is_built_anew_when_it_is_used(
    disk: FaultyFileSystem, flusher: Flusher, keep: int
) -> None:
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored = fill(log, 100)
    log.close()
    (path,) = segments(disk, ".index")
    before = bytes(disk.content(path).live)
    disk.content(path).write(keep, None)
    again = open_log(disk, flusher, ONE_SEGMENT)
    header = headers_of(stored)[90]
    assert await again.batch_at(header.last_offset) == header
    assert again.rebuilt_indexes == 1
    assert bytes(disk.content(path).live) == before
    again.abandon()


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])
async def test_no_bit_of_an_index_can_mislead(
    disk: FaultyFileSystem, flusher: Flusher, every: int
) -> None:
    log = open_log(disk, flusher, ONE_SEGMENT)
    headers = headers_of(fill(log, 30))
    log.close()
    sought = headers[::5]
    for path in segments(disk, "index"):
        for bit in range(0, 8 * len(disk.content(path).live), every):
            copy = crashed(disk)
            copy.content(path).live[bit // 8] ^= 1 << bit % 8
            again = open_log(copy, flusher, ONE_SEGMENT)
            for header in sought:
                assert await again.batch_at(header.last_offset) == header
                assert await again.find_time(header.max_timestamp) == header.base_offset
            assert await again.find_time(1 << 50) is None
            again.abandon()


async def test_an_index_after_a_crash_serves_the_whole_segment(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    config = LogConfig(index_interval_bytes=300, checkpoint_bytes=3_000)
    log = open_log(disk, flusher, config)
    stored = fill(log, 30)
    await log.flushed(log.end_offset - 1)
    stored += fill(log, 40, first=30)
    copy = crashed(disk)
    again = open_log(copy, flusher, config)
    assert again.recovery.scanned_bytes < log.size_bytes
    for header in headers_of(stored):
        assert await again.batch_at(header.last_offset) == header
        assert await again.find_time(header.max_timestamp) == header.base_offset
    assert again.rebuilt_indexes == 0
    log.close()


@pytest.mark.parametrize("byte", range(60))
async def test_a_damaged_checkpoint_costs_time_and_nothing_else(
    disk: FaultyFileSystem, flusher: Flusher, byte: int
) -> None:
    log = open_log(disk, flusher)
    log.register_state("owner", lambda: b"owner's state of the log")
    stored = fill(log, 30)
    log.close()
    disk.content(DIRECTORY / "checkpoint").live[byte] ^= 4
    again = open_log(disk, flusher)
    assert again.recovery.lost_checkpoint
    assert again.recovery.scanned_bytes == again.size_bytes
    assert again.register_state("owner", lambda: b"") == (b"", 0)
    assert await read_all(again) == (stored, [])
    again.abandon()


async def test_a_checkpoint_that_was_cut_short_is_none(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 5)
    log.close()
    checkpoint = disk.content(DIRECTORY / "checkpoint")
    for size in reversed(range(len(checkpoint.live))):
        checkpoint.write(size, None)
        again = open_log(disk, flusher)
        assert again.recovery.lost_checkpoint
        assert await read_all(again) == (stored, [])
        again.abandon()


async def test_offsets_that_were_safe_and_are_gone_are_never_given_out_again(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored = fill(log, 20)
    log.close()
    (path,) = segments(disk)
    disk.content(path).write(sum(map(len, stored[:12])) + 5, None)
    lost_from = headers_of(stored)[12].base_offset
    again = open_log(disk, flusher, ONE_SEGMENT)
    assert again.end_offset == log.end_offset
    assert "are damaged" in caplog.text
    more = fill(again, 5)
    assert headers_of(more)[0].base_offset == log.end_offset
    again.close()
    for _ in range(2):  # Also after the next start.
        last = open_log(disk, flusher, ONE_SEGMENT)
        batches, damage = await read_all(last)
        assert batches == stored[:12] + more
        assert [(d.base_offset, d.next_offset) for d in damage] == [(lost_from, log.end_offset)]
        last.close()


async def test_a_segment_that_is_gone_is_reported_to_who_reads_it(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 60)
    log.close()
    gone, after = segments(disk)[2:4]
    disk.unlink(gone)
    again = open_log(disk, flusher)
    batches, damage = await read_all(again)
    assert [(d.base_offset, d.next_offset) for d in damage] == [(int(gone.stem), int(after.stem))]
    assert len(batches) < len(stored)
    assert set(batches) <= set(stored)
    again.abandon()


async def test_all_segments_gone_is_no_new_log(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher)
    fill(log, 30)
    log.close()
    for path in segments(disk):
        disk.unlink(path)
    with pytest.raises(LogMissingError, match=rf"offsets 0\.\.{log.end_offset - 1} .* recover"):
        open_log(disk, flusher)


async def test_the_first_segment_gone_is_no_later_beginning(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    fill(log, 60)
    log.close()
    first, second, *_ = segments(disk)
    disk.unlink(first)
    with pytest.raises(LogMissingError, match=rf"offsets 0\.\.{int(second.stem) - 1} are missing"):
        open_log(disk, flusher)


async def test_what_was_flushed_once_is_missed_when_it_is_gone(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    """Long before the first checkpoint that is due by size."""
    log = open_log(disk, flusher)
    await log.flushed(append(log, make_batch()))
    log.abandon()
    (path,) = segments(disk)
    disk.unlink(path)
    with pytest.raises(LogMissingError):
        open_log(disk, flusher)


async def test_a_last_segment_without_a_sound_batch_is_dropped(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 30)
    copy = crashed(disk)
    copy.content(segments(copy)[-1]).write(40, None)
    again = open_log(copy, flusher)
    batches, damage = await read_all(again)
    assert damage == []
    assert batches == stored[: len(batches)]
    assert again.end_offset == int(segments(disk)[-1].stem)
    assert fill(again, 1)
    again.close()
    log.close()


async def test_damage_between_sound_batches_is_kept_and_reported(
    disk: FaultyFileSystem, flusher: Flusher, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored = fill(log, 10)
    copy = crashed(disk)
    (path,) = segments(copy)
    copy.content(path).live[sum(map(len, stored[:4])) + 70] ^= 1
    again = open_log(copy, flusher, ONE_SEGMENT)
    header = headers_of(stored)[4]
    assert [(c.base_offset, c.next_offset) for c in again.recovery.corrupt] == [
        (header.base_offset, header.next_offset)
    ]
    assert again.recovery.truncated_bytes == 0
    assert caplog.text.count("are damaged") == 1
    with pytest.raises(CorruptBatchError):
        await read(again, header.base_offset, 100)
    assert caplog.text.count("are damaged") == 1
    assert again.corrupt_ranges == 1
    log.close()


async def test_files_of_others_are_left_alone(disk: FaultyFileSystem, flusher: Flusher) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 5)
    log.close()
    disk.open(DIRECTORY / "notes.log", write=True, create=True).close()
    again = open_log(disk, flusher, SMALL)
    assert await read_all(again) == (stored, [])
    assert "notes.log" in disk.entries(DIRECTORY)
    again.close()


async def test_an_index_lost_in_a_crash_is_built_for_the_whole_segment(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored = fill(log, 30)
    log.close()
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored += fill(log, 10, first=30)
    copy = crashed(disk)
    (path,) = segments(copy, ".index")
    copy.unlink(path)
    again = open_log(copy, flusher, ONE_SEGMENT)
    assert path in again.recovery.rebuilt_indexes
    for header in headers_of(stored):
        assert await again.batch_at(header.last_offset) == header
    assert again.rebuilt_indexes == 0
    log.close()


async def test_the_segment_of_the_checkpoint_is_gone(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 40)
    log.close()
    *_, before, last = segments(disk)
    disk.unlink(last)
    again = open_log(disk, flusher)
    assert again.end_offset == log.end_offset
    assert again.recovery.scanned_bytes == disk.entries(DIRECTORY)[before.name]
    batches, damage = await read_all(again)
    assert batches == [b for b in stored if headers_of([b])[0].base_offset < int(last.stem)]
    assert [(d.base_offset, d.next_offset) for d in damage] == [(int(last.stem), log.end_offset)]
    again.close()


async def test_a_checkpoint_of_another_version_is_none(
    disk: FaultyFileSystem, flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 4)
    monkeypatch.setattr("penstock.log.checkpoint._VERSION", 4)
    log.close()
    monkeypatch.undo()
    again = open_log(disk, flusher)
    assert again.recovery.lost_checkpoint
    assert await read_all(again) == (stored, [])
    again.close()


async def test_crash_after_crash_does_not_let_recovery_grow(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    config = LogConfig(checkpoint_bytes=3_000)
    for _ in range(12):
        log = open_log(disk, flusher, config)
        assert log.recovery.scanned_bytes < 1.5 * config.checkpoint_bytes
        fill(log, 10)
        await log.flushed(log.end_offset - 1)
        log.abandon()
    assert log.size_bytes > 3 * config.checkpoint_bytes


async def test_an_index_that_lost_entries_in_a_crash_is_built_anew_at_once(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored = fill(log, 60)
    log.close()
    log = open_log(disk, flusher, ONE_SEGMENT)
    stored += fill(log, 5, first=60)
    copy = crashed(disk)
    (path,) = segments(copy, ".index")
    copy.content(path).write(16, None)
    again = open_log(copy, flusher, ONE_SEGMENT)
    assert path in again.recovery.rebuilt_indexes
    assert await again.batch_at(50) is not None
    assert again.rebuilt_indexes == 0
    log.close()


async def test_the_segment_of_the_checkpoint_has_nothing_sound_left(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher)
    stored = fill(log, 40)
    log.close()
    last = segments(disk)[-1]
    disk.content(last).write(10, None)
    again = open_log(disk, flusher)
    assert again.end_offset == log.end_offset
    batches, damage = await read_all(again)
    assert batches == [b for b in stored if headers_of([b])[0].base_offset < int(last.stem)]
    assert [(d.base_offset, d.next_offset) for d in damage] == [(int(last.stem), log.end_offset)]
    again.close()
