"""The threads that wait for the disk: how many there are, and how the event loop hears of them."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from faulty_files import FaultyFileSystem
from log_batches import append, make_batch, open_log
from patience import PATIENCE_SECONDS, until, wait_until
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log import threads as module
from penstock.log.threads import Job, News, Threads
from penstock.parties import ASKING, Line


class CountedLoop:
    """The part of an event loop that threads use, which counts how often they wake it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.woken = 0

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        self.woken += 1
        self._loop.call_soon_threadsafe(call)

    def call_soon(self, call: Callable[[], None]) -> None:
        self._loop.call_soon(call)


def nothing() -> None:
    """A job that is over as it begins."""


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads(2, "test")
    yield threads
    threads.close()


async def test_the_loop_is_woken_once_for_all_that_ended_meanwhile(threads: Threads) -> None:
    loop: Any = CountedLoop(asyncio.get_running_loop())
    news = News(loop)
    heard: list[int] = []
    jobs = [
        threads.do(nothing, lambda _, number=number: news.add(heard.append, number))
        for number in range(100)
    ]
    for job in jobs:
        job.wait()
    threads.close()  # All of them have said so; this loop has not had a turn since.
    assert heard == []
    assert loop.woken == 1
    await until(lambda: len(heard) == 100)
    assert sorted(heard) == list(range(100))
    news.add(heard.append, 100)
    assert loop.woken == 2, "the next one is announced again"


async def test_others_have_their_turns_while_the_loop_hears_of_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_HEARD_SECONDS", 0)
    loop = asyncio.get_running_loop()
    news, order = News(loop), list[str]()
    for _ in range(3):
        news.add(order.append, "news")
    for _ in range(2):
        loop.call_soon(order.append, "other")
    await until(lambda: len(order) == 5)
    assert order != sorted(order), "not all news in one turn"
    news.add(order.append, "last")
    await until(lambda: order[-1] == "last")


async def test_what_fails_in_the_loop_keeps_nothing_from_the_others() -> None:
    loop = asyncio.get_running_loop()
    failures: list[Any] = []
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    news, heard = News(loop), asyncio.Event()
    news.add(int, "no number")
    news.add(heard.set)
    await asyncio.wait_for(heard.wait(), PATIENCE_SECONDS)
    assert [type(failure) for failure in failures] == [ValueError]


def test_one_thread_is_free_while_they_may_be_more() -> None:
    threads = Threads(4, "test")
    gate = threading.Event()
    busy: set[str] = set()

    def hold() -> None:
        busy.add(threading.current_thread().name)
        assert gate.wait(PATIENCE_SECONDS)

    for count in range(1, 5):
        threads.do(nothing).wait()  # There is one for it beside those that are held up.
        held = len(threads._threads)
        assert held <= count + 1, "no more than that"
        threads.do(hold, party=f"{count}")
        wait_until(lambda count=count: len(busy) == count)  # type: ignore[misc]
    waits = threads.do(nothing)
    assert not waits.has_ended, "there are four threads, and all are busy"
    gate.set()
    waits.wait()
    threads.close()
    assert not any(thread.is_alive() for thread in threads._threads)


def test_a_quarter_of_the_threads_is_for_parties_of_which_nothing_is_done() -> None:
    threads = Threads(8, "test")
    gate, begun = threading.Event(), list[str]()

    def hold(party: str) -> None:
        begun.append(party)
        _pass(gate)

    def do(party: str) -> Job:
        return threads.do(partial(hold, party), party=party)

    jobs = [do(party) for _ in range(10) for party in ("many", "more")]
    wait_until(lambda: len(begun) == 6)
    threads.do(nothing, party="one").wait()
    held = [do("another"), do("the last")]
    wait_until(lambda: len(begun) == 8)
    assert begun[6:] == ["another", "the last"]
    gate.set()
    for job in jobs + held:
        job.wait()
    assert sorted(begun[8:]) == 7 * ["many"] + 7 * ["more"]
    assert (threads._barred, threads._busy, threads._at_work) == (0, 0, {})
    threads.close()


def test_what_waits_for_others_is_done_before_threads_are_closed() -> None:
    threads = Threads(4, "test")
    gate, done = threading.Event(), list[int]()
    for _ in range(3):
        threads.do(lambda: _pass(gate), party="many")
    for number in range(20):
        threads.do(partial(done.append, number), party="many")
    wait_until(lambda: threads._barred > 0)
    threading.Timer(0.05, gate.set).start()
    threads.close()
    assert sorted(done) == [*range(20)]


def test_whoever_has_something_done_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads(4, "test")
    starters: list[threading.Thread] = []

    class Noted(threading.Thread):
        def start(self) -> None:
            starters.append(threading.current_thread())
            super().start()

    monkeypatch.setattr(module.threading, "Thread", Noted)
    gate = threading.Event()
    jobs = [threads.do(lambda: gate.wait(PATIENCE_SECONDS)) for _ in range(8)]
    gate.set()
    for job in jobs:
        job.wait()
    threads.close()
    assert starters
    assert threading.current_thread() not in starters


def test_jobs_are_done_where_the_system_gives_no_more_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = Threads(4, "test")

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module.threading, "Thread", Refused)
    for job in [threads.do(nothing) for _ in range(8)]:
        job.wait()
    threads.close()
    with pytest.raises(RuntimeError):
        Threads(4, "test")


