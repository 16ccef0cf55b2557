"""What the log in local files does beside what any has to do (see test_local_log_conforms.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from faulty_files import FaultyFileSystem, failing
from log_batches import SMALL, append, fill, headers_of, make_batch, open_log, read, read_all, split
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log.header import Magic, read_header

Open = Callable[..., LocalLog]


async def test_all_three_encodings_share_a_segment(open_anywhere: Open) -> None:
    log = open_anywhere()
    stored = fill(log, 60)
    assert log.segment_count > 3
    assert await read_all(log) == (stored, [])
    assert {header.magic for header in headers_of(stored)} == set(Magic)
    log.close()


async def test_a_read_takes_as_many_batches_as_fit(open_anywhere: Open) -> None:
    log = open_anywhere(LogConfig())
    sizes = [len(batch) for batch in fill(log, 10)]
    for limit in range(1, sum(sizes) + 10):
        taken = [len(batch) for batch in split(await read(log, 0, limit))]
        assert taken == sizes[: len(taken)]
        assert len(taken) == 1 or sum(taken) <= limit
        assert len(taken) == len(sizes) or sum(sizes[: len(taken) + 1]) > limit
    log.close()


async def test_a_read_takes_all_batches_below_its_end(open_anywhere: Open) -> None:
    log = open_anywhere(LogConfig())
    headers = headers_of(fill(log, 10))
    for end in range(1, log.end_offset + 1):
        found = headers_of(split((await log.read(0, 1 << 20, end)).data))
        assert found == [header for header in headers if header.next_offset <= end]
    log.close()


async def test_a_batch_larger_than_a_segment_has_one_of_its_own(open_anywhere: Open) -> None:
    log = open_anywhere()
    append(log, make_batch())
    large = make_batch(count=7, size=5 * SMALL.segment_bytes)
    base_offset = append(log, large)
    append(log, make_batch())
    await log.written(log.end_offset - 1)
    assert log.segment_count == 3
    assert bytes(await read(log, base_offset + 3, 10)) == b"".join(large)
    log.close()


async def test_a_segment_ends_before_its_offsets_outgrow_the_index(open_anywhere: Open) -> None:
    log = open_anywhere()
    count = (1 << 31) - 100
    assert append(log, make_batch(count=count)) == 0
    assert append(log, make_batch(count=count)) == count
    await log.written(log.end_offset - 1)
    assert log.segment_count == 2
    assert read_header(await read(log, count + 5, 1)).base_offset == count
    log.close()


@pytest.mark.parametrize(
    "wrong", [{"segment_bytes": 0}, {"segment_bytes": 1 << 31}, {"checkpoint_bytes": 0}]
)
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="bytes"):
        LogConfig(**wrong)


async def test_a_clean_close_leaves_nothing_to_recover(open_anywhere: Open) -> None:
    log = open_anywhere()
    log.register_state("owner", lambda: b"state at %d" % log.end_offset)
    stored = fill(log, 60)
    log.close()
    again = open_anywhere()
    assert again.recovery.scanned_bytes == 0
    assert again.recovery.rebuilt_indexes == []
    assert again.flushed_offset == again.end_offset == log.end_offset
    kept = again.register_state("owner", lambda: b"state at %d" % again.end_offset)
    assert kept == (b"state at %d" % log.end_offset, log.end_offset)
    stored += fill(again, 20, first=60)
    assert await read_all(again) == (stored, [])
    assert again.rebuilt_indexes == 0
    again.close()


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
    assert await read_all(again) == (stored, [])
    again.close()
