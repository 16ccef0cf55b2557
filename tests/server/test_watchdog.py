"""Goal: what holds the event loop up is named in the log, and nothing else is.

Method: turns of a real loop that take too long, each for a reason of its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator

import pytest

from patience import until
from penstock.server import watchdog as watchdog_module
from penstock.server.watchdog import STALL, Watchdog
from stalls import busy_stalls

TRIES = 20
"""On a busy machine a turn may wait for the processor before its task begins, and that is named."""


@pytest.fixture
async def watchdog(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Watchdog]:
    caplog.set_level(logging.WARNING)
    made = Watchdog()
    made.start()
    yield made
    made.stop()


def stalls(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.getMessage().startswith(STALL)]


def waited(line: str) -> int:
    return int(line.split("waiting ")[1].split(" ms", maxsplit=1)[0])


def spin(seconds: float) -> None:
    """Use so much of the processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.usefixtures("watchdog")
async def test_a_turn_that_is_busy_for_too_long_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        spin(0.4)

    named: list[str] = []
    for _ in range(TRIES):
        before = len(stalls(caplog))
        await asyncio.create_task(work(), name="a task of the test")
        await until(lambda: len(stalls(caplog)) > before)  # noqa: B023  # it is over before the next
        named = [line for line in stalls(caplog) if "a task of the test" in line]
        if named:
            break
    (line,) = named
    assert "by a task of the test: spin (test_watchdog.py:" in line
    assert "< work (test_watchdog.py:" in line
    assert int(line.split("(busy ")[1].split(" ms")[0]) > 300


@pytest.mark.usefixtures("watchdog")
async def test_a_call_that_blocks_is_named_too(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.get_running_loop().call_soon(time.sleep, 0.5)
    await until(lambda: any(waited(line) > 200 for line in stalls(caplog)))


@pytest.mark.usefixtures("watchdog")
async def test_many_short_turns_are_no_stall(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(200):
        spin(0.002)
        await asyncio.sleep(0)
    assert busy_stalls(caplog.text) == []


async def test_a_process_without_a_processor_is_not_to_blame(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Starved(watchdog_module.RunQueue):
        def seconds(self) -> float:
            return time.perf_counter()  # As if it had been ready and not run all the time.

    monkeypatch.setattr(watchdog_module, "RunQueue", Starved)
    caplog.set_level(logging.WARNING)
    watchdog = Watchdog()
    watchdog.start()
    time.sleep(0.3)  # noqa: ASYNC251  # the loop is to be held up
    await asyncio.sleep(0.12)
    watchdog.stop()
    assert stalls(caplog) == []
