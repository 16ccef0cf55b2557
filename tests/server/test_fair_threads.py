"""Goal: no client's work in threads keeps the others' from its turn, however much of it there is.

Method: work that ends when it is let, so that nothing depends on how long anything takes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from patience import PATIENCE_SECONDS
from penstock.fair_threads import FairThreads

SMALL, MEDIUM, LARGE = 10, 100, 1_000


class Client:
    """Whoever has work."""


class Work:
    """Work in a thread that goes on until it is ended."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self._may_end = threading.Event()

    def __call__(self) -> int:
        self.began.set()
        assert self._may_end.wait(PATIENCE_SECONDS)
        return threading.get_ident()

    def end(self) -> None:
        self._may_end.set()


class House:
    """Some threads, and all work that was given to them."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def give(
        self, threads: FairThreads, client: object, size: float
    ) -> tuple[Work, asyncio.Task[int]]:
        work = Work()
        self.works.append(work)
        return work, asyncio.ensure_future(threads.run(client, size, work))


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    for work in house.works:
        work.end()


async def begun(work: Work) -> None:
    assert await asyncio.to_thread(work.began.wait, PATIENCE_SECONDS)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_large_work_leaves_threads_to_what_is_smaller(house: House) -> None:
    threads = FairThreads("test", (SMALL, MEDIUM))
    larges = [house.give(threads, Client(), LARGE) for _ in range(3)]
    await begun(larges[0][0])
    mediums = [house.give(threads, Client(), MEDIUM) for _ in range(3)]
    await begun(mediums[0][0])
    small, answer = house.give(threads, Client(), SMALL)
    await begun(small)
    small.end()
    await answer
    await settled()
    assert [work.began.is_set() for work, _ in larges] == [True, False, False]
    assert [work.began.is_set() for work, _ in mediums] == [True, False, False]


async def test_small_work_has_every_thread_that_is_free(house: House) -> None:
    threads = FairThreads("test", (SMALL, MEDIUM))
    given = [house.give(threads, Client(), SMALL) for _ in range(3)]
    for work, _ in given:
        await begun(work)
    for work, _ in given:
        work.end()
    assert len(set(await asyncio.gather(*(answer for _, answer in given)))) == 3


async def test_who_had_much_goes_behind_those_who_had_little(house: House) -> None:
    threads = FairThreads("test", ())
    first, _ = house.give(threads, Client(), 1)
    await begun(first)
    greedy, modest, other = Client(), Client(), Client()
    asked = [("greedy", greedy, 100)] * 3 + [("other", other, 150), ("modest", modest, 10)]
    order: list[str] = []

    async def run(name: str, client: object, size: float) -> None:
        await threads.run(client, size, lambda: order.append(name))

    tasks = [asyncio.ensure_future(run(*each)) for each in asked]
    await settled()
    first.end()
    await asyncio.gather(*tasks)
    assert order == ["modest", "greedy", "other", "greedy", "greedy"]


async def test_who_was_idle_has_no_credit(house: House) -> None:
    threads = FairThreads("test", ())
    for _ in range(10):
        await threads.run(busy := Client(), 100, int)
    first, _ = house.give(threads, Client(), 1)
    await begun(first)
    order: list[str] = []
    idle = Client()
    tasks = [
        asyncio.ensure_future(threads.run(client, size, lambda name=name: order.append(name)))
        for name, client, size in [("busy", busy, 10), *[("idle", idle, 20)] * 3]
    ]
    await settled()
    first.end()
    await asyncio.gather(*tasks)
    assert order[0] == "busy"


async def test_who_leaves_while_waiting_takes_no_thread(house: House) -> None:
    threads = FairThreads("test", ())
    first, _ = house.give(threads, Client(), 1)
    await begun(first)
    left, gone = house.give(threads, Client(), 1)
    await settled()
    gone.cancel()
    first.end()
    assert await threads.run(Client(), 1, lambda: 7) == 7
    assert not left.began.is_set()


async def test_who_leaves_keeps_the_thread_until_the_work_is_done(house: House) -> None:
    threads = FairThreads("test", ())
    first, gone = house.give(threads, Client(), 1)
    await begun(first)
    gone.cancel()
    second, answer = house.give(threads, Client(), 1)
    await settled()
    assert not second.began.is_set()
    first.end()
    await begun(second)
    second.end()
    await answer


async def test_a_failure_reaches_the_caller_and_frees_the_thread() -> None:
    threads = FairThreads("test", ())
    with pytest.raises(ZeroDivisionError):
        await threads.run(Client(), 1, lambda: 1 / 0)
    assert await threads.run(Client(), 1, lambda: 7) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
async def test_the_event_loop_goes_before_the_threads() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    threads = FairThreads("test", [SMALL])
    assert await threads.run(Client(), LARGE, niceness) > niceness()
    assert await threads.run(Client(), SMALL, niceness) > niceness()
