"""What one commit to a table of Delta or Iceberg says, and how one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.tables.interface import Offsets, StagedFile, Values
    from penstock.pipeline.tables.staging import Piece


class ConflictError(Exception):
    """Somebody else changed the table between the look at it and the commit."""


class OutcomeUnknownError(ConflictError):
    """The commit may have been made: its answer was lost, or is that of a second try."""


@dataclass(frozen=True)
class LiveFile:
    """One file that is part of the table."""

    name: str
    """Its path below the table's folder."""
    size: int
    rows: int
    values: Values = ()
    """Those that all of its rows have in the columns that the table is partitioned by."""
    entry: Any = None
    """What the format knows it by."""


class Batch(NamedTuple):
    """Which batch of which query a commit holds."""

    query: str
    number: int
    offsets: tuple[Offsets, ...]
    positions: OffsetsJson | None = None


@dataclass(frozen=True)
class Change:
    """The files that one commit adds and removes."""

    added: Sequence[StagedFile | Piece]
    removed: Sequence[LiveFile] = ()
    batch: Batch | None = None
    """None where the rows stay the same."""
