"""Goal: no collection walks through all that is alive, and no cycle stays for ever.

Method: objects are counted that the collector has yet to walk through; never the time it takes.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator

import pytest

from patience import until
from penstock.server import garbage as garbage_module
from penstock.server.garbage import Garbage
from penstock.server.run_queue import RunQueue

WALKED_MOST = 30_000


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
async def garbage() -> AsyncIterator[Garbage]:
    made = Garbage()
    made.start()
    yield made
    made.stop()


@pytest.mark.usefixtures("garbage")
async def test_what_is_alive_is_walked_through_once() -> None:
    most = 0
    alive = []
    for _ in range(100):
        alive.extend([number] for number in range(5_000))
        most = max(most, len(gc.get_objects()))
    assert len(alive) == 500_000
    assert most < WALKED_MOST


@pytest.mark.usefixtures("garbage")
async def test_a_cycle_that_was_set_aside_is_found_when_there_is_little_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage_module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(garbage_module, "_IDLE_SHARE", float("inf"))
    cycle = Cycle()
    found = weakref.ref(cycle)
    gc.collect(1)  # Set aside by this.
    del cycle
    gc.collect()
    assert found() is not None
    monkeypatch.setattr(garbage_module, "_SET_ASIDE", 1)
    await until(lambda: found() is None)


async def test_a_loop_that_waits_for_the_processor_is_not_taken_for_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[float] = []

    class Starved(RunQueue):
        def seconds(self) -> float:
            looks.append(time.monotonic())
            return looks[-1]

    monkeypatch.setattr(garbage_module, "RunQueue", Starved)
    monkeypatch.setattr(garbage_module, "_LOOK_SECONDS", 0.01)
    starved = Garbage()
    starved.start()
    try:
        cycle = Cycle()
        found = weakref.ref(cycle)
        gc.collect(1)  # Set aside by this.
        del cycle
        monkeypatch.setattr(garbage_module, "_SET_ASIDE", 1)
        seen = len(looks)
        await until(lambda: len(looks) > seen + 20)
        assert found() is not None
    finally:
        starved.stop()


@pytest.mark.usefixtures("garbage")
async def test_a_busy_loop_leaves_few_to_be_walked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage_module, "_BUSY_SECONDS", 0.0)
    under_way: deque[list[list[int]]] = deque(maxlen=50)
    most = 0
    for _ in range(400):
        # As many objects end as begin, so that Python counts none.
        under_way.append([[number] for number in range(100)])
        most = max(most, len(gc.get_objects(0)) + len(gc.get_objects(1)))
        if most > garbage_module._WALKED_MOST:
            await until(lambda: len(gc.get_objects(0)) < 1_000)
            return
    pytest.fail("Python counts what is freed after all")


async def test_the_collector_is_left_as_it_was_found() -> None:
    before = gc.get_threshold(), list(gc.callbacks)
    garbage = Garbage()
    garbage.start()
    assert gc.get_threshold() != before[0]
    garbage.stop()
    assert (gc.get_threshold(), gc.callbacks) == before
    Garbage().stop()


async def test_the_collector_works_from_its_start_on() -> None:
    gc.disable()
    garbage = Garbage()
    garbage.start()
    assert gc.isenabled()
    garbage.stop()
