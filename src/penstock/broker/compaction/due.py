"""Whether a log is to be compacted, and how far."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.limits import COMPACTED_VIEW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.broker.compaction.policy import CompactionPolicy
    from penstock.log.interface import StoredSegment


_MOST_OFFSETS: Final = (1 << 31) - 1
"""Of one segment, in which offsets are relative and have 31 bits, as Kafka's have."""


class Known(NamedTuple):
    """How far a log was compacted, and how far somebody asked for it."""

    cleaned_to: int
    asked_to: int


class Due(NamedTuple):
    """Full segments from the start of a log: those from `dirty_from` on have keys to look at."""

    segments: Sequence[StoredSegment]
    dirty_from: int

    @property
    def end(self) -> int:
        return self.segments[-1].end_offset

    @property
    def dirty_bytes(self) -> int:
        return sum(each.size_bytes for each in self.segments if each.end_offset > self.dirty_from)

    def runs(self, segment_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield the offsets of segments that become one: as many as fit into one (as Kafka)."""
        start, size = self.segments[0].base_offset, 0
        end = start
        for segment in self.segments:
            is_full = size + segment.size_bytes > segment_bytes
            if size and (is_full or segment.end_offset - start > _MOST_OFFSETS):
                yield start, end
                start, size = segment.base_offset, 0
            size += segment.size_bytes
            end = segment.end_offset
        yield start, end


def find_due(
    segments: Sequence[StoredSegment],
    known: Known,
    stable_end: int,
    policy: CompactionPolicy,
    now_ms: int,
    *,
    is_late: bool,
) -> Due | None:
    """Return what of a log is to be compacted now; whatever the ratio where it `is_late` already.

    The segment that takes the next batch never is, nor what lies above the last stable offset, nor
    what is younger than the least lag, unless it was asked for.
    """
    is_asked_for = known.cleaned_to < known.asked_to
    if not policy.is_on and not is_asked_for:
        return None
    youngest = now_ms - policy.min_lag_ms

    def may_be(segment: StoredSegment) -> bool:
        if segment.is_active or segment.end_offset > stable_end:
            return False
        if segment.end_offset <= max(known.cleaned_to, known.asked_to):
            return True
        return policy.is_on and (not policy.min_lag_ms or segment.latest_ms <= youngest)

    due = Due(list(takewhile(may_be, segments)), known.cleaned_to)
    if not due.segments or due.end <= known.cleaned_to:
        return None
    total = sum(each.size_bytes for each in due.segments)
    is_due = is_asked_for or is_late or due.dirty_bytes > policy.min_dirty_ratio * total
    return due if is_due else None


def find_unseen(
    segments: Sequence[StoredSegment],
    known: Known,
    seen_to: int,
    stable_end: int,
    policy: CompactionPolicy,
) -> Due | None:
    """Return what a compacted view is to be made of that ends at `seen_to` by now: all that was
    asked for. A log that is compacted by itself, for all readers, has no view of its own.
    """
    if policy.is_on or seen_to >= known.asked_to:
        return None
    end = min(known.asked_to, stable_end)
    end = min(end, segments[0].base_offset + 8 * COMPACTED_VIEW_BYTES) if segments else end

    def is_in_it(segment: StoredSegment) -> bool:
        return not segment.is_active and segment.end_offset <= end

    due = Due(list(takewhile(is_in_it, segments)), seen_to)
    return due if due.segments and due.end > seen_to else None
