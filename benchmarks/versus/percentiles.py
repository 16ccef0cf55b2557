"""Percentiles of measured times, by nearest rank: each is a time that really occurred."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

POINTS: Final = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "p99.99": 99.99}


def percentile(ordered: Sequence[int], point: float) -> int:
    """The value that `point` percent of the ordered values do not exceed."""
    if not ordered:
        raise ValueError("no values")
    # Without rounding, 99.9 % of 1000 would be 999.0000000000001 and so the thousandth.
    rank = math.ceil(round(point / 100 * len(ordered), 6))
    return ordered[max(rank, 1) - 1]


def summary_ms(latencies_ns: Sequence[int]) -> dict[str, float | None]:
    """Percentiles in milliseconds. None where too few were measured to tell."""
    ordered = sorted(latencies_ns)
    points: dict[str, float | None] = {}
    for name, point in POINTS.items():
        enough = len(ordered) * (100 - point) >= 99.999999
        points[name] = percentile(ordered, point) / 1e6 if enough else None
    points["max"] = ordered[-1] / 1e6 if ordered else None
    return points
