"""A cursor against a model that keeps every acknowledged offset in a set."""

from __future__ import annotations

import sys
import tracemalloc
from itertools import count, pairwise
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.bitmaps import BLOCK, leading_run, runs, span
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.runs import Runs

# Few enough to meet each other, on both sides of the end of a block and blocks away.
OFFSETS = st.integers(0, 40) | st.integers(BLOCK - 20, BLOCK + 20) | st.integers(0, 4 * BLOCK)
ACKS = st.lists(st.tuples(st.booleans(), OFFSETS, OFFSETS), max_size=40)


def acknowledged(cursor: Cursor) -> set[int]:
    offsets = set(range(cursor.position))
    for start, end in cursor.ranges:
        offsets.update(range(start, end))
    return offsets


def played(acks: list[tuple[bool, int, int]]) -> tuple[Cursor, set[int]]:
    cursor, model = Cursor(0), set()
    for below, start, end in acks:
        if below:
            cursor.acknowledge_below(end)
            model |= set(range(end))
        else:
            cursor.acknowledge(start, end)
            model |= set(range(start, end))
    return cursor, model


@settings(max_examples=200)
@given(ACKS)
def test_holds_what_was_acknowledged_in_the_fewest_ranges(
    acks: list[tuple[bool, int, int]],
) -> None:
    cursor, model = played(acks)
    assert acknowledged(cursor) == model
    assert cursor.acknowledged_above == len(model) - cursor.position
    edge = cursor.position
    for start, end in cursor.ranges:
        assert edge < start < end
        edge = end


@settings(max_examples=200)
@given(ACKS, OFFSETS, st.integers(1, 20) | st.just(2 * BLOCK))
def test_tells_what_is_open_in_a_batch(
    acks: list[tuple[bool, int, int]], start: int, size: int
) -> None:
    cursor, model = played(acks)
    mask = cursor.open_mask(start, start + size)
    for index in range(size):
        assert bool(mask >> index & 1) == (start + index not in model)
    assert mask >> size == 0
    assert cursor.open_count(start, start + size) == mask.bit_count()


@settings(max_examples=200)
@given(ACKS, st.sets(OFFSETS))
def test_takes_many_ranges_at_once(acks: list[tuple[bool, int, int]], boundaries: set[int]) -> None:
    cursor, model = played(acks)
    ordered = sorted(boundaries)
    ranges = list(zip(ordered[::2], ordered[1::2], strict=False))
    cursor.acknowledge_all(ranges)
    model.update(*(range(start, end) for start, end in ranges))
    assert acknowledged(cursor) == model
    assert cursor.acknowledged_above == len(model) - cursor.position


@settings(max_examples=200)
@given(ACKS, OFFSETS, st.sets(OFFSETS))
def test_takes_any_messages_of_a_batch_at_once(
    acks: list[tuple[bool, int, int]], start: int, places: set[int]
) -> None:
    cursor, model = played(acks)
    marked = {start + place for place in places}
    assert cursor.acknowledge_set(start, sum(1 << place for place in places)) == len(marked - model)
    model |= marked
    assert acknowledged(cursor) == model
    assert cursor.acknowledged_above == len(model) - cursor.position


@settings(max_examples=200)
@given(ACKS, OFFSETS)
def test_survives_storing_and_the_loss_of_a_tail(
    acks: list[tuple[bool, int, int]], end: int
) -> None:
    cursor, model = played(acks)
    restored = Cursor.restored(cursor.position, stored(cursor, {}))
    assert acknowledged(restored) == model
    assert restored.take_changes().blocks == []
    assert restored.cut_off(end) == any(offset >= end for offset in model)
    assert acknowledged(restored) == {offset for offset in model if offset < end}


def test_reset_forgets_what_was_acknowledged_above() -> None:
    cursor = Cursor(5)
    cursor.acknowledge(10, 12)
    cursor.reset(3)
    assert cursor.position == 3
    assert list(cursor.ranges) == []


