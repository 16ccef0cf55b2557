"""Up to where a batch of a stream goes, as Spark notes it before the batch begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from penstock.pipeline.source.offsets import from_json

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.pipeline.source.offsets import OffsetsJson

_OFFSET_MAX: Final = (1 << 63) - 1
_OFFSETS_LINE: Final = 2
"""In a file of Spark's offset log: after its version and what Spark knows of the batch."""


class CheckpointError(Exception):
    """A checkpoint is damaged; the message names the file."""


def batch_end(checkpoint: Path, batch: int) -> OffsetsJson:
    """Return where the batch after this one begins. Raises CheckpointError."""
    lines = lines_of(checkpoint, batch)
    try:
        end: OffsetsJson = json.loads(lines[_OFFSETS_LINE])
        offsets = from_json(end)
    except (IndexError, ValueError) as error:
        raise damaged(f"{_file(checkpoint, batch)} does not say where its batch ends") from error
    if any(not 0 <= offset <= _OFFSET_MAX for offset in offsets.values()):
        raise damaged(f"{_file(checkpoint, batch)} has offsets that no topic has")
    return end


def lines_of(checkpoint: Path, batch: int) -> list[str]:
    """Return what is noted of a batch. Raises CheckpointError."""
    file = _file(checkpoint, batch)
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise damaged(f"{file} is missing") from error
    except ValueError as error:
        raise damaged(f"{file} is no text") from error


def damaged(what: str) -> CheckpointError:
    return CheckpointError(
        f"{what}: the checkpoint is damaged. Put back a copy of the whole folder as it was, or "
        "begin another table"
    )


def _file(checkpoint: Path, batch: int) -> Path:
    return checkpoint / "offsets" / str(batch)
