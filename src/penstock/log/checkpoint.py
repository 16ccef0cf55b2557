"""The checkpoint file: up to where a log is known to be durable and sound, where it begins, and the
states that its owners would else have to replay all batches for.

The file is replaced as a whole, so a crash leaves the old one or the new one. A file that doesn't
fit its checksum counts as none, and recovery then starts at the first segment.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from penstock.limits import CHECKPOINT_STATE_BYTES, CHECKPOINT_STATES
from penstock.log.files import write_all

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.files import FileSystem

NAME: Final = "checkpoint"
_TEMPORARY: Final = "checkpoint.new"
_MAGIC: Final = b"PSLC"
_VERSION: Final = 2
_HEAD: Final = struct.Struct(">4sH")
_BODY: Final = struct.Struct(">qqqqH")
"""Offset, base of the last segment, position in it, start offset, number of states."""
_SECTION: Final = struct.Struct(">BqI")
"""Size of the name, offset of the state, size of the state; name and state follow."""
_CRC: Final = struct.Struct(">I")

_VERSION_1: Final = 1
_BODY_1: Final = struct.Struct(">qqqqI")
"""Offset, base of the last segment, position in it, offset of the only state, its size."""
_OWNER_1: Final = "producers"
"""Under what name the only owner that version 1 knew registers now."""


class Section(NamedTuple):
    """One owner's state, which is opaque to the log."""

    offset: int
    """First offset that `state` knows nothing of."""

    state: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything below `offset` is durable; it ends at `position` of segment `segment_base`."""

    offset: int = 0
    segment_base: int = 0
    position: int = 0
    start_offset: int = 0
    """What lies below was trimmed."""

    states: Mapping[str, Section] = field(default_factory=dict)
    """By the names of their owners."""


def read_checkpoint(files: FileSystem, directory: Path, size: int) -> Checkpoint | None:
    """Return the stored checkpoint, or None where the file is no whole one. Raises OSError."""
    with closing(files.open(directory / NAME)) as file:
        data = file.pread(size, 0)
    if len(data) < _HEAD.size + _CRC.size:
        return None
    content, stored_crc = data[: -_CRC.size], data[-_CRC.size :]
    magic, version = _HEAD.unpack_from(content)
    if magic != _MAGIC or _CRC.pack(crc32c(content)) != stored_crc:
        return None
    parse = {_VERSION: _parse, _VERSION_1: _parse_version_1}.get(version)
    try:
        return parse(content) if parse is not None else None
    except (struct.error, ValueError):
        return None


def write_checkpoint(files: FileSystem, directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the stored checkpoint, durably. Raises OSError; the old one may be there still."""
    content = _pack(checkpoint)
    temporary = directory / _TEMPORARY
    with suppress(FileNotFoundError):
        files.unlink(temporary)
    with closing(files.open(temporary, write=True, create=True)) as file:
        write_all(file, [content, _CRC.pack(crc32c(content))], 0)
        file.fdatasync()
    files.rename(temporary, directory / NAME)
    files.sync_directory(directory)


def _pack(checkpoint: Checkpoint) -> bytes:
    assert 0 <= checkpoint.start_offset <= checkpoint.offset, "only what is durable is trimmed"
    assert len(checkpoint.states) <= CHECKPOINT_STATES
    parts = [
        _HEAD.pack(_MAGIC, _VERSION),
        _BODY.pack(
            *(checkpoint.offset, checkpoint.segment_base, checkpoint.position),
            *(checkpoint.start_offset, len(checkpoint.states)),
        ),
    ]
    for name, (offset, state) in checkpoint.states.items():
        assert 0 <= offset <= checkpoint.offset, "no state of what isn't durable"
        assert len(state) <= CHECKPOINT_STATE_BYTES
        parts += [_SECTION.pack(len(name.encode()), offset, len(state)), name.encode(), state]
    return b"".join(parts)


def _parse(content: bytes) -> Checkpoint:
    """Raises struct.error and ValueError for what `_pack` can't have written."""
    offset, base, position, start_offset, count = _BODY.unpack_from(content, _HEAD.size)
    states: dict[str, Section] = {}
    at = _HEAD.size + _BODY.size
    for _ in range(count):
        name_size, state_offset, state_size = _SECTION.unpack_from(content, at)
        name_end = at + _SECTION.size + name_size
        at = name_end + state_size
        name = content[name_end - name_size : name_end].decode()
        states[name] = Section(state_offset, content[name_end:at])
    if at != len(content) or not len(states) == count <= CHECKPOINT_STATES:
        raise ValueError(f"{count} states in {len(content)} bytes")
    if not (0 <= start_offset <= offset and 0 <= base <= offset and position >= 0):
        raise ValueError(f"offsets {start_offset} and {base} of {offset}, byte {position}")
    if not all(0 <= section.offset <= offset for section in states.values()):
        raise ValueError(f"a state of what is not there at {offset}")
    return Checkpoint(offset, base, position, start_offset, states)


def _parse_version_1(content: bytes) -> Checkpoint:
    """Read what releases wrote that had one owner of state, and nothing trimmed."""
    offset, base, position, state_offset, size = _BODY_1.unpack_from(content, _HEAD.size)
    state = content[_HEAD.size + _BODY_1.size :]
    if len(state) != size:
        raise ValueError(f"a state of {size} bytes in {len(state)}")
    return Checkpoint(offset, base, position, 0, {_OWNER_1: Section(state_offset, state)})
