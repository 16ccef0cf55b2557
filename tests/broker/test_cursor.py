"""A cursor against a model that keeps every acknowledged offset in a set."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.cursor import Cursor

OFFSETS = st.integers(0, 60)
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
@given(ACKS, OFFSETS, st.integers(1, 20))
def test_tells_what_is_open_in_a_batch(
    acks: list[tuple[bool, int, int]], start: int, size: int
) -> None:
    cursor, model = played(acks)
    mask = cursor.open_mask(start, start + size)
    for index in range(size):
        assert bool(mask >> index & 1) == (start + index not in model)
    assert mask >> size == 0
    untouched = model.isdisjoint(range(start, start + size))
    assert cursor.is_untouched(start, start + size) == untouched


@settings(max_examples=200)
@given(ACKS, OFFSETS)
def test_survives_packing_and_the_loss_of_a_tail(
    acks: list[tuple[bool, int, int]], end: int
) -> None:
    cursor, model = played(acks)
    restored = Cursor(cursor.position)
    restored.unpack_ranges(cursor.pack_ranges())
    assert acknowledged(restored) == model
    assert restored.cut_off(end) == any(offset >= end for offset in model)
    assert acknowledged(restored) == {offset for offset in model if offset < end}


def test_reset_forgets_what_was_acknowledged_above() -> None:
    cursor = Cursor(5)
    cursor.acknowledge(10, 12)
    cursor.reset(3)
    assert cursor.position == 3
    assert list(cursor.ranges) == []


def test_packed_ranges_have_a_fixed_form() -> None:
    cursor = Cursor(0)
    cursor.acknowledge(2, 3)
    assert cursor.pack_ranges().hex() == "02000000000000000300000000000000"


@pytest.mark.parametrize(("start", "end"), [(4, 4), (5, 4), (0, 3)])
def test_an_empty_or_old_range_changes_nothing(start: int, end: int) -> None:
    cursor = Cursor(3)
    cursor.acknowledge(start, end)
    assert cursor.position == 3
    assert list(cursor.ranges) == []
