"""What a query's conditions say of where its rows can be: topics, partitions, offsets and times.

They only narrow what is read. Spark applies each condition to the rows all the same, so one that is
not understood, or understood in part, costs reading and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.pipeline.source.offsets import Offsets, TopicPartition

_Keeps: TypeAlias = Callable[[Any], bool]

_TESTS: Final[dict[type[Filter], Callable[[Any], _Keeps]]] = {
    EqualTo: lambda value: lambda found: found == value,
    EqualNullSafe: lambda value: lambda found: found == value,
    In: lambda values: lambda found: found in values,
    GreaterThan: lambda value: lambda found: found > value,
    GreaterThanOrEqual: lambda value: lambda found: found >= value,
    LessThan: lambda value: lambda found: found < value,
    LessThanOrEqual: lambda value: lambda found: found <= value,
}
_LOWEST: Final[dict[type[Filter], Callable[[Any], int]]] = {
    EqualTo: lambda value: value,
    EqualNullSafe: lambda value: value,
    In: min,
    GreaterThan: lambda value: value + 1,
    GreaterThanOrEqual: lambda value: value,
}
_ENDS: Final[dict[type[Filter], Callable[[Any], int]]] = {
    EqualTo: lambda value: value + 1,
    EqualNullSafe: lambda value: value + 1,
    In: lambda values: max(values) + 1,
    LessThan: lambda value: value,
    LessThanOrEqual: lambda value: value + 1,
}


class Clock(Protocol):
    """What finds offsets by time."""

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the offset of the first message of a time in ms or later, None for none."""


@dataclass
class _Bounds:
    topics: list[_Keeps]
    partitions: list[_Keeps]
    first: int = 0
    end: int = 1 << 62
    earliest_ms: int | None = None


def narrowed(
    start: Offsets, end: Offsets, filters: Iterable[Filter], clock: Clock
) -> tuple[Offsets, Offsets]:
    """Return what is left of a read from `start` to `end` under all of these conditions.

    A time can only cut what comes before the first message that is as late: those behind it need
    not be in order.
    """
    bounds = _bounds(filters)
    kept = [source for source in end if _keeps(bounds, source)]
    first = {source: max(start[source], bounds.first) for source in kept}
    if bounds.earliest_ms is not None:
        found = clock.at_times(dict.fromkeys(kept, bounds.earliest_ms))
        for source, offset in found.items():
            first[source] = max(first[source], end[source] if offset is None else offset)
    last = {source: min(end[source], bounds.end) for source in kept}
    return {source: min(first[source], last[source]) for source in kept}, last


def _keeps(bounds: _Bounds, source: TopicPartition) -> bool:
    by_topic = all(keeps(source.topic) for keeps in bounds.topics)
    return by_topic and all(keeps(source.partition) for keeps in bounds.partitions)


def _bounds(filters: Iterable[Filter]) -> _Bounds:
    bounds = _Bounds([], [])
    for each in filters:
        kind: type[Filter] = type(each)
        value = getattr(each, "value", None)
        column = ".".join(getattr(each, "attribute", ())).lower()
        if kind not in _TESTS or value is None or (kind is In and (None in value or not value)):
            continue
        if column == "topic":
            bounds.topics.append(_TESTS[kind](value))
        elif column == "partition":
            bounds.partitions.append(_TESTS[kind](value))
        elif column == "offset":
            _limit_offsets(bounds, kind, value)
        elif column == "timestamp" and kind in _LOWEST:
            earliest = min(map(_milliseconds, value if kind is In else [value]))
            bounds.earliest_ms = max(earliest, bounds.earliest_ms or 0)
    return bounds


def _limit_offsets(bounds: _Bounds, kind: type[Filter], value: Any) -> None:
    if kind in _LOWEST:
        bounds.first = max(bounds.first, _LOWEST[kind](value))
    if kind in _ENDS:
        bounds.end = max(0, min(bounds.end, _ENDS[kind](value)))


def _milliseconds(time: datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return max(0, int(aware.timestamp() * 1000))
