"""Goal: no collection walks through all that is alive, and no cycle stays for ever.

Method: objects are counted that the collector has yet to walk through; never the time it takes.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import AsyncIterator

import pytest

from patience import until
from penstock.server import garbage as garbage_module
from penstock.server.garbage import Garbage
from penstock.server.run_queue import RunQueue

WALKED_MOST = 30_000
_SHRUNK = -(10**12)
"""Pieces by which memory has always grown."""


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
    monkeypatch.setattr(garbage_module, "_GROWN", _SHRUNK)
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
        monkeypatch.setattr(garbage_module, "_GROWN", _SHRUNK)
        seen = len(looks)
        await until(lambda: len(looks) > seen + 20)
        assert found() is not None
    finally:
        starved.stop()


def walked_through(objects: int) -> int:
    """Return how many of the young a collection walks through, which begins with so many alive."""
    found: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    gc.callbacks.append(look)
    gc.disable()  # As where as many objects end as begin, so that Python counts none.
    alive = [[number] for number in range(objects)]
    gc.enable()
    gc.collect(1)
    gc.callbacks.remove(look)
    assert len(alive) == objects
    return found[0]


@pytest.mark.usefixtures("garbage")
async def test_a_collection_walks_through_few() -> None:
    few, many = garbage_module._WALKED_MOST // 2, garbage_module._WALKED_MOST * 10
    assert walked_through(few) >= few
    assert walked_through(many) <= garbage_module._WALKED_MOST


@pytest.mark.usefixtures("garbage")
async def test_where_memory_has_grown_nothing_is_set_aside_without_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage_module, "_GROWN", _SHRUNK)
    many = garbage_module._WALKED_MOST * 10
    assert walked_through(many) >= many


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
