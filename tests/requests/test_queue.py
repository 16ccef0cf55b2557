"""Requests have their turns one after another, and what becomes of one costs the others nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager

import pytest

from penstock.requests.queue import Queue


async def work(turn: AbstractAsyncContextManager[None], name: str, done: list[str]) -> None:
    async with turn:
        done.append(f"{name} began")
        await asyncio.sleep(0)
        done.append(f"{name} ended")


async def test_turns_follow_the_order_in_which_they_were_asked_for() -> None:
    queue, done = Queue(), list[str]()
    first, second = queue.turn(), queue.turn()
    assert queue.waiting == 2
    later = asyncio.create_task(work(second, "second", done))
    await work(first, "first", done)
    await later
    assert done == ["first began", "first ended", "second began", "second ended"]
    assert queue.waiting == 0


@pytest.mark.parametrize("steps", [1, 2])
async def test_a_request_that_is_cancelled_gives_its_turn_back(steps: int) -> None:
    queue, done = Queue(), list[str]()
    tasks = [asyncio.create_task(work(queue.turn(), str(n), done)) for n in range(3)]
    for _ in range(steps):
        await asyncio.sleep(0)
    for task in tasks[:2]:
        task.cancel()
    await asyncio.wait(tasks)
    assert done[-1] == "2 ended"
    assert queue.waiting == 0


async def test_a_request_that_is_forgotten_while_it_waits_is_no_error() -> None:
    """Its connection is gone, and nobody but the garbage collection knows of it."""
    queue, done, errors = Queue(), list[str](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    async with queue.turn():
        forgotten = work(queue.turn(), "forgotten", done)
        forgotten.send(None)
        cycle: list[Coroutine[object, object, None] | list[object]] = [forgotten]
        cycle.append(cycle)  # type: ignore[arg-type]  # a cycle
        del forgotten, cycle
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0)
    assert queue.waiting == 0
    await work(queue.turn(), "next", done)
    assert done == ["next began", "next ended"]
    assert errors == []
