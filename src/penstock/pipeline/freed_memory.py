"""What Spark's Python processes do with memory that was freed: it is kept for the next batch."""

from __future__ import annotations

from functools import cache
from typing import Final

from penstock.unfilled import unfilled

_LARGEST_BYTES: Final = (32 << 20) - 8192
"""Of what tells glibc something when it is freed: with what it adds, it is below 32 MiB."""


@cache
def keep_freed_memory() -> None:
    """Have this process keep up to 64 MiB that it frees, once and for all.

    A run of batches takes a dozen megabytes and frees them all. What lies free at the end of the
    heap glibc gives back from a few megabytes on, twice the largest piece that was a mapping when
    it was freed, and each page that is taken again is found, cleared and mapped anew: 20,000 for
    two million rows of Avro, a fifteenth of what they cost Python. So the largest such piece is
    freed here. No page of it is touched, and where the C library is another one nothing happens.
    """
    unfilled(_LARGEST_BYTES)
