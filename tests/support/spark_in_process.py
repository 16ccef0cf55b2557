"""What numbered pieces of work need of a Spark session, in the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

MapInArrow = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class InProcess:
    """A session, a frame of numbers, and what was made of it."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._made: list[tuple[Any, ...]] = []

    def range(self, start: int, end: int, _step: int, _tasks: int) -> InProcess:
        self._numbers = list(range(start, end))
        return self

    def mapInArrow(self, function: MapInArrow, _schema: str) -> InProcess:  # noqa: N802
        batches = (pa.RecordBatch.from_pydict({"id": [each]}) for each in self._numbers)
        self._made = [tuple(row.values()) for rows in function(batches) for row in rows.to_pylist()]
        return self

    def collect(self) -> list[tuple[Any, ...]]:
        return self._made
