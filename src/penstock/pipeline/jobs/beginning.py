"""Where a table begins: the offsets from which its job read first.

They are resolved once and noted before the first batch. Words such as `latest` mean another place a
moment later, and Spark itself keeps only where batches end.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.pipeline.source.offsets import EARLIEST, from_json, to_json, topic_ids
from penstock.pipeline.tables.storage import flush_folder

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.pipeline.jobs.checkpoint import PlannedBatch
    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import OffsetsJson


class Beginning:
    """The note of it, in the folder of a job's state."""

    def __init__(self, state: Path) -> None:
        self._path = state / "starting.json"

    def read(self) -> OffsetsJson | None:
        """Return the offsets; None for a table that an earlier version began."""
        if not self._path.exists():
            return None
        noted: OffsetsJson = json.loads(self._path.read_bytes())
        return noted

    def note(self, offsets: OffsetsJson) -> None:
        """Replace the note, durably."""
        draft = self._path.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump(offsets, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        flush_folder(self._path.parent)

    def pinned(
        self, config: PipelineConfig, newest: PlannedBatch | None, starting: OffsetsJson
    ) -> PipelineConfig:
        """Return the pipeline with its starting offsets as numbers, until its first batch is done.

        `starting` is what its own words mean now.
        """
        if newest is None:
            self.note(starting)
        elif newest.number or newest.is_done:
            return config
        noted = self.read()
        if noted is None:
            return config
        offsets = dict.fromkeys(from_json(starting), EARLIEST) | from_json(noted)
        text = json.dumps(to_json(offsets, topic_ids(noted)))
        return replace(config, starting_offsets=text)
