"""What of a segment is known to be sound: appended since the log was opened, or read and checked.

Such bytes may be handed out as a range of the file, which nobody reads. So of each run of batches
in one encoding a few batch boundaries are kept, at which a range may end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from penstock.log.scan import Place

_RUNS: Final = 32
"""Runs of one segment that are remembered: encodings that alternate would make one a batch."""

_MARKS: Final = 16_384
"""Boundaries of one run that are remembered; where there are more, every other one is dropped."""

BOUNDARY_SPACING_BYTES: Final = 32 << 10
"""How far apart the boundaries are that are remembered, as long as they are few."""


class Run:
    """Batches in one encoding that follow one another."""

    __slots__ = (
        "_offsets",
        "_positions",
        "_spacing",
        "end_offset",
        "end_position",
        "magic",
        "position",
    )

    def __init__(self, start: Place, magic: int) -> None:
        self.magic = magic
        self.position = self.end_position = start.position
        self.end_offset = start.offset
        self._positions = array("q", [start.position])
        self._offsets = array("q", [start.offset])
        self._spacing = BOUNDARY_SPACING_BYTES

    def extend(self, end_position: int, end_offset: int) -> None:
        self.end_position, self.end_offset = end_position, end_offset
        if end_position - self._positions[-1] >= self._spacing:
            self._positions.append(end_position)
            self._offsets.append(end_offset)
            if len(self._positions) > _MARKS:
                del self._positions[1::2]
                del self._offsets[1::2]
                self._spacing *= 2

    def end_of(self, position: int, end: int) -> tuple[int, int]:
        """Return position and offset of the last boundary up to `position` and the offset `end`."""
        if self.end_position <= position and self.end_offset <= end:
            return self.end_position, self.end_offset
        mark = min(bisect_right(self._positions, position), bisect_right(self._offsets, end)) - 1
        return (self._positions[mark], self._offsets[mark]) if mark >= 0 else (-1, -1)


class Verified:
    """The runs of one segment, in order; they don't overlap."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, start: Place, end_position: int, end_offset: int, magic: int) -> None:
        """Take note of sound batches, if not all of what is between two runs is known already."""
        runs = self._runs
        if runs and runs[-1].end_position == start.position and runs[-1].magic == magic:
            runs[-1].extend(end_position, end_offset)  # As nearly every append does.
            return
        number = len(runs)
        if runs and start.position < runs[-1].end_position:
            number = bisect_right(runs, start.position, key=lambda run: run.position)
        before = runs[number - 1] if number else None
        if number < len(runs) and end_position > runs[number].position:
            return
        if before is not None and start.position <= before.end_position and magic == before.magic:
            if end_position > before.end_position:
                before.extend(end_position, end_offset)
            return
        if before is not None and start.position < before.end_position:
            return
        run = Run(start, magic)
        run.extend(end_position, end_offset)
        runs.insert(number, run)
        if len(runs) > _RUNS:
            del runs[0]

    def range_from(self, start: Place, max_bytes: int, end: int, magic: int) -> Place | None:
        """Return where a range ends that begins at the batch boundary `start`, fits in `max_bytes`
        and lies below the offset `end`. None where nothing is known to be sound there.
        """
        runs = self._runs
        number = bisect_right(runs, start.position, key=lambda run: run.position) - 1
        if number < 0 or runs[number].magic != magic:
            return None
        position, offset = runs[number].end_of(start.position + max_bytes, end)
        return start._replace(position=position, offset=offset) if offset > start.offset else None
