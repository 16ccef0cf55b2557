"""Percentiles are times that occurred, and none is told from too few of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from versus.percentiles import percentile, summary_ms

times = st.lists(st.integers(0, 10**9), min_size=1).map(sorted)


@pytest.mark.parametrize(
    ("point", "expected"), [(0, 1), (50, 50), (99, 99), (99.9, 100), (100, 100)]
)
def test_rank_among_a_hundred(point: float, expected: int) -> None:
    assert percentile(range(1, 101), point) == expected


def test_rank_is_not_pushed_up_by_rounding() -> None:
    assert percentile(range(1, 1001), 99.9) == 999


@given(times, st.floats(0, 100))
def test_so_many_values_are_not_above(ordered: list[int], point: float) -> None:
    found = percentile(ordered, point)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= point / 100 * len(ordered) - 1e-6


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_summary_is_in_milliseconds() -> None:
    summary = summary_ms([2_000_000] * 99 + [7_000_000])
    assert summary["p50"] == 2.0
    assert summary["p99"] == 2.0
    assert summary["max"] == 7.0


@pytest.mark.parametrize(("count", "known"), [(999, False), (1000, True)])
def test_a_point_needs_a_message_above_it(count: int, known: bool) -> None:
    assert (summary_ms([1] * count)["p99.9"] is not None) is known