async def test_a_job_says_what_it_failed_with_and_its_thread_goes_on(threads: Threads) -> None:

    def fail() -> None:
        raise ValueError("made to fail")

    for _ in range(3):
        failed = threads.do(fail)
        failed.wait()
        assert isinstance(failed.error, ValueError)
    well = threads.do(nothing)
    well.wait()
    assert well.error is None


async def test_what_a_thread_raises_keeps_nothing(threads: Threads) -> None:
    news = News(asyncio.get_running_loop())
    known: list[weakref.ref[Event]] = []

    def fail() -> None:
        held = Event()
        known.append(weakref.ref(held))
        raise ValueError("made to fail")

    gc.disable()
    try:
        with suppress(ValueError):
            await threads.done(news, fail)
        await until(lambda: [each() for each in known] == [None])
    finally:
        gc.enable()
    assert await threads.done(news, lambda: "well") == "well"


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    threads, news = Threads(1, "test"), News(asyncio.get_running_loop())
    gate, done = Event(), list[str]()
    held = threads.do(partial(_pass, gate))
    waiting = [
        asyncio.create_task(threads.done(news, partial(done.append, "read"), if_awaited=True)),
        asyncio.create_task(threads.done(news, partial(done.append, "flush"))),
    ]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    gate.set()
    held.wait()
    threads.close()
    assert done == ["flush"]


async def test_each_party_has_one_job_done_before_anybody_has_a_second() -> None:
    threads = Threads(1, "test")
    gate, done = threading.Event(), list[str]()
    begun = threading.Event()

    def hold() -> None:
        begun.set()
        _pass(gate)

    threads.do(hold, party="many")
    assert begun.wait(PATIENCE_SECONDS)
    for party, count in (("many", 100), ("few", 2), ("one", 1)):
        for _ in range(count):
            threads.do(partial(done.append, party), party=party)
    gate.set()
    threads.close()
    assert done[:5] == ["many", "few", "one", "many", "few"]
    assert done[5:] == ["many"] * 98


def test_who_comes_goes_before_many_who_have_more_to_do() -> None:
    line, parties = Line(), dict[Job, str]()

    def put(party: str, count: int = 1) -> None:
        for _ in range(count):
            job = Job(nothing)
            parties[job] = party
            line.put((job, None), party)

    def take(count: int) -> list[str]:
        return [parties[line.take()[0]] for _ in range(count)]

    many = [f"many {number}" for number in range(100)]
    for party in many:
        put(party, 4)
    assert set(take(133)) == set(many), "one of four turns is another one's second"
    for _ in range(50):
        for party in ("new 1", "new 2", "new 3"):
            put(party)
        taken = take(4)
        assert set(taken) > {"new 1", "new 2", "new 3"}, "nobody waits for ever"
    assert set(take(400 - 133 - 50)) < set(many)


async def test_a_flush_is_done_in_the_turn_of_who_asked_for_it(disk: FaultyFileSystem) -> None:
    flusher = Flusher(1)
    gate, flushed = threading.Event(), dict[str, None]()

    def note(operation: str, path: Path) -> None:
        if operation == "fdatasync":
            _pass(gate)
            flushed.setdefault(path.parent.name)

    names = [f"log-{number}" for number in range(20)]
    logs = [LocalLog.open(Path(name), LogConfig(), disk, flusher) for name in names]
    disk.hook = note
    waiting = []
    for log in logs:
        ASKING.set("one" if log is logs[-1] else "many")
        waiting.append(log.flushed(append(log, make_batch())))
    await asyncio.sleep(0)  # The round of each begins.
    gate.set()
    for outcome in waiting:
        await outcome
    assert flushed.keys() == set(names)
    assert names[-1] in list(flushed)[:3]
    for log in logs:
        log.close()
    flusher.close()


def _pass(gate: threading.Event) -> None:
    assert gate.wait(PATIENCE_SECONDS)


async def test_a_write_and_the_flush_after_it_are_one_visit_of_one_thread(
    disk: FaultyFileSystem, flusher: Flusher
) -> None:
    """A producer that waits for the write, and a reader that waits for the flush."""
    log = open_log(disk, flusher, LogConfig())
    await log.flushed(append(log, make_batch()))
    visits: list[Job] = []
    for pool in (flusher.writing, flusher.flushing):
        _count(pool, visits)
    offset = append(log, make_batch())
    log.flush_soon(at_once=True)
    gate = threading.Event()

    def hold_up(operation: str, _path: object) -> None:
        if operation == "fdatasync":
            assert gate.wait(PATIENCE_SECONDS)

    disk.hook = hold_up
    await asyncio.wait_for(log.written(offset), PATIENCE_SECONDS)
    assert log.flushed_offset <= offset < log.written_offset, "the flush does not hold it up"
    gate.set()
    await log.flushed(offset)
    assert len(visits) == 1
    log.close()


def _count(pool: Threads, jobs: list[Job]) -> None:
    do = pool.do

    def counted(*words: Any) -> Job:
        jobs.append(do(*words))
        return jobs[-1]

    pool.do = counted  # type: ignore[method-assign]
