"""What is written together has one outcome, which all who wait for any of it share."""

from __future__ import annotations

import asyncio

import pytest

from faulty_files import FaultyFileSystem, failing
from log_batches import append, make_batch, open_log, read_all
from penstock.log import Flusher, LogConfig, LogWriteError
from penstock.log.interface import Outcome
from penstock.log.waiters import Waiters
from penstock.log.writer import BATCHES_TOGETHER
from penstock.session import ended

FAILURE = LogWriteError("made to fail")


async def test_a_waiter_that_gives_up_leaves_the_others_alone() -> None:
    outcome = Outcome()

    async def wait() -> str:
        await outcome
        return "done"

    tasks = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    assert not outcome.done()
    outcome.settle()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[::2] == ["done", "done"]
    assert isinstance(results[1], asyncio.CancelledError)


async def test_whoever_asks_late_has_the_same_outcome() -> None:
    outcome = Outcome()
    heard: list[LogWriteError | None] = []
    outcome.add_done_callback(lambda each: heard.append(each.exception()))  # type: ignore[arg-type]
    outcome.settle(FAILURE)
    outcome.add_done_callback(lambda each: heard.append(each.exception()))  # type: ignore[arg-type]
    assert heard == [FAILURE, FAILURE]
    await ended(outcome)
    with pytest.raises(LogWriteError):
        await outcome


def test_waiters_are_settled_by_what_is_reached_and_by_what_fails() -> None:
    waiters = Waiters()
    outcomes = [waiters.join(offset, None) for offset in (3, 7, 7, 5)]
    assert outcomes[1] is outcomes[2]
    waiters.reached(6)
    assert [outcome.done() for outcome in outcomes] == [True, False, False, True]
    waiters.fail(FAILURE, 7)
    assert outcomes[1].exception() is FAILURE
    assert not waiters
    assert waiters.join(9, FAILURE).exception() is FAILURE


async def test_all_of_one_turn_of_the_loop_share_their_outcomes(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    log = open_log(disk, flusher, LogConfig())
    offsets = [append(log, make_batch()) for _ in range(100)]
    assert len({id(log.written(offset)) for offset in offsets}) == 1
    assert len({id(log.flushed(offset)) for offset in offsets}) == 1
    first = log.written(offsets[0])
    await first
    assert log.written(append(log, make_batch())) is not first
    await log.flushed(offsets[-1])
    assert first.exception() is None
    log.close()


async def test_of_what_shares_an_outcome_all_is_written_or_nothing(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    """One turn brings more than one call writes, and the second call fails."""
    log = open_log(disk, flusher, LogConfig())
    disk.hook = failing(2, "pwritev")
    parts = [make_batch() for _ in range(BATCHES_TOGETHER + 100)]
    waiting = [log.written(append(log, each)) for each in parts]
    await asyncio.gather(*map(ended, waiting))
    failures = [outcome.exception() for outcome in waiting]
    assert failures[:BATCHES_TOGETHER] == [None] * BATCHES_TOGETHER
    assert {type(failure) for failure in failures[BATCHES_TOGETHER:]} == {LogWriteError}
    stored, damaged = await read_all(log)
    assert stored == [b"".join(each) for each in parts[:BATCHES_TOGETHER]]
    assert damaged == []
    log.close()
