"""Up to where a batch of a stream goes, as Spark notes it before the batch begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.pipeline.source.offsets import OffsetsJson

_OFFSETS_LINE: Final = 2
"""In a file of Spark's offset log: after its version and what Spark knows of the batch."""


class CheckpointError(Exception):
    """A checkpoint is damaged; the message names the file."""


def batch_end(checkpoint: Path, batch: int) -> OffsetsJson:
    """Return where the batch after this one begins. Raises CheckpointError."""
    file = checkpoint / "offsets" / str(batch)
    lines = file.read_text().splitlines()
    try:
        end: OffsetsJson = json.loads(lines[_OFFSETS_LINE])
    except (IndexError, ValueError) as error:
        raise CheckpointError(
            f"{file} does not say where its batch ends: the checkpoint is damaged. Put back a copy "
            "of the whole folder as it was, or begin another table"
        ) from error
    return end
