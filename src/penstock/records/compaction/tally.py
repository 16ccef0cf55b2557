"""What a pass of compaction counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What a pass has come to."""

    records: int = 0
    records_kept: int = 0
    batches_changed: int = 0
    """Those that are there still, with fewer records or a delete horizon."""
