"""What can be chosen about a log, and the limits on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_SEGMENT_SPAN: Final = (1 << 31) - 1
"""Highest position and relative offset in a segment: the indexes hold 31 bits, as Kafka's do."""


NEVER_MS: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes are in bytes."""

    segment_bytes: int = 1 << 30
    """A segment takes no batch beyond this size, except that its first is always taken."""

    segment_ms: int = NEVER_MS
    """A segment takes no batch that is so much later than its first one."""

    segment_jitter_ms: int = 0
    """Each segment ends earlier by a random time, up to this."""

    file_delete_delay_ms: int = 0
    """How long the files of segments stay that were trimmed."""

    index_interval_bytes: int = 4096
    checkpoint_bytes: int = 64 << 20
    """So much is appended at most between two checkpoints: what recovery has to read again."""

    flush_interval_seconds: float = 0.010
    """How long a batch that nobody waits for is flushed after the last flush, at most."""

    def __post_init__(self) -> None:
        if not 0 < self.segment_bytes <= MAX_SEGMENT_SPAN:
            raise ValueError(f"segment_bytes {self.segment_bytes} is not in 1..{MAX_SEGMENT_SPAN}")
        if self.segment_ms <= 0 or min(self.segment_jitter_ms, self.file_delete_delay_ms) < 0:
            raise ValueError("segment_ms has to be positive, jitter and delay not negative")
        if self.index_interval_bytes <= 0 or self.checkpoint_bytes <= 0:
            raise ValueError("index_interval_bytes and checkpoint_bytes have to be positive")
