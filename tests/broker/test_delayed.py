"""The order in which delayed messages are due, against a sorted list, and what it takes."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions import delayed as module
from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.delayed import TICK_MS, Delayed, tick_of

LAST_MS = (1 << 63) - 1
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "take", "sweep"]),
        st.integers(0, 12) | st.just(LAST_MS // TICK_MS),
        st.integers(1, 4),
        st.booleans(),
    ),
    max_size=80,
)


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK_RUNS", 4)


@pytest.mark.usefixtures("_small_chunks")
@settings(max_examples=200)
@given(STEPS)
def test_what_is_due_first_comes_first(steps: list[tuple[str, int, int, bool]]) -> None:
    """Offsets grow, with gaps; each tick's offsets come in order, and none twice."""
    delayed, model, end, below = Delayed(), dict[int, int](), 0, 0
    for name, number, size, flag in steps:
        if name == "add":
            start = end + (BLOCK if flag else 0)
            end = start + size
            delayed.add(number * TICK_MS, start, end)
            model.update(dict.fromkeys(range(start, end), number))
        elif name == "take":
            taken = [o for run in delayed.take_due(number * TICK_MS, size) for o in range(*run)]
            due = sorted((tick, offset) for offset, tick in model.items() if tick <= number)
            assert taken == [offset for _, offset in due[: len(taken)]]
            assert bool(taken) == bool(due)
            for offset in taken:
                del model[offset]
        else:
            below = max(below, end - size * BLOCK)
            for _ in range(2 * len(delayed) + 1):
                delayed.sweep(below)
            whole = [run for run in runs_of(delayed) if run[0] < below < run[1]]
            kept = {offset for run in whole for offset in range(*run)}
            model = {o: tick for o, tick in model.items() if o >= below or o in kept}
        if model:
            assert delayed.first_due_ms == min(model.values()) * TICK_MS
        assert bool(delayed) == bool(model)
        assert len(delayed) == len(runs_of(delayed))


def runs_of(delayed: Delayed) -> list[tuple[int, int]]:
    return [
        (start, start + length)
        for chunk in delayed._chunks
        for start, length in zip(chunk.starts, chunk.lengths, strict=True)
    ]


@pytest.mark.usefixtures("_small_chunks")
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 39))
def test_what_is_there_is_not_added_again(ticks: list[int], again: int) -> None:
    delayed = Delayed()
    for offset, tick in enumerate(ticks):
        delayed.add(tick * TICK_MS, offset, offset + 1)
    again %= len(ticks)
    delayed.add(ticks[again] * TICK_MS, again, again + 1)
    taken = []
    while run := delayed.take_due(3 * TICK_MS, 1):
        taken += range(*run[0])
    assert sorted(taken) == list(range(len(ticks)))


def test_no_message_is_due_early_or_a_tick_late() -> None:
    assert [tick_of(due) for due in (-1, 0, 1, TICK_MS, TICK_MS + 1)] == [0, 0, 1, 1, 2]
    delayed = Delayed()
    delayed.add(LAST_MS, 0, 1)
    assert not delayed.take_due(LAST_MS, 1)
    assert delayed.take_due(LAST_MS + TICK_MS, 1) == [(0, 1)]


def test_messages_in_a_row_are_few_runs() -> None:
    delayed = Delayed()
    for offset in range(10 * BLOCK):
        delayed.add(TICK_MS, offset, offset + 1)
    assert len(delayed) == 10
    assert len(delayed.take_due(TICK_MS, 100)) == 10


def test_times_at_random_take_few_bytes_each() -> None:
    random.seed(5)
    count = 20_000
    times = [random.randrange(1 << 40) for _ in range(count)]
    tracemalloc.start()
    try:
        delayed = Delayed()
        for offset, due in enumerate(times):
            delayed.add(due, 2 * offset, 2 * offset + 1)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(delayed) == count
    assert taken < 25 * count
    assert 0.8 * taken < delayed.used_bytes < 1.3 * taken


def test_what_was_passed_goes_in_few_steps() -> None:
    delayed = Delayed()
    for offset in range(0, 20_000, 2):
        delayed.add(LAST_MS - offset * 1_000, offset, offset + 1)
    steps = 0
    while delayed.sweep(20_000):
        steps += 1
    assert not delayed
    assert delayed.used_bytes == 0
    assert steps < 40
