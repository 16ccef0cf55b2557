"""What is asked for in one pass of the loop is done once in the next."""

from __future__ import annotations

import asyncio

import pytest

from penstock.passes import NextPass


async def test_it_is_done_once_however_often_it_is_asked_for() -> None:
    done: list[str] = []
    following = NextPass(lambda: done.append("once"))
    following.ask()
    following.ask()
    assert done == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == ["once"]


async def test_what_is_done_may_ask_for_the_pass_that_follows() -> None:
    passes: list[int] = []

    def work() -> None:
        passes.append(len(passes))
        if len(passes) < 3:
            following.ask()

    following = NextPass(work)
    following.ask()
    for _ in range(5):
        await asyncio.sleep(0)
    assert passes == [0, 1, 2]


def test_where_no_loop_runs_nothing_is_taken_for_asked() -> None:
    done: list[str] = []
    following = NextPass(lambda: done.append("once"))
    with pytest.raises(RuntimeError, match="no running event loop"):
        following.ask()

    async def ask() -> None:
        following.ask()
        await asyncio.sleep(0)

    asyncio.run(ask())
    assert done == ["once"]
