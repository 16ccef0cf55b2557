"""When a stream's batch is worth to begin: `minOffsetsPerTrigger` and `maxTriggerDelay`."""

from __future__ import annotations

import time
from collections.abc import Callable


class Admission:
    """Holds batches back that are too small, but none for longer than a while.

    As in Spark's Kafka source the first one begins at once.
    """

    def __init__(
        self, min_rows: int | None, delay_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._min_rows = min_rows
        self._delay_s = delay_s
        self._clock = clock
        self._begun_at = float("-inf")

    def admits(self, rows: int) -> bool:
        """Whether a batch of what waits may begin now, with `rows` waiting."""
        now = self._clock()
        is_due = now - self._begun_at >= self._delay_s
        if self._min_rows is not None and rows < self._min_rows and not is_due:
            return False
        self._begun_at = now
        return True
