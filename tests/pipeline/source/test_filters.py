"""What conditions leave to be read, without a Spark and without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from penstock.pipeline.source.filters import narrowed
from penstock.pipeline.source.offsets import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
START, END = {A0: 0, A1: 20, B0: 0}, {A0: 100, A1: 50, B0: 10}


class Clock:
    """Knows where the messages of one time begin; B0 has none so late."""

    asked: Mapping[TopicPartition, int] = {}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        self.asked = times
        return {source: {A0: 70, A1: 5}.get(source) for source in times}


def left(*filters: Filter) -> dict[TopicPartition, tuple[int, int]]:
    start, end = narrowed(START, END, filters, Clock())
    return {source: (start[source], end[source]) for source in end if start[source] < end[source]}


OFFSET, PARTITION, TOPIC = ("offset",), ("Partition",), ("topic",)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], {A0: (0, 100), A1: (20, 50), B0: (0, 10)}),
        ([EqualTo(TOPIC, "a")], {A0: (0, 100), A1: (20, 50)}),
        ([In(TOPIC, ("b", "c"))], {B0: (0, 10)}),
        ([EqualTo(TOPIC, "a"), GreaterThan(PARTITION, 0)], {A1: (20, 50)}),
        ([LessThan(PARTITION, 0)], {}),
        ([GreaterThan(OFFSET, 30)], {A0: (31, 100), A1: (31, 50)}),
        ([GreaterThanOrEqual(OFFSET, 30), LessThan(OFFSET, 40)], {A0: (30, 40), A1: (30, 40)}),
        ([LessThanOrEqual(OFFSET, 5)], {A0: (0, 6), B0: (0, 6)}),
        ([EqualTo(OFFSET, 7)], {A0: (7, 8), B0: (7, 8)}),
        ([EqualNullSafe(OFFSET, 99)], {A0: (99, 100)}),
        ([In(OFFSET, (3, 5)), In(PARTITION, (0,))], {A0: (3, 6), B0: (3, 6)}),
        ([LessThan(OFFSET, -5)], {}),
        ([IsNotNull(OFFSET), Not(EqualTo(OFFSET, 7)), EqualTo(("key",), b"k")], {**left()}),
        ([In(OFFSET, ()), EqualTo(OFFSET, None), In(OFFSET, (1, None))], {**left()}),
    ],
)
def test_conditions_narrow_what_is_read(
    filters: list[Filter], expected: dict[TopicPartition, tuple[int, int]]
) -> None:
    assert left(*filters) == expected


def test_a_time_leaves_out_what_comes_before_it() -> None:
    clock = Clock()
    time = datetime(2017, 7, 14, 2, 40, 0, 1999, tzinfo=UTC)
    start, end = narrowed(START, END, [GreaterThan(("timestamp",), time)], clock)
    assert set(clock.asked.values()) == {1_500_000_000_001}
    assert (start, end) == ({A0: 70, A1: 20, B0: 10}, END)
    assert left(LessThan(("timestamp",), time)) == left()
