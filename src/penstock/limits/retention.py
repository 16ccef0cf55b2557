"""Limits on what segments cost that begin and go by their age; see the package."""

from __future__ import annotations

from typing import Final

from penstock.limits.limit import KIB, Limit

AGED_SEGMENT_BYTES: Final = Limit(
    64 * KIB,
    "bytes of a segment that ends because its messages' own times span segment_ms",
    protects="files and memory from producers that give each message a much later time",
    when_hit="the segment goes on until it is as old by the broker's clock, or has so many bytes",
)

SEGMENT_MS_LEAST: Final = Limit(
    1_000,
    "ms from a segment's beginning to its end by its age, whatever segment_ms says",
    protects="files and memory from a topic that is told to begin a segment each millisecond",
    when_hit="the segment goes on until it is that old",
)

SEGMENTS_TRIMMED_TOGETHER: Final = Limit(
    100,
    "segments that retention removes in one step",
    protects="flushes of other logs from a log of which very much is due at once",
    when_hit="the next segments are removed when these are gone",
)
