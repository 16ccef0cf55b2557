"""What each folder of the data folder says about itself, in a small file of JSON.

So a folder that was moved, mixed up or put back is known for what it is, and the catalogue can be
made again of the folders. What is looked at when a log is opened is by id only: a topic that was
given another name meanwhile is still the same.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.log.layout import IDENTITY_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT: Final = 1


class IdentityError(Exception):
    """A folder says nothing about itself, or nothing that this release understands."""


@dataclass(frozen=True)
class _Identity:
    """Written as its fields; `cluster` is the id of the data folder that it belongs to."""

    cluster: str

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises IdentityError, and OSError but for a file that is missing."""
        file = folder / IDENTITY_FILE
        try:
            stored = json.loads(file.read_bytes())
        except FileNotFoundError:
            raise IdentityError(f"{file} is missing") from None
        except ValueError as error:
            raise IdentityError(f"{file} can't be read: {error}") from error
        return cls._of(stored, file)

    @classmethod
    def _of(cls, stored: Any, file: Path) -> Self:
        if not isinstance(stored, dict) or stored.pop("format", None) != FORMAT:
            raise IdentityError(f"{file} is not of format {FORMAT}")
        known = {each.name for each in fields(cls)}
        if not known <= stored.keys():
            raise IdentityError(f"{file} lacks {', '.join(sorted(known - stored.keys()))}")
        return cls(**{name: stored[name] for name in known})

    def write(self, folder: Path) -> None:
        """Say so in a folder, durably but for the file's name. Raises OSError."""
        file = folder / IDENTITY_FILE
        unfinished = file.with_suffix(".new")
        self._write(unfinished, is_flushed=True)
        unfinished.replace(file)

    def write_first(self, folder: Path) -> Path:
        """Say so in a folder that nobody knows yet; return the file, for the caller to flush.

        Raises OSError. A crash may leave half of the file.
        """
        file = folder / IDENTITY_FILE
        self._write(file, is_flushed=False)
        return file

    def _write(self, file: Path, *, is_flushed: bool) -> None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            content = json.dumps({"format": FORMAT, **vars(self)}).encode()
            written = os.write(descriptor, content)
            if written < len(content):
                raise OSError(errno.ENOSPC, "the disk took only a part of it", str(file))
            if is_flushed:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class NodeIdentity(_Identity):
    """The data folder's own. `epoch` is that of its last start: no batch in it has a higher one."""

    epoch: int


@dataclass(frozen=True)
class TopicIdentity(_Identity):
    """A topic's folder: what the catalogue has of the topic, as of its last change."""

    id: str
    tenant: str
    namespace: str
    topic: str
    stream_id: int
    iggy_topic_id: int
    partitioned: bool
    config: Mapping[str, str]
    created_at_us: int


@dataclass(frozen=True)
class PartitionIdentity(_Identity):
    """A log's folder. The name is that which the topic had when the partition was made."""

    topic_id: str
    topic: str
    index: int
    partition_id: int
    created_at_us: int

    def check(self, folder: Path) -> None:
        """Raise IdentityError where a folder is not this partition's."""
        found = type(self).read(folder)
        for name in ("cluster", "topic_id", "index", "partition_id"):
            there, here = getattr(found, name), getattr(self, name)
            if there != here:
                raise IdentityError(
                    f"{folder} belongs elsewhere: to {found.topic}-{found.index} of cluster "
                    f"{found.cluster}; its {name} is {there}, not {here}"
                )


def is_of_partition(folder: Path, partition_id: int) -> bool:
    """Whether a folder says that it is this partition's. Raises OSError."""
    try:
        return PartitionIdentity.read(folder).partition_id == partition_id
    except IdentityError:
        return False