@settings(max_examples=200)
@given(st.lists(st.tuples(ACKS, st.sampled_from(["lost", "stored", "moved"])), max_size=5))
def test_what_is_stored_follows_by_its_changes(rounds: list[tuple[list, str]]) -> None:
    cursor, blocks = Cursor(0), {}
    for acks, fate in rounds:
        for below, start, end in acks:
            if below:
                cursor.acknowledge_below(end)
            else:
                cursor.acknowledge(start, end)
        if fate == "moved":
            cursor.reset(cursor.position // 2)
        if fate == "lost":
            cursor.give_back(cursor.take_changes())
            continue
        blocks = stored(cursor, blocks)
        restored = Cursor.restored(cursor.position, blocks)
        assert acknowledged(restored) == acknowledged(cursor)
        assert restored.acknowledged_above == cursor.acknowledged_above


def stored(cursor: Cursor, blocks: dict[int, int]) -> dict[int, int]:
    """What is stored after the cursor's changes."""
    from_number, changed = cursor.take_changes()
    kept = {number: bits for number, bits in blocks.items() if number >= from_number}
    return {number: bits for number, bits in (kept | dict(changed)).items() if bits}


def changed_blocks(cursor: Cursor) -> list[int]:
    return sorted(number for number, _ in cursor.take_changes().blocks)


def test_only_what_changed_is_stored_again() -> None:
    cursor = Cursor(5)
    for offset in range(6, 4 * BLOCK, 2):
        cursor.acknowledge(offset, offset + 1)
    assert changed_blocks(cursor) == [0, 1, 2, 3]
    cursor.acknowledge(2 * BLOCK, 2 * BLOCK + 1)
    assert changed_blocks(cursor) == [], "it was acknowledged before"
    cursor.acknowledge(2 * BLOCK + 1, 2 * BLOCK + 2)
    assert changed_blocks(cursor) == [2]
    cursor.acknowledge(5, 6)
    assert cursor.position == 7
    assert changed_blocks(cursor) == [0]
    cursor.acknowledge_below(3 * BLOCK)
    assert cursor.position == 3 * BLOCK + 1
    assert changed_blocks(cursor) == [3], "the others are passed"


def test_memory_follows_the_offsets_and_not_the_holes() -> None:
    tracemalloc.start()
    cursor = Cursor(0)
    for offset in range(1, 100_000, 2):
        cursor.acknowledge(offset, offset + 1)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(list(cursor.ranges)) == 50_000
    assert size < 2 * 100_000


def test_a_hole_closes_at_once_however_much_is_acknowledged_above_it() -> None:
    blocks = 100_000
    cursor = Cursor(0)
    cursor.acknowledge(1, blocks * BLOCK)
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        cursor.acknowledge(0, 1)
    finally:
        sys.setprofile(None)
    assert calls < 100
    assert (cursor.position, cursor.acknowledged_above) == (blocks * BLOCK, 0)
    assert cursor.take_changes() == (blocks, []), "no change for each that was passed"


def test_a_reset_forgets_what_a_failed_write_left_stored() -> None:
    cursor = Cursor(0)
    cursor.acknowledge(2 * BLOCK, 3 * BLOCK)
    blocks = stored(cursor, {})
    cursor.acknowledge_below(5 * BLOCK)
    cursor.give_back(cursor.take_changes())
    cursor.reset(0)
    cursor.give_back(cursor.take_changes())
    assert stored(cursor, blocks) == {}


@settings(max_examples=200)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 30)), max_size=60))
def test_runs_are_a_set_of_numbers(steps: list[tuple[bool, int, int]]) -> None:
    found, model = Runs(), set()
    for removes, start, end in steps:
        if removes:
            assert found.remove(start, end) == len(model & set(range(start, end)))
            model -= set(range(start, end))
        elif start not in model:
            found.add(start)
            model.add(start)
        assert {number for run in found for number in range(*run)} == model
        assert all(before[1] < after[0] for before, after in pairwise(found))
        inside = {number for run in found.between(start, end) for number in range(*run)}
        assert inside == model & set(range(start, end))
        assert (start in found) == (start in model)
        assert found.end_of(start) == next(n for n in count(start) if n not in model)
    found.clear()
    assert not found


def test_a_leap_over_much_costs_what_is_held() -> None:
    cursor = Cursor(0)
    cursor.acknowledge(10, 12)
    cursor.acknowledge_below(10**15)  # Block by block it would take days.
    assert (cursor.position, cursor.acknowledged_above) == (10**15, 0)


@given(st.integers(0, 1 << 70))
def test_runs_of_bits_are_those_bits(bits: int) -> None:
    assert sum(span(start, end) for start, end in runs(bits)) == bits
    edges = [edge for run in runs(bits) for edge in run]
    assert edges == sorted(set(edges))
    assert leading_run(bits) == (next(runs(bits))[1] if bits & 1 else 0)


@pytest.mark.parametrize(("start", "end"), [(4, 4), (5, 4), (0, 3)])
def test_an_empty_or_old_range_changes_nothing(start: int, end: int) -> None:
    cursor = Cursor(3)
    cursor.acknowledge(start, end)
    assert cursor.position == 3
    assert list(cursor.ranges) == []
