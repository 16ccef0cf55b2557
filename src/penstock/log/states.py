"""The states that a log's checkpoints keep, each for the owner that registered under its name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penstock.limits import CHECKPOINT_STATE_BYTES, CHECKPOINT_STATES
from penstock.log.checkpoint import Section

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.pieces import State

logger = logging.getLogger(__name__)


class States:
    """What was kept at the last checkpoint, and who is asked at the next one.

    What nobody registers for is kept as it is: it belongs to a release that will be back, and may
    tell of batches that are not in the log any more. Its owner replays what came since.
    """

    def __init__(self, directory: Path, kept: Mapping[str, Section]) -> None:
        self._directory = directory
        self._kept = dict(kept)
        self._snapshots: dict[str, Callable[[], State]] = {}

    @property
    def are_kept(self) -> bool:
        """Whether every owner has a state in the last checkpoint."""
        return self._snapshots.keys() <= self._kept.keys()

    def register(self, name: str, snapshot: Callable[[], State]) -> Section:
        """Add an owner and return its state."""
        assert name not in self._snapshots, "a state has one owner"
        assert len(self._snapshots.keys() | self._kept.keys() | {name}) <= CHECKPOINT_STATES
        self._snapshots[name] = snapshot
        return self._kept.get(name, Section(0, b""))

    def take(self, offset: int) -> dict[str, Section]:
        """Ask every owner for its state as of `offset`, and return all there are, to be kept."""
        taken = dict(self._kept)
        for name, snapshot in self._snapshots.items():
            state = snapshot()
            if len(state) <= CHECKPOINT_STATE_BYTES:
                taken[name] = Section(offset, state)
            else:
                logger.error(
                    "%s: the state of %s, %d bytes, is too large to be kept: the next start will "
                    "read the log again",
                    *(self._directory, name, len(state)),
                )
        assert all(section.offset <= offset for section in taken.values())
        return taken

    def keep(self, taken: Mapping[str, Section]) -> None:
        """A checkpoint holds what was taken."""
        self._kept = dict(taken)
