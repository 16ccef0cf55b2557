"""What a topic's settings say of compaction."""

from __future__ import annotations

from typing import NamedTuple


class CompactionPolicy(NamedTuple):
    """Times are in milliseconds."""

    is_on: bool
    """Whether the last message of each key is to be kept: cleanup_policy has 'compact'."""
    min_lag_ms: int
    """What is younger is not compacted."""
    max_lag_ms: int
    """What is older is compacted whatever the ratio."""
    min_dirty_ratio: float
    """The part of a log that is not compacted yet at which compaction begins."""
    delete_retention_ms: int
    """How long a tombstone stays."""
    requested_ms: int
    """When somebody asked last that all there was be compacted; 0 where nobody has."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever due."""
        return not self.is_on and self.requested_ms == 0
