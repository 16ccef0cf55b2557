"""The checkpoint file: up to where a log is known to be durable and sound, and its owner's state.

The file is replaced as a whole, so a crash leaves the old one or the new one. A file that doesn't
fit its checksum counts as none, and recovery then starts at the first segment.
"""

from __future__ import annotations

import struct
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fastcrc.crc32 import iscsi as crc32c

from penstock.log.files import write_all

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.files import FileSystem

NAME: Final = "checkpoint"
_TEMPORARY: Final = "checkpoint.new"
_LAYOUT: Final = struct.Struct(">4sHqqqqI")
_MAGIC: Final = b"PSLC"
_VERSION: Final = 1
_CRC: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything below `offset` is durable; it ends at `position` of segment `segment_base`."""

    offset: int = 0
    segment_base: int = 0
    position: int = 0
    state_offset: int = 0
    """First offset that `state` knows nothing of."""

    state: bytes = b""
    """Opaque to the log: what its owner would else have to replay all batches for."""


def read_checkpoint(files: FileSystem, directory: Path, size: int) -> Checkpoint | None:
    """Return the stored checkpoint, or None where the file is no whole one. Raises OSError."""
    with closing(files.open(directory / NAME)) as file:
        data = file.pread(size, 0)
    if len(data) < _LAYOUT.size + _CRC.size:
        return None
    content = memoryview(data)[: -_CRC.size]
    magic, version, offset, segment_base, position, state_offset, length = _LAYOUT.unpack_from(data)
    if (crc32c(content),) != _CRC.unpack_from(data, len(content)) or magic != _MAGIC:
        return None
    if version != _VERSION or length != len(content) - _LAYOUT.size:
        return None
    return Checkpoint(offset, segment_base, position, state_offset, bytes(content[_LAYOUT.size :]))


def write_checkpoint(files: FileSystem, directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the stored checkpoint, durably. Raises OSError; the old one may be there still."""
    assert 0 <= checkpoint.state_offset <= checkpoint.offset, "no state of what isn't durable"
    content = (
        _LAYOUT.pack(
            *(_MAGIC, _VERSION, checkpoint.offset, checkpoint.segment_base, checkpoint.position),
            *(checkpoint.state_offset, len(checkpoint.state)),
        )
        + checkpoint.state
    )
    temporary = directory / _TEMPORARY
    with suppress(FileNotFoundError):
        files.unlink(temporary)
    with closing(files.open(temporary, write=True, create=True)) as file:
        write_all(file, [content, _CRC.pack(crc32c(content))], 0)
        file.fdatasync()
    files.rename(temporary, directory / NAME)
    files.sync_directory(directory)
