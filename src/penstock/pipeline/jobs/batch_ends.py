"""Up to where a batch of a stream goes, as Spark notes it before the batch begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.pipeline.source.offsets import OffsetsJson

_OFFSETS_LINE: Final = 2
"""In a file of Spark's offset log: after its version and what Spark knows of the batch."""


def batch_end(checkpoint: Path, batch: int) -> OffsetsJson:
    """Return where the batch after this one begins."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    end: OffsetsJson = json.loads(lines[_OFFSETS_LINE])
    return end
