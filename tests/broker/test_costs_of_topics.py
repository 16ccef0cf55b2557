"""Goal: making a topic, and starting with many, costs the same however many there are.

Method: files that are opened, statements, the steps that SQLite takes and the lines that the event
loop runs are counted, not timed; `make soak` holds the processor's time to its bars too.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.new_topic import NewTopic
from penstock.metadata.sqlite import SqliteDatabase
from running import running

FEW, MANY = 10, 400
BAR_CREATION_SECONDS = 0.002
BAR_START_SECONDS = 1
TRIES = 3
"""Of a start: others on the machine make it slower, and nothing makes it faster."""


class Cost(NamedTuple):
    """What was asked of the disk and of the database."""

    opened: int
    statements: int
    database_steps: int


class Counter:
    """Counts what is done since it was last asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._opened: list[object] = []
        self._statements: list[str] = []
        self._steps = count()
        for module, name in ((os, "open"), (os, "scandir"), (builtins, "open"), (io, "open")):
            self._watch(module, name)
        begin = SqliteDatabase.__init__

        def watched(database: SqliteDatabase, file: Path) -> None:
            begin(database, file)
            database._connection.set_trace_callback(self._statements.append)
            database._connection.set_progress_handler(self._step, 1)

        monkeypatch.setattr(SqliteDatabase, "__init__", watched)

    def taken(self) -> Cost:
        cost = Cost(len(self._opened), len(self._statements), next(self._steps))
        self._opened.clear()
        self._statements.clear()
        self._steps = count()
        return cost

    def _step(self) -> None:
        next(self._steps)

    def _watch(self, module: object, name: str) -> None:
        original: Callable[..., object] = getattr(module, name)

        def watched(*arguments: object, **named: object) -> object:
            self._opened.append(arguments)
            return original(*arguments, **named)

        self._monkeypatch.setattr(module, name, watched)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


@contextlib.contextmanager
def lines_run() -> Iterator[Callable[[], int]]:
    """Count the lines of Python that this thread runs in what begins or goes on inside."""
    seen: list[None] = []

    def trace(_frame: FrameType, _event: str, _argument: object) -> Callable[..., object]:
        seen.append(None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: len(seen)
    finally:
        sys.settrace(before)


def named(text: str) -> TopicName:
    return TopicName("public", "default", text)


async def fill(broker: Broker, topics: int) -> None:
    """Have so many topics."""
    missing = range(len(broker.topics.all()), topics)
    await broker.topics.create_all([NewTopic(named(f"t{number}"), 1) for number in missing])


async def test_one_topic_more_costs_the_same_however_many_there_are(
    tmp_path: Path, counter: Counter
) -> None:
    costs, lines = [], []
    async with running(tmp_path) as broker:
        for topics in (FEW, MANY):
            await fill(broker, topics)
            counter.taken()
            with lines_run() as run:
                await broker.topics.create(named(f"after {topics}"), 1)
            costs.append(counter.taken())
            lines.append(run())
    assert costs[0] == costs[1]
    assert min(costs[0]) > 0
    # The loop itself may turn once more or less.
    assert 1_000 < lines[1] < 1.1 * lines[0]


async def test_a_start_asks_for_the_same_however_many_topics_there_are(
    tmp_path: Path, counter: Counter
) -> None:
    costs = []
    for topics in (FEW, MANY):
        async with running(tmp_path) as broker:
            await fill(broker, topics)
        counter.taken()
        async with running(tmp_path) as broker:
            costs.append(counter.taken())
            assert len(broker.topics.all()) == topics
    assert costs[0][:2] == costs[1][:2]
    # Their rows are read, each once.
    assert costs[1].database_steps < costs[0].database_steps + 100 * (MANY - FEW)


@pytest.mark.soak
async def test_creation_and_start_keep_their_bars_at_ten_thousand(tmp_path: Path) -> None:
    """CPU a topic, of the broker and its threads, early and late, and of a start with all."""
    costs = []
    async with running(tmp_path) as broker:
        for number in range(10_000):
            if number % 1000 == 0:
                costs.append(time.process_time())
            await broker.topics.create(named(f"t{number}"), 1)
    each = [(late - early) / 1000 for early, late in pairwise(costs)]
    assert min(each[-3:]) < 1.3 * max(each[:3])
    assert min(each) < BAR_CREATION_SECONDS
    assert min([await start_seconds(tmp_path, 10_000) for _ in range(TRIES)]) < BAR_START_SECONDS


async def start_seconds(folder: Path, topics: int) -> float:
    """The CPU time of a start, which reads the rows of topics and opens none of their logs."""
    before = time.process_time()
    async with running(folder) as broker:
        seconds = time.process_time() - before
        assert len(broker.topics.all()) == topics
    return seconds
