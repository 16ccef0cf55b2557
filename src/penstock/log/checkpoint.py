"""The checkpoint file: up to where a log is known to be durable and sound, where it begins, and the
states that its owners would else have to replay all batches for.

The file is replaced as a whole, so a crash leaves the old one or the new one. A file that doesn't
fit its checksum counts as none, and recovery then starts at the first segment. Large states are in
files of their own (`state_files`), which the checkpoint refers to.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from penstock.limits import (
    CHECKPOINT_STATE_APART_BYTES,
    CHECKPOINT_STATE_BYTES,
    CHECKPOINT_STATES,
)
from penstock.log.state_files import (
    DIGEST_BYTES,
    digest_of,
    read_state,
    remove_others,
    replace_file,
    write_states,
)

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log.files import FileSystem
    from penstock.log.pieces import State

logger = logging.getLogger(__name__)

NAME: Final = "checkpoint"
_TEMPORARY: Final = "checkpoint.new"
_MAGIC: Final = b"PSLC"
_VERSION: Final = 2
_VERSION_APART: Final = 3
"""Written where a state is apart: each section says whether its own is."""
_HEAD: Final = struct.Struct(">4sH")
_BODY: Final = struct.Struct(">qqqqH")
"""Offset, base of the last segment, position in it, start offset, number of states."""
_SECTION: Final = struct.Struct(">BqI")
"""Size of the name, offset of the state, size of the state; name and state follow."""
_IS_APART: Final = struct.Struct(">?")
"""Follows in version 3; what is apart has its digest in the state's place."""
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

    state: State


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
    try:
        if version == _VERSION_1:
            return _parse_version_1(content)
        return _with_states(files, directory, *_parse(content, version))
    except (struct.error, ValueError):
        return None


def write_checkpoint(files: FileSystem, directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the stored checkpoint, durably. Raises OSError; the old one may be there still.

    Of large states those are written that changed.
    """
    apart = _digests(checkpoint)
    if apart:
        large = {digest: checkpoint.states[name].state for name, digest in apart.items()}
        write_states(files, directory, large)
    content = _pack(checkpoint, apart)
    content += _CRC.pack(crc32c(content))
    replace_file(files, directory / _TEMPORARY, directory / NAME, [content])
    files.sync_directory(directory)
    if apart:
        remove_others(files, directory, files.entries(directory), apart.values())


def remove_lost_states(
    files: FileSystem, directory: Path, there: Iterable[str], known: Checkpoint
) -> None:
    """Remove, of the files that are there, those of states that the stored checkpoint was read
    without: what a crash left, and what is damaged, which would be taken for written. Raises
    OSError.
    """
    remove_others(files, directory, there, _digests(known).values())


def _digests(checkpoint: Checkpoint) -> dict[str, bytes]:
    """Return, by their names, the digests of the states that are in files of their own."""
    return {
        name: digest_of(section.state)
        for name, section in checkpoint.states.items()
        if len(section.state) > CHECKPOINT_STATE_APART_BYTES
    }


def _pack(checkpoint: Checkpoint, apart: Mapping[str, bytes]) -> bytes:
    """`apart` has the digests of the states that are in files of their own."""
    assert 0 <= checkpoint.start_offset <= checkpoint.offset, "only what is durable is trimmed"
    assert len(checkpoint.states) <= CHECKPOINT_STATES
    parts = [
        _HEAD.pack(_MAGIC, _VERSION_APART if apart else _VERSION),
        _BODY.pack(
            *(checkpoint.offset, checkpoint.segment_base, checkpoint.position),
            *(checkpoint.start_offset, len(checkpoint.states)),
        ),
    ]
    for name, (offset, state) in checkpoint.states.items():
        assert 0 <= offset <= checkpoint.offset, "no state of what isn't durable"
        assert len(state) <= CHECKPOINT_STATE_BYTES
        parts.append(_SECTION.pack(len(name.encode()), offset, len(state)))
        if apart:
            parts.append(_IS_APART.pack(name in apart))
        parts += [name.encode(), apart.get(name) or bytes(state)]
    return b"".join(parts)


class _Apart(NamedTuple):
    """A state that is in a file of its own."""

    digest: bytes
    size: int


def _with_states(
    files: FileSystem, directory: Path, known: Checkpoint, apart: Mapping[str, _Apart]
) -> Checkpoint:
    """Return a checkpoint with the states that are apart, but for those that are lost.

    Raises OSError.
    """
    states = dict(known.states)
    for name, (digest, size) in apart.items():
        state = read_state(files, directory, digest, size)
        if state is None:
            logger.error("%s: the state of %s is gone or damaged", directory, name)
            del states[name]
        else:
            states[name] = Section(states[name].offset, state)
    return replace(known, states=states)


def _parse(content: bytes, version: int) -> tuple[Checkpoint, dict[str, _Apart]]:
    """Raises struct.error and ValueError for what `_pack` can't have written."""
    if version not in (_VERSION, _VERSION_APART):
        raise ValueError(f"version {version}")
    offset, base, position, start_offset, count = _BODY.unpack_from(content, _HEAD.size)
    states: dict[str, Section] = {}
    apart: dict[str, _Apart] = {}
    at = _HEAD.size + _BODY.size
    for _ in range(count):
        name_size, state_offset, state_size = _SECTION.unpack_from(content, at)
        at += _SECTION.size
        is_apart = False
        if version == _VERSION_APART:
            (is_apart,) = _IS_APART.unpack_from(content, at)
            at += _IS_APART.size
        name_end = at + name_size
        name = content[at:name_end].decode()
        at = name_end + (DIGEST_BYTES if is_apart else state_size)
        states[name] = Section(state_offset, b"" if is_apart else content[name_end:at])
        if is_apart:
            apart[name] = _Apart(content[name_end:at], state_size)
    if at != len(content) or not len(states) == count <= CHECKPOINT_STATES:
        raise ValueError(f"{count} states in {len(content)} bytes")
    if not (0 <= start_offset <= offset and 0 <= base <= offset and position >= 0):
        raise ValueError(f"offsets {start_offset} and {base} of {offset}, byte {position}")
    if not all(0 <= section.offset <= offset for section in states.values()):
        raise ValueError(f"a state of what is not there at {offset}")
    return Checkpoint(offset, base, position, start_offset, states), apart


def _parse_version_1(content: bytes) -> Checkpoint:
    """Read what releases wrote that had one owner of state, and nothing trimmed."""
    offset, base, position, state_offset, size = _BODY_1.unpack_from(content, _HEAD.size)
    state = content[_HEAD.size + _BODY_1.size :]
    if len(state) != size:
        raise ValueError(f"a state of {size} bytes in {len(state)}")
    return Checkpoint(offset, base, position, 0, {_OWNER_1: Section(state_offset, state)})
