"""Times between milliseconds, which Kafka and Pulsar count in, and the records' microseconds."""

from __future__ import annotations

from typing import Final

from penstock.records.kernels.arguments import int64
from penstock.records.kernels.declaring import helper

LATEST_MILLISECOND: Final = ((1 << 63) - (1 << 34)) // 1000
"""It leaves room for what Iggy adds to a batch's earliest time."""


@helper
def microseconds(milliseconds: int) -> int:
    """Return a time in microseconds; -1, which stands for none, stays."""
    if milliseconds == -1:
        return int64(-1)
    return max(min(milliseconds, LATEST_MILLISECOND), -LATEST_MILLISECOND) * 1000


@helper
def milliseconds(microseconds: int) -> int:
    """Return a time in whole milliseconds; -1 stays."""
    return microseconds // 1000
