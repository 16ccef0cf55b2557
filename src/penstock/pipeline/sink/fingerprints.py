"""What a batch of a stream is made from, in few characters, as the stream's checkpoint has it.

A number and a query's id don't tell a batch that is done again from another one: a checkpoint that
is put back as it was before the batch has it planned anew, and more rows may have come.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from penstock.pipeline.sink.errors import SinkError

logger = logging.getLogger(__name__)

STREAM: Final = "query-"
"""Begins the name of a stream's writer; the rest is its id, which is the checkpoint's."""

_KNOWN: Final = "v1"
"""The form of Spark's offset log whose lines are known: its version, what Spark knows of the batch,
and how far each source is read."""

_FORM: Final = "1:"
"""Begins a fingerprint. Those of another form say nothing about those of this one."""

_DIGEST_BYTES: Final = 16


def fingerprint_of(checkpoint: str | None, writer: str, batch: int) -> str:
    """Return that of what a batch of a stream reads, empty where the checkpoint can't be read here.

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
    return _FORM + hashlib.blake2b(_told_by(text).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def differ(committed: str, given: str) -> bool:
    """Whether two fingerprints are of different rows, as far as both are known."""
    forms = {each.partition(":")[0] for each in (committed, given)}
    return "" not in forms and len(forms) == 1 and committed != given


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
