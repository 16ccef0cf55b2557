"""The bytes of an answer's parts, wherever they are."""

from __future__ import annotations

import os

from penstock.session import Buffers, FileRange


def content(parts: Buffers) -> bytes:
    """Return what the client gets."""
    return b"".join(
        os.pread(part.descriptor, len(part), part.position) if isinstance(part, FileRange) else part
        for part in parts
    )


def count_of_ranges(parts: Buffers) -> int:
    """Return how many parts go from a file to the client."""
    return sum(isinstance(part, FileRange) for part in parts)
