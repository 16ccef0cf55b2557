"""The one rule of what a log may give up: the strictest limit that applies, from the oldest on.

A segment goes as a whole, and none before an older one. By its age it goes when its latest message
is older than the topic allows, by its partition's size when so much is left without it, as Kafka
has both. By the size of the whole topic, as Iggy has it, the segments go that are full and have the
oldest messages. What somebody still needs is kept, whatever the limits say.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.retention.policy import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from penstock.broker.retention.policy import RetentionPolicy
    from penstock.log.interface import StoredSegment


class Surplus(NamedTuple):
    """What a log may give up: all below `end_offset`."""

    end_offset: int
    segments: int
    size_bytes: int
    reasons: Mapping[str, int]
    """How many of the segments go by which setting."""


def is_due(
    segment: StoredSegment, log_bytes: int, policy: RetentionPolicy, now_ms: int
) -> str | None:
    """Return the setting by which the oldest segment of a log of so many bytes goes, if it goes."""
    if policy.age_ms != NO_LIMIT and now_ms - segment.latest_ms > policy.age_ms:
        return "retention_ms"
    if NO_LIMIT != policy.partition_bytes <= log_bytes - segment.size_bytes:
        return "retention_bytes"
    return None


async def surplus(
    segments: AsyncGenerator[StoredSegment, None],
    log_bytes: int,
    policy: RetentionPolicy,
    now_ms: int,
    below: int,
    most: int,
) -> Surplus | None:
    """Return what goes of a log, at most so many segments and nothing from `below` on; None where
    nothing does.

    No segment is looked at behind the first one that stays. Raises LogError.
    """
    count = size = 0
    end_offset = -1
    reasons: Counter[str] = Counter()
    async with aclosing(segments):
        async for segment in segments:
            reason = is_due(segment, log_bytes - size, policy, now_ms)
            if count == most or segment.end_offset > below or reason is None:
                break
            end_offset = segment.end_offset
            count += 1
            size += segment.size_bytes
            reasons[reason] += 1
    return Surplus(end_offset, count, size, reasons) if count else None


async def surplus_of_topic(
    partitions: Sequence[AsyncGenerator[StoredSegment, None]],
    excess: int,
    below: Sequence[int],
    most: int,
) -> list[Surplus | None]:
    """Return what goes of each log of a topic that has so many bytes too much: full segments, those
    with the oldest messages first, at most so many in all and nothing from `below` on.

    Raises LogError.
    """
    found: list[Surplus | None] = [None] * len(partitions)
    try:
        heads: list[tuple[int, int, StoredSegment]] = []
        for number, segments in enumerate(partitions):
            await _push_next(heads, number, segments, below[number])
        while heads and excess > 0 and most > 0:
            _, number, segment = heapq.heappop(heads)
            found[number] = _with(found[number], segment)
            excess -= segment.size_bytes
            most -= 1
            await _push_next(heads, number, partitions[number], below[number])
    finally:
        for segments in partitions:
            await segments.aclose()
    return found


async def _push_next(
    heads: list[tuple[int, int, StoredSegment]],
    number: int,
    segments: AsyncGenerator[StoredSegment, None],
    below: int,
) -> None:
    segment = await anext(segments, None)
    if segment is not None and not segment.is_active and segment.end_offset <= below:
        heapq.heappush(heads, (segment.latest_ms, number, segment))


def _with(found: Surplus | None, segment: StoredSegment) -> Surplus:
    count, size = (found.segments, found.size_bytes) if found else (0, 0)
    reasons = {"retention_topic_bytes": count + 1}
    return Surplus(segment.end_offset, count + 1, size + segment.size_bytes, reasons)
