"""A query's checkpoint in Spark's form: runs with Spark and without it go on from each other.

`metadata` names the query. `offsets/N` says where batch N ends, and is written before the batch
begins; `commits/N` is there when the batch is done. A batch that has the first and not the second
is done again, between the same offsets.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock import wall_clock
from penstock.pipeline.jobs.batch_ends import batch_end, damaged, lines_of
from penstock.pipeline.tables.storage import flush_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.pipeline.source.offsets import OffsetsJson

BATCHES_KEPT: Final = 100
"""As many as Spark keeps."""

_VERSION: Final = "v1"
_OFFSETS_LINES: Final = 3
"""Of a stream from one source: the version, what Spark knows of the batch, and its end."""


class PlannedBatch(NamedTuple):
    """The newest batch that a checkpoint knows of."""

    number: int
    end: OffsetsJson
    is_done: bool


class Checkpoint:
    """The folder of one query's checkpoint, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def is_plain(self) -> bool:
        """Whether a run without Spark can go on: there is nothing that only Spark reads."""
        if (self.folder / "state").exists():
            return False
        newest = max(self._numbers("offsets"), default=None)
        if newest is None:
            return True
        lines = lines_of(self.folder, newest)
        return len(lines) == _OFFSETS_LINES and lines[0] == _VERSION

    def query(self) -> str:
        """Return the query's id, which a new checkpoint is given now. Raises CheckpointError."""
        path = self.folder / "metadata"
        if not path.exists():
            if self._numbers("offsets"):
                raise damaged(f"{path} is missing, beside offsets of batches")
            self._write(path, json.dumps({"id": str(uuid.uuid4())}))
        try:
            return str(json.loads(path.read_bytes())["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(f"{path} does not say whose checkpoint it is") from error

    def newest(self) -> PlannedBatch | None:
        """Return the newest batch that was planned; None where none was."""
        number = max(self._numbers("offsets"), default=None)
        if number is None:
            return None
        return PlannedBatch(number, self.end_of(number), number in self._numbers("commits"))

    def resumed(
        self, initial: Callable[[], OffsetsJson]
    ) -> tuple[int, OffsetsJson, OffsetsJson | None]:
        """Return the number of the batch to do now, its start, and its end if that is planned.

        `initial` says where the first batch begins.
        """
        newest = self.newest()
        if newest is None:
            return 0, initial(), None
        if newest.is_done:
            return newest.number + 1, newest.end, None
        start = self.end_of(newest.number - 1) if newest.number else initial()
        return newest.number, start, newest.end

    def end_of(self, batch: int) -> OffsetsJson:
        """Return where a batch ends."""
        return batch_end(self.folder, batch)

    def plan(self, batch: int, end: OffsetsJson) -> None:
        """Note where a batch ends, durably, before it begins."""
        about = {"batchWatermarkMs": 0, "batchTimestampMs": wall_clock.now_ms(), "conf": {}}
        self._note("offsets", batch, about, end)

    def finish(self, batch: int) -> None:
        """Note that all of a batch is where it belongs."""
        self._note("commits", batch, {"nextBatchWatermarkMs": 0})
        for kind in ("offsets", "commits"):
            for number in self._numbers(kind):
                if number <= batch - BATCHES_KEPT:
                    (self.folder / kind / str(number)).unlink()
                    _checksum(self.folder / kind / str(number)).unlink(missing_ok=True)

    def _numbers(self, kind: str) -> list[int]:
        folder = self.folder / kind
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        return [int(name) for name in names if name.isdigit()]

    def _note(self, kind: str, batch: int, *entries: Any) -> None:
        text = "\n".join((_VERSION, *(json.dumps(entry) for entry in entries)))
        self._write(self.folder / kind / str(batch), text)

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What Spark wrote of a file of this name that never came to be would not fit this one.
        _checksum(path).unlink(missing_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4()}.tmp")
        with draft.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        flush_folder(path.parent)
        flush_folder(path.parent.parent)


def _checksum(path: Path) -> Path:
    """Return where Hadoop's local file system keeps the checksum of a file."""
    return path.with_name(f".{path.name}.crc")
