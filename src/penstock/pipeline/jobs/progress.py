"""How far a run is, at which pace, and how long it has to go."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.pipeline.source.offsets import from_json

PACE_SECONDS: Final = 20.0
"""Over which the pace is taken: a batch or two of a busy job."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    batches: int
    rows: int
    """Rows that are part of the table by this run."""
    behind: int | None
    """Rows that wait, as far as Spark has said so."""
    seconds: float
    rows_per_second: float = 0.0
    """Of the newest PACE_SECONDS, or of what has gone by since the first batch began."""
    unmet: dict[str, int] = field(default_factory=dict)
    """How many rows did not meet each expectation."""
    late: int = 0
    """Rows that came too late to be looked at for doubles, and were dropped."""

    @property
    def seconds_to_go(self) -> float | None:
        """Return when nothing waits, at this pace; None while either is not known."""
        if self.behind == 0:
            return 0.0
        return self.behind / self.rows_per_second if self.behind and self.rows_per_second else None


class Pace:
    """Rows a second, of the newest batches."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def add(self, now: float, rows: int) -> None:
        """Note how many rows there are in all; `now` is monotonic, in seconds."""
        self._counts.append((now, rows))
        while len(self._counts) > 2 and self._counts[1][0] <= now - PACE_SECONDS:
            self._counts.popleft()

    def at(self, now: float) -> float:
        if not self._counts:
            return 0.0
        began, before = self._counts[0]
        return (self._counts[-1][1] - before) / max(now - began, 0.001)


class LateRows:
    """Counts rows that Spark drops for their time; it says so once a batch is over."""

    def __init__(self) -> None:
        self.rows = 0
        self._batch = -1
        self._lock = threading.Lock()

    def see(self, progress: Any) -> None:
        """Count what Spark's newest progress says, which may have been seen before."""
        # What is reported between batches has the number of the next one.
        if progress is None or "addBatch" not in progress["durationMs"]:
            return
        with self._lock:
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                operators = progress["stateOperators"]
                self.rows += sum(each["numRowsDroppedByWatermark"] for each in operators)


def rows_behind(progress: Any) -> int | None:
    """Return how many rows wait by Spark's newest progress; None where it does not say."""
    if progress is None or not progress["sources"]:
        return None
    # What Spark does again after a crash is reported before the source was asked for its end.
    end, latest = (
        json.loads(progress["sources"][0][name] or "null") for name in ("endOffset", "latestOffset")
    )
    if end is None or latest is None:
        return None
    done = from_json(end)
    return sum(max(0, offset - done.get(key, 0)) for key, offset in from_json(latest).items())
