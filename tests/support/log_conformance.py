"""What the broker relies on, whichever implementation of Log it has: each has to pass this.

A test module of an implementation has subclasses of the classes here and a fixture `open_log`,
which opens one and the same log again and again. Its limits should be so low that a few kilobytes
reach all of them.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

import pytest

from log_batches import append, fill, headers_of, make_batch, read, read_all, split
from penstock.log import (
    InvalidBatchError,
    Log,
    LogClosedError,
    OffsetOutOfRangeError,
)
from penstock.log.header import Magic, read_header


class OpenLog(Protocol):
    def __call__(self, leader_epoch: int = 0) -> Log: ...


def no_state() -> bytes:
    return b""


def named_state(name: str, log: Log) -> bytes:
    return b"%s at %d" % (name.encode(), log.end_offset)


class LogConformance:
    async def test_a_new_log_is_empty(self, open_log: OpenLog) -> None:
        log = open_log()
        assert (log.start_offset, log.end_offset, log.flushed_offset) == (0, 0, 0)
        assert log.size_bytes == 0
        batches = await log.read(0, 100)
        assert (bytes(batches.data), batches.next_offset, batches.magic) == (b"", 0, None)
        assert await log.batch_at(0) is None
        assert await log.find_time(0) is None
        assert [each async for each in log.headers(0)] == []
        assert log.register_state("owner", no_state) == (b"", 0)
        log.close()

    async def test_batches_are_stored_as_sent_but_for_offset_and_epoch(
        self, open_log: OpenLog
    ) -> None:
        log = open_log(leader_epoch=9)
        header, body = make_batch(count=5)
        sent = bytes(header) + body
        append(log, make_batch(count=2))
        assert append(log, [header, body]) == 2
        stored = bytes(await read(log, 2, 1_000))
        assert read_header(stored).base_offset == 2
        assert read_header(stored).leader_epoch == 9
        assert stored[8:12] == sent[8:12]
        assert stored[16:] == sent[16:]
        log.close()

    async def test_all_three_encodings_share_one_log(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 60)
        assert log.size_bytes == sum(map(len, stored))
        assert await read_all(log) == (stored, [])
        assert {header.magic for header in headers_of(stored)} == set(Magic)
        log.close()

    async def test_it_knows_how_much_a_reader_has_before_it_at_most(
        self, open_log: OpenLog
    ) -> None:
        log = open_log()
        stored = fill(log, 60)
        left, position = log.size_bytes, 0
        for batch in stored:
            assert left <= log.bytes_from(position) <= log.size_bytes
            read_now = await read(log, position, 1)
            left, position = left - len(read_now), headers_of([batch])[0].next_offset
        assert log.bytes_from(position) == 0, "of a reader that came to the end it is known exactly"
        append(log, make_batch(count=2))
        await log.written(log.end_offset - 1)
        assert log.bytes_from(position) == log.size_bytes - sum(map(len, stored))
        log.close()

    async def test_a_read_begins_with_the_batch_that_contains_the_offset(
        self, open_log: OpenLog
    ) -> None:
        log = open_log()
        for batch in fill(log, 60):
            header = read_header(batch)
            for offset in range(header.base_offset, header.next_offset):
                assert split(await read(log, offset, 1))[0] == batch
                assert await log.batch_at(offset) == header
        log.close()

    async def test_the_first_batch_is_whole_and_the_others_fit(self, open_log: OpenLog) -> None:
        log = open_log()
        sizes = [len(batch) for batch in fill(log, 10)]
        for limit in range(1, sum(sizes) + 10):
            taken = [len(batch) for batch in split(await read(log, 0, limit))]
            assert taken == sizes[: len(taken)]
            assert len(taken) == 1 or sum(taken) <= limit
        log.close()

    @pytest.mark.parametrize("max_bytes", [1, 300, 1 << 20])
    async def test_a_read_says_what_it_returns(self, open_log: OpenLog, max_bytes: int) -> None:
        log = open_log()
        for number in range(40):
            append(log, make_batch(1 + number % 3, 30, magic=tuple(Magic)[number // 8 % 3]))
        for offset in range(log.end_offset):
            batches = await log.read(offset, max_bytes)
            headers = headers_of(split(batches.data))
            magics = {header.magic for header in headers}
            assert batches.base_offset == headers[0].base_offset <= offset
            assert batches.next_offset == headers[-1].next_offset > offset
            assert batches.magic == (magics.pop() if len(magics) == 1 else None)
        log.close()

    async def test_no_read_reaches_its_end(self, open_log: OpenLog) -> None:
        log = open_log()
        headers = headers_of(fill(log, 12))
        for end in range(log.end_offset + 1):
            for offset in range(log.end_offset):
                batches = await log.read(offset, 1 << 20, end)
                found = headers_of(split(batches.data))
                below = [
                    header
                    for header in headers
                    if offset < header.next_offset <= end and offset < end
                ]
                assert found == below[: len(found)]
                assert bool(found) == bool(below)
                assert {each.magic for each in found} >= {batches.magic} - {None}
        log.close()

    @pytest.mark.parametrize("offset", [-1, 31, 1 << 40])
    async def test_offsets_outside_are_refused(self, open_log: OpenLog, offset: int) -> None:
        log = open_log()
        for _ in range(10):
            append(log, make_batch(count=3))
        with pytest.raises(OffsetOutOfRangeError) as raised:
            await read(log, offset, 10)
        assert (raised.value.start_offset, raised.value.end_offset) == (0, 30)
        log.close()

    @pytest.mark.parametrize(("field", "value"), [(8, 1), (16, 3), (23, 0x80)])
    async def test_a_batch_that_contradicts_itself_is_refused(
        self, open_log: OpenLog, field: int, value: int
    ) -> None:
        log = open_log()
        parts = make_batch()
        parts[0][field] = value  # type: ignore[index]  # the header is writable
        with pytest.raises(InvalidBatchError):
            append(log, parts)
        assert append(log, make_batch()) == 0
        log.close()

    async def test_a_batch_without_a_whole_header_is_refused(self, open_log: OpenLog) -> None:
        log = open_log()
        header, body = make_batch()
        with pytest.raises(InvalidBatchError):
            log.append([header[:60], header[60:], body], read_header(header))
        log.close()

    async def test_headers_run_from_the_batch_of_the_start_to_the_end(
        self, open_log: OpenLog
    ) -> None:
        log = open_log()
        headers = headers_of(fill(log, 60))
        assert [each async for each in log.headers(0)] == headers
        start, end = headers[20].last_offset, headers[40].base_offset
        assert [each async for each in log.headers(start, end)] == headers[20:40]
        assert [each async for each in log.headers(log.end_offset)] == []
        log.close()

    async def test_times_are_found_by_batch_also_where_they_go_back(
        self, open_log: OpenLog
    ) -> None:
        log = open_log()
        times = [100, 300, 200, 500, 400, 500, 900] * 20
        for number, time in enumerate(times):
            append(log, make_batch(count=2, timestamp=time, size=number % 90))
        await log.written(log.end_offset - 1)
        for sought in (0, 100, 101, 250, 301, 500, 501, 900):
            first = next(at for at, time in enumerate(times) if time >= sought)
            assert await log.find_time(sought) == 2 * first
        assert await log.find_time(901) is None
        log.close()

    async def test_what_is_flushed_stays_so(self, open_log: OpenLog) -> None:
        log = open_log()
        fill(log, 20)
        await log.flushed(log.end_offset - 1)
        assert log.flushed_offset == log.end_offset
        fill(log, 20)
        assert log.flushed_offset < log.end_offset
        assert log.flushed(log.flushed_offset - 1).done()
        await asyncio.gather(*(log.flushed(offset) for offset in range(log.end_offset)))
        assert log.flushed_offset == log.end_offset
        log.close()

    async def test_a_closed_log_is_opened_with_all_that_it_had(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 60)
        await log.finish()
        stored += fill(log, 5, first=60)
        log.close()
        again = open_log()
        assert again.flushed_offset == again.end_offset == log.end_offset
        stored += fill(again, 20, first=65)
        assert await read_all(again) == (stored, [])
        again.close()

    async def test_a_closed_log_refuses_all(self, open_log: OpenLog) -> None:
        log = open_log()
        fill(log, 5)
        waiting = log.flushed(0)
        await asyncio.sleep(0)
        log.close()
        log.close()
        await waiting
        with pytest.raises(LogClosedError):
            append(log, make_batch())
        for refused in (log.read(0, 100), log.find_time(0), log.trim(1), log.batch_at(0)):
            with pytest.raises(LogClosedError):
                await refused

    async def test_waiters_of_an_abandoned_log_are_turned_away(self, open_log: OpenLog) -> None:
        log = open_log()
        waiting = log.flushed(append(log, make_batch()))
        log.abandon()
        with pytest.raises(LogClosedError):
            await waiting
        with pytest.raises(LogClosedError):
            await log.flushed(0)

    async def test_readers_and_a_writer_take_turns(self, open_log: OpenLog) -> None:
        log = open_log()
        stored: list[bytes] = []
        grown = asyncio.Condition()

        async def follow() -> list[bytes]:
            batches: list[bytes] = []
            offset = 0
            while len(batches) < 200:
                async with grown:
                    while offset == log.end_offset:
                        await grown.wait()
                found = await log.read(offset, 500)
                batches += split(found.data)
                offset = found.next_offset
            return batches

        async def write() -> None:
            for number in range(200):
                stored.extend(fill(log, 1, first=number))
                async with grown:
                    grown.notify_all()
                if number % 10 == 0:
                    await log.flushed(log.end_offset - 1)

        *followed, _ = await asyncio.gather(follow(), follow(), follow(), write())
        assert followed == [stored, stored, stored]
        log.close()

    async def test_each_owner_gets_its_state_back(self, open_log: OpenLog) -> None:
        log = open_log()
        for name in ("one", "two"):
            log.register_state(name, partial(named_state, name, log))
        fill(log, 60)
        log.close()
        again = open_log()
        for name in ("two", "one", "three"):
            state, replay_from = again.register_state(name, no_state)
            kept = (named_state(name, log), log.end_offset)
            assert (state, replay_from) == ((b"", 0) if name == "three" else kept)
        again.close()

    async def test_a_state_without_its_owner_is_kept_for_it(self, open_log: OpenLog) -> None:
        log = open_log()
        log.register_state("of a later release", lambda: b"state")
        fill(log, 20)
        log.close()
        for _ in range(2):
            earlier = open_log()
            earlier.register_state("owner", no_state)
            fill(earlier, 20)
            earlier.close()
        back = open_log()
        assert back.register_state("of a later release", no_state) == (b"state", log.end_offset)
        assert back.end_offset > log.end_offset
        back.close()

    async def test_a_new_owner_need_not_wait_for_an_append_to_have_its_state_kept(
        self, open_log: OpenLog
    ) -> None:
        log = open_log()
        fill(log, 5)
        log.close()
        second = open_log()
        second.register_state("new", lambda: b"state")
        second.close()
        third = open_log()
        assert third.register_state("new", no_state) == (b"state", log.end_offset)
        third.close()

    async def test_batches_bear_the_epoch_at_which_the_log_was_open(
        self, open_log: OpenLog
    ) -> None:
        stored: list[bytes] = []
        epochs = []
        for epoch in (0, 1, 3, 3, 7):
            log = open_log(leader_epoch=epoch)
            assert log.leader_epoch == epoch
            stored += fill(log, 5, first=len(stored))
            epochs += [epoch] * 5
            log.close()
        again = open_log(leader_epoch=8)
        assert [each.leader_epoch async for each in again.headers(0)] == epochs
        assert await read_all(again) == (stored, [])
        again.close()

    async def test_a_batch_of_a_later_epoch_is_damaged(self, open_log: OpenLog) -> None:
        log = open_log(leader_epoch=1)
        stored = fill(log, 3)
        end = log.end_offset
        log.close()
        log = open_log(leader_epoch=2)
        fill(log, 3, first=3)
        log.close()
        again = open_log(leader_epoch=1)
        batches, damage = await read_all(again)
        assert batches == stored
        assert damage[0].base_offset == end
        again.close()


class TrimConformance:
    """What is left, and what is not, where the beginning of a log was given up."""

    async def test_nothing_below_the_new_start_can_be_read(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 60)
        headers = headers_of(stored)
        for number in range(0, 60, 7):
            start = headers[number].base_offset
            await log.trim(start)
            assert log.start_offset == start
            assert await read_all(log) == (stored[number:], [])
            assert [each async for each in log.headers(start)] == headers[number:]
            assert await log.find_time(0) == start
            for refused in (start - 1, 0)[: start + 1]:
                with pytest.raises(OffsetOutOfRangeError) as raised:
                    await log.read(refused, 100)
                assert raised.value.start_offset == start
        log.close()

    async def test_what_holds_nothing_else_is_removed(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 100)
        sizes = [log.size_bytes]
        for number in (30, 60, 90):
            start = headers_of(stored)[number].base_offset
            await log.trim(start)
            sizes.append(log.size_bytes)
            assert log.size_bytes >= sum(map(len, stored[number:]))
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] < sizes[0] / 2
        await log.trim(log.end_offset)
        assert log.size_bytes == 0
        log.close()

    async def test_the_start_lasts(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 60)
        start = headers_of(stored)[31].base_offset
        await log.trim(start)
        log.close()
        again = open_log()
        assert again.start_offset == start
        assert await read_all(again) == (stored[31:], [])
        state, replay_from = again.register_state("new", no_state)
        assert (state, replay_from) == (b"", start)
        again.close()

    async def test_a_start_inside_a_batch_keeps_the_batch(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 60)
        header = headers_of(stored)[23]
        assert header.last_offset > header.base_offset
        await log.trim(header.last_offset)
        for _ in range(2):
            assert log.start_offset == header.last_offset
            assert await log.batch_at(header.last_offset) == header
            assert await log.find_time(header.max_timestamp) == header.last_offset
            assert [each async for each in log.headers(log.start_offset)] == headers_of(stored[23:])
            with pytest.raises(OffsetOutOfRangeError):
                await log.read(header.base_offset, 100)
            log.close()
            log = open_log()
        log.close()

    async def test_times_below_the_start_are_not_found(self, open_log: OpenLog) -> None:
        log = open_log()
        for time in (900, 100, 800, 200):
            append(log, make_batch(count=2, timestamp=time))
        await log.trim(2)
        assert [await log.find_time(time) for time in (0, 150, 801)] == [2, 4, None]
        log.close()

    async def test_a_log_that_is_trimmed_to_its_end_goes_on_there(self, open_log: OpenLog) -> None:
        log = open_log()
        end = sum(header.next_offset - header.base_offset for header in headers_of(fill(log, 30)))
        await log.trim(end)
        assert (log.start_offset, log.end_offset) == (end, end)
        log.close()
        for _ in range(2):
            log = open_log()
            assert (log.start_offset, log.end_offset) == (end, end)
            assert await read_all(log) == ([], [])
            log.close()
        log = open_log()
        stored = fill(log, 30)
        assert headers_of(stored)[0].base_offset == end
        assert await read_all(log) == (stored, [])
        log.close()
        again = open_log()
        assert await read_all(again) == (stored, [])
        again.close()

    async def test_a_start_moves_forward_only_and_not_beyond_the_end(
        self, open_log: OpenLog
    ) -> None:
        log = open_log()
        stored = fill(log, 20)
        await log.trim(10)
        for offset in (-1, 0, 9, 10):
            await log.trim(offset)
            assert log.start_offset == 10
        with pytest.raises(OffsetOutOfRangeError):
            await log.trim(log.end_offset + 1)
        assert log.start_offset == 10
        assert (await read_all(log))[0][-1] == stored[-1]
        log.close()

    async def test_several_may_trim_while_others_write(self, open_log: OpenLog) -> None:
        log = open_log()
        stored = fill(log, 60)

        async def write() -> None:
            for number in range(60, 90):
                stored.extend(fill(log, 1, first=number))
                await log.flushed(log.end_offset - 1)

        starts = [headers_of(stored)[number].base_offset for number in (10, 40, 20, 40, 59)]
        await asyncio.gather(write(), *(log.trim(start) for start in starts))
        assert log.start_offset == max(starts)
        assert await read_all(log) == (stored[59:], [])
        log.close()
        again = open_log()
        assert await read_all(again) == (stored[59:], [])
        again.close()
