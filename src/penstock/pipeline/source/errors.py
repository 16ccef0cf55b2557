"""What can go wrong with a read, as Spark shows it."""

from __future__ import annotations


class SourceError(Exception):
    """What was asked for can't be read; the message says what to do."""


class DataLossError(SourceError):
    """Offsets that were asked for are gone, and failOnDataLoss is on."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Begin again with another checkpoint or other startingOffsets, or set "
            "failOnDataLoss to false to read on without what is missing"
        )
