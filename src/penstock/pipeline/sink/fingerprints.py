"""What a batch is made from and where it goes, in few characters.

A number and a query's id don't tell a batch that is done again from another one: a checkpoint that
is put back as it was before the batch has it planned anew, and more rows may have come; and a copy
of a checkpoint may be another query's, with another topic.

The checkpoint says what a batch reads. A driver commits in a Python that has no way to Java, and so
to Hadoop's file systems; where it can't read the checkpoint, the rows that tasks had are counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from penstock.pipeline.sink.errors import SinkError

logger = logging.getLogger(__name__)

STREAM: Final = "query-"
"""Begins the name of a stream's writer; the rest is its id, which is the checkpoint's."""

_KNOWN: Final = "v1"
"""The form of Spark's offset log whose lines are known: its version, what Spark knows of the batch,
and how far each source is read."""

_FORM: Final = "2"
_FIRST_FORM: Final = "1"
"""Begin a fingerprint; the first one had no count. Those of other forms say nothing about it."""


class Fingerprint(NamedTuple):
    """Of one batch. What is empty is not known."""

    rows: str
    topic: str
    row_count: str = ""
    """How many rows tasks had: what there is to compare where it is not known which they were."""

    def __str__(self) -> str:
        return ":".join((_FORM, *self))

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Read what was kept with a batch, also by earlier versions and later ones."""
        form, *parts = text.split(":")
        fields = {_FORM: len(cls._fields), _FIRST_FORM: len(cls._fields) - 1}
        return cls(*parts) if len(parts) == fields.get(form) else cls("", "")

    def differs(self, other: Fingerprint) -> str | None:
        """Return of what another one is different, as far as both are known; None if of nothing.

        The same messages may be other rows, of a query that is not the same each time.
        """
        names = self._fields if not (self.rows and other.rows) else ("rows", "topic")
        for name in names:
            mine, others = getattr(self, name), getattr(other, name)
            if mine and others and mine != others:
                return name
        return None


def fingerprint_of(rows: str, topic: str | None, count: int | None = None) -> Fingerprint:
    """Return that of rows, see `rows_of`, to a topic; None where each row names its own."""
    return Fingerprint(rows, _digest(topic or "", 8), "" if count is None else str(count))


def rows_of(checkpoint: str | None, writer: str, batch: int) -> str:
    """Return what a batch of a stream reads, empty where the checkpoint can't be read here.

    It is the same whenever the batch is done again. Raises SinkError for a damaged checkpoint.
    """
    folder = None if checkpoint is None else _local(checkpoint)
    if folder is None or _id_of(folder) != writer.removeprefix(STREAM):
        logger.info("the checkpoint of %s can't be read here", writer)
        return ""
    file = folder / "offsets" / str(batch)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SinkError(
            f"{file} does not say what batch {batch} reads: the checkpoint is damaged. Put back a "
            f"copy of the whole folder as it was ({error})"
        ) from error
    return _digest(_told_by(text), 16)


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def _local(location: str) -> Path | None:
    """Return the folder that is meant, None where it is in no file system of this machine."""
    if "://" not in location and not location.startswith("file:"):
        return Path(location)
    parts = urlsplit(location)
    return Path(parts.path) if (parts.scheme, parts.netloc) == ("file", "") else None


def _id_of(checkpoint: Path) -> str | None:
    """Return the id of the query whose checkpoint it is; None where it is none."""
    try:
        found = json.loads((checkpoint / "metadata").read_bytes())["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(found)


def _told_by(text: str) -> str:
    """Return what a batch is made from, by its file of Spark's offset log.

    Positions in topics are all of that. Other sources count what they have read in files of their
    own beside the log, where another batch may be the same number: then it counts too when Spark
    planned the batch.
    """
    lines = text.splitlines()
    sources = [_positions(line) for line in lines[2:]]
    if lines[:1] != [_KNOWN] or not all(sources):
        return text
    return json.dumps(sources, sort_keys=True)


def _positions(line: str) -> dict[str, dict[str, int | str]] | None:
    """Return how far topics are read by a line; None where it says something else."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    is_by_topic = isinstance(found, dict) and all(isinstance(each, dict) for each in found.values())
    return found if is_by_topic else None
