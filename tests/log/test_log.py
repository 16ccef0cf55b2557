"""What every log does, on a real disk and on the faulty one while it behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from faulty_files import FaultyFileSystem, failing
from log_batches import SMALL, fill, headers_of, make_batch, open_log, read_all, split
from penstock.log import (
    Flusher,
    InvalidBatchError,
    Log,
    LogClosedError,
    LogConfig,
    OffsetOutOfRangeError,
)
from penstock.log.header import Magic, read_header

Open = Callable[..., Log]


async def test_a_new_log_is_empty(open_anywhere: Open) -> None:
    log = open_anywhere()
    assert (log.start_offset, log.end_offset, log.flushed_offset) == (0, 0, 0)
    assert bytes(log.read(0, 100)) == b""
    assert log.batch_at(0) is None
    assert log.find_time(0) is None
    assert list(log.headers(0)) == []
    log.close()


async def test_batches_are_stored_as_sent_but_for_offset_and_epoch(open_anywhere: Open) -> None:
    log = open_anywhere(LogConfig(max_leader_epoch=9))
    header, body = make_batch(count=5)
    sent = bytes(header) + body
    log.append(make_batch(count=2), 7)
    assert log.append([header, body], 9) == 2
    stored = bytes(log.read(2, 1_000))
    assert read_header(stored).base_offset == 2
    assert read_header(stored).leader_epoch == 9
    assert stored[8:12] == sent[8:12]
    assert stored[16:] == sent[16:]
    log.close()


async def test_all_three_encodings_share_one_log(open_anywhere: Open) -> None:
    log = open_anywhere()
    stored = fill(log, 60)
    assert log.segment_count > 3
    assert log.size_bytes == sum(map(len, stored))
    assert read_all(log) == (stored, [])
    assert {header.magic for header in headers_of(stored)} == set(Magic)
    log.close()


async def test_a_read_begins_with_the_batch_that_contains_the_offset(open_anywhere: Open) -> None:
    log = open_anywhere()
    stored = fill(log, 60)
    for batch in stored:
        header = read_header(batch)
        for offset in range(header.base_offset, header.next_offset):
            assert split(log.read(offset, 1))[0] == batch
            assert log.batch_at(offset) == header
    log.close()


async def test_the_first_batch_is_whole_and_the_others_fit(open_anywhere: Open) -> None:
    log = open_anywhere(LogConfig())
    sizes = [len(batch) for batch in fill(log, 10)]
    for limit in range(1, sum(sizes) + 10):
        taken = [len(batch) for batch in split(log.read(0, limit))]
        assert taken == sizes[: len(taken)]
        assert len(taken) == 1 or sum(taken) <= limit
        assert len(taken) == len(sizes) or sum(sizes[: len(taken) + 1]) > limit
    log.close()


async def test_a_batch_larger_than_a_segment_has_one_of_its_own(open_anywhere: Open) -> None:
    log = open_anywhere()
    log.append(make_batch())
    large = make_batch(count=7, size=5 * SMALL.segment_bytes)
    base_offset = log.append(large)
    log.append(make_batch())
    assert log.segment_count == 3
    assert bytes(log.read(base_offset + 3, 10)) == b"".join(large)
    log.close()


async def test_a_segment_ends_before_its_offsets_outgrow_the_index(open_anywhere: Open) -> None:
    log = open_anywhere()
    count = (1 << 31) - 100
    assert log.append(make_batch(count=count)) == 0
    assert log.append(make_batch(count=count)) == count
    assert log.segment_count == 2
    assert read_header(log.read(count + 5, 1)).base_offset == count
    log.close()


@pytest.mark.parametrize("offset", [-1, 31, 1 << 40])
async def test_offsets_outside_are_refused(open_anywhere: Open, offset: int) -> None:
    log = open_anywhere()
    for _ in range(10):
        log.append(make_batch(count=3))
    with pytest.raises(OffsetOutOfRangeError) as raised:
        log.read(offset, 10)
    assert (raised.value.start_offset, raised.value.end_offset) == (0, 30)
    log.close()


@pytest.mark.parametrize(("field", "value"), [(8, 1), (16, 3), (23, 0x80)])
async def test_a_batch_that_contradicts_itself_is_refused(
    open_anywhere: Open, field: int, value: int
) -> None:
    log = open_anywhere()
    parts = make_batch()
    parts[0][field] = value  # type: ignore[index]  # the header is writable
    with pytest.raises(InvalidBatchError):
        log.append(parts)
    with pytest.raises(InvalidBatchError):
        log.append(make_batch(), leader_epoch=SMALL.max_leader_epoch + 1)
    assert log.append(make_batch()) == 0
    log.close()


async def test_a_batch_without_a_whole_header_is_refused(open_anywhere: Open) -> None:
    log = open_anywhere()
    with pytest.raises(InvalidBatchError):
        log.append([bytearray(60), b"x" * 100])
    log.close()


@pytest.mark.parametrize(
    "wrong", [{"segment_bytes": 0}, {"segment_bytes": 1 << 31}, {"checkpoint_bytes": 0}]
)
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="bytes"):
        LogConfig(**wrong)


async def test_headers_run_from_the_batch_of_the_start_to_the_end(open_anywhere: Open) -> None:
    log = open_anywhere()
    headers = headers_of(fill(log, 60))
    assert list(log.headers(0)) == headers
    assert list(log.headers(headers[20].last_offset, headers[40].base_offset)) == headers[20:40]
    assert list(log.headers(log.end_offset)) == []
    log.close()


async def test_times_are_found_by_batch_also_where_they_go_back(open_anywhere: Open) -> None:
    log = open_anywhere()
    times = [100, 300, 200, 500, 400, 500, 900] * 20
    for number, time in enumerate(times):
        log.append(make_batch(count=2, timestamp=time, size=number % 90))
    for sought in (0, 100, 101, 250, 301, 500, 501, 900):
        first = next(at for at, time in enumerate(times) if time >= sought)
        assert log.find_time(sought) == 2 * first
    assert log.find_time(901) is None
    log.close()


async def test_listeners_hear_of_each_append_until_they_leave(open_anywhere: Open) -> None:
    log = open_anywhere()
    heard: list[int] = []

    def listener() -> None:
        heard.append(log.end_offset)

    log.add_append_listener(listener)
    log.append(make_batch(count=2))
    log.append(make_batch(count=3))
    log.remove_append_listener(listener)
    log.append(make_batch())
    assert heard == [2, 5]
    log.close()


async def test_a_clean_close_leaves_nothing_to_recover(open_anywhere: Open) -> None:
    log = open_anywhere()
    log.snapshot = lambda: b"state at %d" % log.end_offset
    stored = fill(log, 60)
    log.close()
    again = open_anywhere()
    assert again.recovery.scanned_bytes == 0
    assert again.recovery.rebuilt_indexes == []
    assert again.flushed_offset == again.end_offset == log.end_offset
    assert again.checkpoint_state == b"state at %d" % log.end_offset
    assert again.checkpoint_offset == log.end_offset
    stored += fill(again, 20, first=60)
    assert read_all(again) == (stored, [])
    assert again.rebuilt_indexes == 0
    again.close()


async def test_a_closed_log_refuses_all(open_anywhere: Open) -> None:
    log = open_anywhere()
    fill(log, 5)
    waiting = log.flushed(0)
    await asyncio.sleep(0)
    log.close()
    log.close()
    await waiting
    for call in (
        lambda: log.append(make_batch()),
        lambda: log.read(0, 100),
        lambda: log.find_time(0),
    ):
        with pytest.raises(LogClosedError):
            call()


async def test_readers_and_a_writer_take_turns(open_anywhere: Open) -> None:
    log = open_anywhere()
    stored: list[bytes] = []
    arrived = asyncio.Event()
    log.add_append_listener(arrived.set)

    async def follow() -> list[bytes]:
        batches: list[bytes] = []
        offset = 0
        while len(batches) < 200:
            arrived.clear()
            if offset == log.end_offset:
                await arrived.wait()
            for batch in split(log.read(offset, 500)):
                batches.append(batch)
                offset = read_header(batch).next_offset
        return batches

    async def write() -> None:
        for number in range(200):
            stored.extend(fill(log, 1, first=number))
            if number % 10 == 0:
                await log.flushed(log.end_offset - 1)

    *followed, _ = await asyncio.gather(follow(), follow(), follow(), write())
    assert followed == [stored, stored, stored]
    log.close()


@pytest.mark.parametrize("config", [SMALL, LogConfig()])
async def test_a_finished_log_has_nothing_left_to_do_at_its_close(
    disk: FaultyFileSystem, flusher: Flusher, config: LogConfig
) -> None:
    log = open_log(disk, flusher, config)
    await log.finish()
    stored = fill(log, 20)
    await asyncio.gather(log.finish(), log.finish())
    assert log.flushed_offset == log.end_offset
    disk.hook = failing(1, "fdatasync")
    log.close()
    disk.hook = None
    again = open_log(disk, flusher)
    assert again.recovery.scanned_bytes == 0
    assert read_all(again) == (stored, [])
    again.close()
