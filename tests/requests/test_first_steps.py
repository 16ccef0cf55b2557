"""Goal: a coroutine that waits for nothing needs no task; one that waits goes on as in a task."""

from __future__ import annotations

import asyncio
import gc

import pytest

from penstock.session import Signal, ended
from penstock.tasks import Ended, begin, in_task, within


async def test_what_waits_for_nothing_ends_at_once() -> None:
    async def work() -> int:
        return 7

    assert begin(work()) == Ended(7)


async def test_what_waits_goes_on_where_it_was() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        return await future + await asyncio.sleep(0, 1)

    rest = begin(work())
    assert not isinstance(rest, Ended)
    task = asyncio.ensure_future(rest)
    await asyncio.sleep(0)
    future.set_result(6)
    assert await task == 7


async def test_a_failure_is_raised_where_it_would_be_awaited() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def at_once() -> None:
        raise ZeroDivisionError

    async def later() -> str:
        try:
            await future
        except ZeroDivisionError:
            return "caught inside"
        return "not raised"

    with pytest.raises(ZeroDivisionError):
        begin(at_once())
    rest = begin(later())
    assert not isinstance(rest, Ended)
    future.set_exception(ZeroDivisionError())
    assert await rest == "caught inside"


async def test_a_wait_can_be_cancelled() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("ended")

    rest = begin(work())
    assert not isinstance(rest, Ended)
    task = asyncio.ensure_future(rest)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"]


async def test_a_time_limit_ends_the_work_and_not_who_began_it() -> None:
    async def work() -> str:
        await in_task()
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            return "in time"
        return "too late"

    rest = begin(work())
    assert not isinstance(rest, Ended)
    assert await asyncio.ensure_future(rest) == "in time"


async def test_what_is_there_needs_no_timer() -> None:
    async def ready() -> int:
        return 7

    assert begin(within(0, ready())) == Ended(7)
    with pytest.raises(TimeoutError):
        await within(0.01, asyncio.sleep(10))


async def test_a_rest_that_nobody_awaits_is_closed(recwarn: pytest.WarningsRecorder) -> None:
    ended: list[str] = []
    awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            await awaited
        finally:
            ended.append("closed")

    begin(work())
    gc.collect()
    assert ended == ["closed"]
    assert awaited.cancelled(), "nobody would hear of its failure"
    assert [str(each.message) for each in recwarn] == []


@pytest.mark.parametrize("fails", [False, True])
async def test_of_several_that_nobody_awaits_only_a_failure_is_reported(
    caplog: pytest.LogCaptureFixture, *, fails: bool
) -> None:
    async def one() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if fails:
                raise ZeroDivisionError from None
            raise

    async def several() -> None:
        await asyncio.gather(one(), one())

    rest = begin(several())
    await asyncio.sleep(0)
    del rest
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert [record.name for record in caplog.records] == ["penstock.tasks"] * fails


async def test_what_waits_for_a_signal_can_be_awaited_in_a_task_too() -> None:
    signal = Signal()

    async def work() -> int:
        await ended(signal)
        signal.clear()
        await ended(signal)
        return 7

    rest = begin(work())
    assert not isinstance(rest, Ended)
    assert rest.awaited is signal
    task = asyncio.ensure_future(rest)
    for _ in range(2):
        await asyncio.sleep(0)
        signal.set()
    assert await task == 7


async def test_what_waits_for_a_future_through_something_else_goes_on_in_a_task() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        await ended(future)
        return 7

    rest = begin(work())
    assert not isinstance(rest, Ended)
    assert rest.awaited is None, "a future is for a task"
    task = asyncio.ensure_future(rest)
    await asyncio.sleep(0)
    future.set_result(None)
    assert await task == 7
