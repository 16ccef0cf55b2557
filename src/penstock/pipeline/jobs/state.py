"""What a run leaves for others to read, and how it is asked to stop: files of one folder.

`status.json` is the run's newest figures, replaced as a whole. `batches.jsonl` has a line of JSON
for each batch; when it is full it becomes `batches.1.jsonl`, and the one before goes. A file
`stop` asks the run to end after the batch that it is in.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from penstock import wall_clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BATCHES_BYTES: Final = 8 << 20
"""What `batches.jsonl` grows to, some 30,000 batches; twice that is kept."""


class Phase(StrEnum):
    """What a run is doing."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"
    """As it should: caught up, or stopped."""
    FAILED = "failed"
    KILLED = "killed"
    """Nobody wrote this: the process that was to say otherwise is gone."""

    @property
    def is_over(self) -> bool:
        return self in {Phase.ENDED, Phase.FAILED, Phase.KILLED}


@dataclass(frozen=True)
class Status:
    """The figures of one run; times are milliseconds since 1970."""

    phase: Phase
    pid: int
    host: str
    started_ms: int
    updated_ms: int
    topics: tuple[str, ...]
    target: str
    """The table or the topic that is written."""
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    """Of the newest seconds."""
    behind: int | None = None
    """Rows that wait, as far as is known."""
    seconds_to_go: float | None = None
    """Until nothing waits, at this pace."""
    unmet: dict[str, int] = field(default_factory=dict)
    """How many rows did not meet each expectation."""
    late: int = 0
    """Rows that came too late to be looked at for doubles, and were dropped."""
    error: str | None = None
    warning: str | None = None
    """What is wrong with the table, though the run goes on."""

    @classmethod
    def of_this_process(cls, topics: tuple[str, ...], target: str) -> Self:
        now = wall_clock.now_ms()
        return cls(Phase.STARTING, os.getpid(), socket.gethostname(), now, now, topics, target)

    @property
    def is_here(self) -> bool:
        """Whether the run is of this machine, so that one can see whether it lives."""
        return self.host == socket.gethostname()


class JobState:
    """The folder of one job's state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._status = folder / "status.json"
        self._batches = folder / "batches.jsonl"
        self._stop = folder / "stop"

    def begin(self, status: Status) -> None:
        """Make the folder and forget what an earlier run was asked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._stop.unlink(missing_ok=True)
        self.write(status)

    def write(self, status: Status) -> None:
        draft = self._status.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(status)) + "\n")
        draft.replace(self._status)

    def read(self) -> Status | None:
        """Return what the newest run left; None where there was none.

        Raises ValueError where the file is of another version.
        """
        try:
            stored = json.loads(self._status.read_bytes())
        except FileNotFoundError:
            return None
        try:
            stored |= {"phase": Phase(stored["phase"]), "topics": tuple(stored["topics"])}
            status = Status(**stored)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{self._status} is of another version: {error}") from None
        if not status.phase.is_over and status.is_here and not _lives(status.pid):
            return replace(status, phase=Phase.KILLED)
        return status

    def add_batch(self, batch: Mapping[str, Any]) -> None:
        """Append one batch's line."""
        if self._batches.exists() and self._batches.stat().st_size > BATCHES_BYTES:
            self._batches.replace(self._batches.with_suffix(".1.jsonl"))
        with self._batches.open("a") as file:
            file.write(json.dumps(batch) + "\n")

    def ask_to_stop(self) -> None:
        self._stop.touch()

    def is_to_stop(self) -> bool:
        return self._stop.exists()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
