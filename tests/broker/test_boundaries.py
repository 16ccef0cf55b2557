"""Where batches begin, against a model that keeps each of them."""

from __future__ import annotations

import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.broker.subscriptions.bitmaps import BLOCK
from penstock.broker.subscriptions.boundaries import Boundaries

SIZES = st.integers(1, 5) | st.sampled_from([BLOCK - 1, BLOCK, 3 * BLOCK])
GAPS = st.sampled_from([0, 0, 0, 1, 2 * BLOCK])


@settings(max_examples=200)
@given(st.integers(0, 2 * BLOCK), st.lists(st.tuples(SIZES, GAPS), max_size=30), st.data())
def test_each_batch_is_found_by_its_first_offset(
    first: int, batches: list[tuple[int, int]], data: st.DataObject
) -> None:
    boundaries, starts, end = Boundaries(), [], first
    for size, gap in batches:
        starts.append(end + gap)
        end = starts[-1] + size
        boundaries.add(starts[-1], end)
    # A gap is part of the batch before it: nothing is there to be acknowledged.
    ends = [*starts[1:], end]
    for start, follower in zip(starts, ends, strict=False):
        assert boundaries.get(start) == (start, follower)
    for offset in data.draw(st.lists(st.integers(0, end + 2), max_size=10)):
        assert (boundaries.get(offset) is None) == (offset not in starts)
    dropped = data.draw(st.integers(0, end + 2))
    boundaries.drop_below(dropped)
    for start, follower in zip(starts, ends, strict=False):
        if start >= dropped:
            assert boundaries.get(start) == (start, follower)
    boundaries.clear()
    assert all(boundaries.get(start) is None for start in starts)


def test_a_batch_takes_a_bit() -> None:
    tracemalloc.start()
    boundaries = Boundaries()
    for start in range(100_000):
        boundaries.add(start, start + 1)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 100_000
    boundaries.drop_below(100_000)
    assert boundaries.get(99_000) is None
