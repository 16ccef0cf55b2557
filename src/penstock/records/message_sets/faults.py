"""What can be wrong with a message set that a client sends."""

from __future__ import annotations

from enum import IntEnum


class Fault(IntEnum):
    """Each is another error in Kafka's protocol."""

    CORRUPT = 1
    """Its end is missing, or a checksum does not fit."""
    INVALID = 2
    """It is whole, and its fields contradict each other or are not allowed there."""
    COMPRESSION = 3
    """Compressed in a way that message sets don't know."""
    TIMESTAMP = 4
    TOO_LARGE = 5
    """More than may be in memory at once."""


class MessageSetError(ValueError):
    """A message set that is refused."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault
