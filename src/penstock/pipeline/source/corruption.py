"""What becomes of a batch that is damaged, or whose records nobody can read.

Either it ends the read, or it is passed over, or it is passed over and kept in a folder of dead
letters: one Parquet file a batch, whose name is the same whenever the batch is met again.
"""

from __future__ import annotations

import logging
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.pipeline.file_names import topic_in_name
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.options import OnCorruption, OptionError, SourceOptions

if TYPE_CHECKING:
    from penstock.pipeline.source.offsets import TopicPartition

logger = logging.getLogger(__name__)

KEPT_BYTES: Final = 64 << 20
"""Bytes of one damaged range that are kept: without its end nobody knows how much there is."""

SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("topicId", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("nextOffset", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("segment", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("data", pa.binary()),
    ]
)
"""Of dead letters. `data` are the stored bytes, which begin at byte `position` of the file
`segment`; what is null is not known where the batch was read."""


@dataclass(frozen=True)
class Damage:
    """Offsets from `start` up to `end` that can't be had, and what is known of their bytes."""

    source: TopicPartition
    start: int
    end: int
    reason: str
    segment: str | None = None
    position: int | None = None
    data: bytes | None = None

    def __str__(self) -> str:
        where = "" if self.segment is None else f" ({self.segment} at byte {self.position})"
        offsets = f"offsets {self.start}..{self.end - 1}"
        return f"{offsets} of {self.source} can't be read: {self.reason}{where}"


class Corruption:
    """The option `onCorruption` at work in one task."""

    def __init__(self, options: SourceOptions, topic_id: str | None) -> None:
        self._action = options.on_corruption
        self._folder = options.dead_letters
        self._topic_id = topic_id

    def met(self, damage: Damage) -> None:
        """Return where the read goes on without these offsets; raises SourceError where it ends."""
        if self._action is OnCorruption.FAIL:
            raise SourceError(
                f"{damage}. Set onCorruption to skip or deadLetter to read on behind them"
            )
        logger.warning("%s; they are left out, as onCorruption says", damage)
        if self._folder is not None:
            self._keep(self._folder, damage)

    def _keep(self, folder: Path, damage: Damage) -> None:
        row = {
            "topic": damage.source.topic,
            "topicId": self._topic_id,
            "partition": damage.source.partition,
            "offset": damage.start,
            "nextOffset": damage.end,
            "reason": damage.reason,
            "segment": damage.segment,
            "position": damage.position,
            "data": damage.data,
        }
        rest = f"-{damage.source.partition:05}-{damage.start:020}.parquet"
        if self._topic_id:
            rest = f"-{self._topic_id}{rest}"
        name = f"dead-{topic_in_name(damage.source.topic, len('dead-') + len(rest))}{rest}"
        draft = folder / f"_{uuid.uuid4().hex}"
        try:
            with draft.open("wb") as file:
                pq.write_table(pa.Table.from_pylist([row], SCHEMA), file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(folder / name)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise SourceError(f"deadLetterPath {folder} can't be written to: {error}") from error


def prepare(options: SourceOptions) -> None:
    """Make the folder of dead letters before anything is read. Raises OptionError."""
    folder = options.dead_letters
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"deadLetterPath {folder} can't be a folder: {error}") from error
    if not os.access(folder, os.W_OK):
        raise OptionError(f"deadLetterPath {folder} can't be written to")


def stored_bytes(path: str, position: int, end: int | None) -> bytes | None:
    """Return what a file holds of a damaged range, None where it can't be read any more."""
    try:
        with Path(path).open("rb") as file:
            file.seek(position)
            return file.read(KEPT_BYTES if end is None else min(KEPT_BYTES, end - position))
    except OSError:
        return None
