"""How much of a partition a reader sees."""

from __future__ import annotations

from enum import Enum, auto


class Isolation(Enum):
    """What becomes of transactions before a reader (KIP-98)."""

    READ_UNCOMMITTED = auto()
    """All that is safe is seen."""
    READ_COMMITTED = auto()
    """What is safe up to the first message of a transaction that is open."""
