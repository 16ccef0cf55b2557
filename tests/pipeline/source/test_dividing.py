"""How what is to be read becomes tasks: by bytes, for all cores, or as many as asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.source.dividing import (
    SMALLEST_TASK,
    TASK_BYTES,
    Extent,
    bytes_in,
    divide,
    gather,
)
from penstock.pipeline.source.offsets import OffsetRange, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
spans = st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)), max_size=8)


def ranges_of(spans: list[tuple[int, int]]) -> list[OffsetRange]:
    return [
        OffsetRange(TopicPartition("a", index), start, start + rows)
        for index, (start, rows) in enumerate(spans)
    ]


@given(
    spans,
    st.integers(1, 64),
    st.none() | st.integers(1, 300),
    st.none() | st.integers(5_000, 10**6),
    st.integers(0, 1 << 40),
)
def test_pieces_cover_each_range_once(
    spans: list[tuple[int, int]],
    cores: int,
    min_tasks: int | None,
    max_rows: int | None,
    size: int,
) -> None:
    ranges = ranges_of(spans)
    extents = {each.source: [Extent(0, 1 << 40, size)] for each in ranges}
    pieces = divide(ranges, extents, cores=cores, min_tasks=min_tasks, max_rows=max_rows)
    assert all(0 < piece.rows <= (max_rows or piece.rows) for piece in pieces)
    for whole in ranges:
        mine = [piece for piece in pieces if piece.source == whole.source]
        edges = [whole.start, *(piece.end for piece in mine)]
        assert [piece.start for piece in mine] == edges[:-1]
        assert edges[-1] == (whole.end if whole.rows else whole.start)


@given(spans, st.integers(1, 300))
def test_so_many_tasks_as_asked_for_exactly(spans: list[tuple[int, int]], tasks: int) -> None:
    ranges = ranges_of(spans)
    full = sum(1 for each in ranges if each.rows)
    rows = sum(each.rows for each in ranges)
    expected = min(max(tasks, full), rows)
    assert len(divide(ranges, {}, cores=2, min_tasks=tasks)) == expected


def test_tasks_are_of_about_64_megabytes_however_few_the_cores() -> None:
    ranges = [OffsetRange(A0, 0, 900_000), OffsetRange(A1, 0, 100_000)]
    extents = {A0: [Extent(0, 900_000, 9 * TASK_BYTES)], A1: [Extent(0, 100_000, TASK_BYTES)]}
    pieces = divide(ranges, extents, cores=2)
    assert [piece.source for piece in pieces] == [A0] * 9 + [A1]


@pytest.mark.parametrize(
    ("tasks_of_64_mb", "cores", "tasks"), [(16, 2, 16), (17, 2, 16), (40, 2, 20), (40, 8, 40)]
)
def test_where_each_core_has_many_tasks_they_are_larger(
    tasks_of_64_mb: int, cores: int, tasks: int
) -> None:
    extents = {A0: [Extent(0, 4_000_000, tasks_of_64_mb * TASK_BYTES)]}
    pieces = divide([OffsetRange(A0, 0, 4_000_000)], extents, cores=cores)
    assert len(pieces) == tasks


def test_one_large_partition_keeps_all_cores_busy() -> None:
    pieces = divide([OffsetRange(A0, 0, 1_000_000)], {}, cores=8)
    assert [piece.rows for piece in pieces] == [125_000] * 8


def test_little_is_not_cut() -> None:
    assert len(divide([OffsetRange(A0, 0, SMALLEST_TASK)], {}, cores=64)) == 1


def test_no_task_has_more_rows_than_it_may() -> None:
    pieces = divide([OffsetRange(A0, 0, 10), OffsetRange(A1, 0, 3)], {}, cores=1, max_rows=4)
    assert [piece.rows for piece in pieces] == [3, 3, 4, 3]
    pieces = divide([OffsetRange(A0, 0, 10)], {}, cores=1, max_rows=5, min_tasks=3)
    assert len(pieces) == 3


@given(
    spans,
    st.integers(1, 64),
    st.none() | st.integers(1, 10**6),
    st.integers(0, 1 << 40),
)
def test_each_range_is_of_one_task_however_they_are_gathered(
    spans: list[tuple[int, int]], cores: int, max_rows: int | None, size: int
) -> None:
    ranges = [each for each in ranges_of(spans) if each.rows]
    extents = {each.source: [Extent(0, 1 << 40, size)] for each in ranges}
    tasks = gather(ranges, extents, cores=cores, max_rows=max_rows)
    assert [each for task in tasks for each in task] == ranges
    for task in tasks:
        stored = sum(bytes_in(each, extents[each.source]) for each in task)
        rows = sum(each.rows for each in task)
        assert len(task) == 1 or (stored <= TASK_BYTES and rows <= (max_rows or rows))


def small(ranges: int, rows: int = 20) -> list[OffsetRange]:
    return ranges_of([(0, rows)] * ranges)


@pytest.mark.parametrize("row_bytes", [0, 100])
def test_thousands_of_small_partitions_are_some_tasks(row_bytes: int) -> None:
    ranges = small(5_000)
    extents = {each.source: [Extent(0, 20, 20 * row_bytes)] for each in ranges}
    tasks = gather(ranges, extents, cores=2)
    assert 10 < len(tasks) < 50
    assert max(map(len, tasks)) < 2 * min(map(len, tasks[:-1]))


def test_no_core_is_without_a_task_for_small_ones_are_gathered() -> None:
    assert [len(task) for task in gather(small(6), {}, cores=3)] == [2, 2, 2]
    assert [len(task) for task in gather(small(8), {}, cores=5)] == [1] * 8
    assert [len(task) for task in gather(small(2), {}, cores=8)] == [1, 1]


def test_what_is_gathered_has_no_more_rows_than_a_task_may() -> None:
    tasks = gather(small(5, rows=4), {}, cores=1, max_rows=9)
    assert [len(task) for task in tasks] == [2, 2, 1]


def test_large_ranges_stay_alone() -> None:
    ranges = ranges_of([(0, 1000)] * 4)
    extents = {each.source: [Extent(0, 1000, TASK_BYTES * 2 // 3)] for each in ranges}
    assert gather(ranges, extents, cores=1) == [[each] for each in ranges]


@pytest.mark.parametrize(
    ("start", "end", "size"), [(0, 100, 1000), (50, 150, 700), (150, 200, 100), (300, 400, 0)]
)
def test_bytes_are_those_of_the_segments_that_a_range_meets(
    start: int, end: int, size: int
) -> None:
    extents = [Extent(0, 100, 1000), Extent(100, 200, 200)]
    found = bytes_in(OffsetRange(A0, start, end), extents)
    assert found == pytest.approx(size, abs=100)
