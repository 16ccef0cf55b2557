"""When a segment has to end for its age, whatever its size."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING, Final

from penstock import wall_clock
from penstock.limits import AGED_SEGMENT_BYTES, SEGMENT_MS_LEAST
from penstock.log.config import NEVER_MS
from penstock.log.header import HEADER_SIZE, read_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.log.config import LogConfig
    from penstock.log.files import FileSystem
    from penstock.log.segment import Segment

NO_TIME: Final = -1
"""Of a batch without a timestamp."""


class SegmentAge:
    """How old the segment is that takes the next batch, in ms.

    As in Kafka, it is as old as its messages say: from the highest timestamp of its first batch to
    that of the next one. A client could have a segment begin for each batch by that, so a small one
    only ends by the broker's clock.
    """

    def __init__(
        self,
        config: LogConfig,
        first_ms: int | None = None,
        now_ms: Callable[[], int] = wall_clock.now_ms,
    ) -> None:
        self._now_ms = now_ms
        self._first_ms: int | None = None
        """The time of the first batch; None where that is not known, or there is none."""
        self._began_ms = 0
        """When that was stored, by the broker's clock."""
        self.reconfigure(config)
        self.begin(first_ms)
        if first_ms is not None and first_ms > NO_TIME:
            # Of a segment that was there before: its messages know best.
            self._began_ms = min(self._began_ms, first_ms)

    def reconfigure(self, config: LogConfig) -> None:
        """From now on this holds, for the segment that has begun too."""
        self._config = config
        self._most_ms = self._drawn()
        self.is_limited = self._most_ms != NEVER_MS

    def begin(self, first_ms: int | None) -> None:
        """A segment begins with a batch of this time, or with one that is not known yet."""
        self._most_ms = self._drawn()
        if first_ms is None or not self.is_limited:
            self._first_ms = None
            return
        self._began_ms = self._now_ms()
        self._first_ms = first_ms if first_ms > NO_TIME else self._began_ms

    def is_over(self, time_ms: int, position: int) -> bool:
        """Whether a batch of this time can't go into the segment, of which `position` bytes are
        there. Asked only where segments are limited.
        """
        if self._first_ms is None:
            self.begin(time_ms)
            return False
        now = self._now_ms()
        if now - self._began_ms > self._most_ms:
            return True
        later = (time_ms if time_ms > NO_TIME else now) - self._first_ms
        return later > self._most_ms and position >= AGED_SEGMENT_BYTES

    def _drawn(self) -> int:
        most_ms = self._config.segment_ms
        if most_ms == NEVER_MS:
            return most_ms
        jitter_ms = min(self._config.segment_jitter_ms, most_ms)
        return max(most_ms - random.randint(0, jitter_ms), SEGMENT_MS_LEAST)  # noqa: S311


def first_time(files: FileSystem, segment: Segment) -> int | None:
    """Return the time of a segment's first batch; None where there is none. Raises OSError."""
    with closing(files.open(segment.path)) as file:
        data = file.pread(HEADER_SIZE, 0)
    return read_header(data).max_timestamp if len(data) == HEADER_SIZE else None
