"""Telling sound batches from damaged ones, and finding the next sound one after damage.

A batch is sound where its header is possible, its base offset is the one that must come next and
its checksum fits. The checksum covers neither base offset, length, leader epoch nor magic, so these
are judged by what must be there: a flipped bit in any of them shows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from fastcrc.crc32 import iscsi as crc32c

from penstock.log.batches import Batches
from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    CRC_START,
    HEADER_SIZE,
    PREFIX_SIZE,
    BatchHeader,
    Magic,
    read_header,
    walk,
)

if TYPE_CHECKING:
    from penstock.log.reading import Readable
    from penstock.session import Buffer

_JUDGED: Final = struct.Struct(">qiibIhi30xi")
"""The header without times and producer."""

_PULSAR: Final = int(Magic.PULSAR)

MAGICS: Final = frozenset(int(magic) for magic in Magic)
_MAGIC_AT: Final = 16
_CHUNK_BYTES: Final = 1 << 20
_WALK_BYTES: Final = 16 << 10
_JUDGED_TOGETHER: Final = 512
_MUCH_BYTES: Final = 16 << 10
"""With less a faster judge is hardly faster."""


class Place(NamedTuple):
    """A batch boundary: its byte in the segment, and the base offset of the batch there."""

    position: int
    offset: int

    def after(self, batches: Batches) -> Place:
        """Return the place behind batches that begin here."""
        return Place(self.position + len(batches.data), batches.next_offset)


class Batch(NamedTuple):
    """A sound batch and where it is."""

    position: int
    header: BatchHeader


class CorruptRange(NamedTuple):
    """Bytes that hold no sound batch, and the offsets that are lost with them."""

    position: int
    end_position: int
    base_offset: int
    next_offset: int


class Bounds(NamedTuple):
    """What the batches of one segment can't exceed."""

    end_position: int
    end_offset: int
    leader_epoch: int


class Judge(Protocol):
    """Says which sound batches some bytes begin with, the first of which is to have this offset, as
    far as they begin below `end`.
    """

    def __call__(
        self, file: Readable, data: memoryview, base_offset: int, bounds: Bounds, end: int
    ) -> Batches: ...


def is_possible(header: BatchHeader, room: int, bounds: Bounds) -> bool:
    """Whether a header can be one, with `room` bytes from it to the end of the segment."""
    return (
        HEADER_SIZE <= header.size <= room
        and header.magic in MAGICS
        and header.last_offset_delta >= 0
        and 0 <= header.leader_epoch <= bounds.leader_epoch
        and header.next_offset <= bounds.end_offset
    )


def header_at(file: Readable, position: int, bounds: Bounds) -> BatchHeader | None:
    """Return the header at `position`, or None where there can't be one."""
    room = bounds.end_position - position
    if position < 0 or room < HEADER_SIZE:
        return None
    data = file.pread(HEADER_SIZE, position)
    if len(data) < HEADER_SIZE:
        return None
    header = read_header(data)
    return header if is_possible(header, room, bounds) else None


def step_headers(file: Readable, place: Place, bounds: Bounds) -> Iterator[Batch]:
    """Yield batches from `place` on by their headers alone; end where one doesn't follow.

    Bodies are neither read nor judged: whoever hands one out has yet to check it.
    """
    position, offset = place
    window: Buffer = b""
    window_start = position
    while position + HEADER_SIZE <= bounds.end_position:
        at = position - window_start
        if at + HEADER_SIZE > len(window):
            window = file.pread(min(_WALK_BYTES, bounds.end_position - position), position)
            window_start, at = position, 0
            if len(window) < HEADER_SIZE:
                return
        header = read_header(window, at)
        room = bounds.end_position - position
        if header.base_offset != offset or not is_possible(header, room, bounds):
            return
        file.judged(1)
        yield Batch(position, header)
        position += header.size
        offset = header.next_offset


def sound_prefix(
    file: Readable, data: memoryview, base_offset: int, bounds: Bounds, end: int
) -> Batches:
    """The `Judge` that takes one batch after the other."""
    position, size, offset = 0, len(data), base_offset
    judged = 0
    magic: int | None = None
    only_control = True
    while position + HEADER_SIZE <= size and offset < end:
        judging = _JUDGED.unpack_from(data, position)
        base, length, epoch, found, crc, attributes, delta, count = judging
        following = position + PREFIX_SIZE + length
        if (
            base != offset
            or not position + HEADER_SIZE <= following <= size
            or found not in MAGICS
            or not 0 <= epoch <= bounds.leader_epoch
            or not 0 <= delta < bounds.end_offset - base
            or crc32c(data[position + CRC_START : following]) != crc
        ):
            break
        judged += 1
        if judged == _JUDGED_TOGETHER:
            file.judged(judged)
            judged = 0
        native = None if found == _PULSAR and count <= delta else found
        if not attributes & ATTRIBUTE_CONTROL and (only_control or native != magic):
            magic = native if only_control else None
            only_control = False
        position = following
        offset = base + delta + 1
    if only_control and position:
        magic = Magic.KAFKA
    return Batches(data[:position], base_offset, offset, magic)


_judge: Judge = sound_prefix


def judge_by(judge: Judge) -> None:
    """Have much that is read judged by one that is faster than `sound_prefix`, from now on."""
    global _judge  # noqa: PLW0603  # of the whole process
    _judge = judge


def read_sound(
    file: Readable, place: Place, max_bytes: int, bounds: Bounds, end: int | None = None
) -> Batches:
    """Read sound batches from `place` on, at most `max_bytes` but at least one whole batch.

    All of them begin below `end`, if there is one. Nothing is returned where the first is damaged.
    """
    room = bounds.end_position - place.position
    assert room >= 0, "a place lies inside its segment"
    data = memoryview(file.pread(min(max(max_bytes, HEADER_SIZE), room), place.position))
    if len(data) < room and len(data) >= HEADER_SIZE:
        header = read_header(data)
        # The length may be the damaged field, so its memory is taken only once the sum is right.
        if header.size > len(data) and _is_sound(file, place, header, bounds):
            data = memoryview(file.pread(header.size, place.position))
    end = bounds.end_offset if end is None else end
    judge = _judge if len(data) >= _MUCH_BYTES else sound_prefix
    return judge(file, data, place.offset, bounds, end)


def _is_sound(file: Readable, place: Place, header: BatchHeader, bounds: Bounds) -> bool:
    """Judge the batch at `place` without holding it in memory."""
    if header.base_offset != place.offset:
        return False
    if not is_possible(header, bounds.end_position - place.position, bounds):
        return False
    position, end, crc = place.position + CRC_START, place.position + header.size, 0
    while position < end:
        data = file.pread(min(_CHUNK_BYTES, end - position), position)
        if not data:
            return False
        crc = crc32c(data, crc)
        position += len(data)
    return bool(crc == header.crc)


def scan(file: Readable, place: Place, bounds: Bounds) -> Iterator[Batch | CorruptRange]:
    """Judge every byte from `place` to the end, and yield what is there in order.

    A range that nothing sound follows reaches to the bounds' end position and end offset.
    """
    while place.position < bounds.end_position:
        batches = read_sound(file, place, _CHUNK_BYTES, bounds)
        following = place.after(batches)
        for position, header in walk(batches.data):
            yield Batch(place.position + position, header)
        if not batches.data:
            found = _resynchronise(file, place, bounds)
            following = found or Place(bounds.end_position, bounds.end_offset)
            yield CorruptRange(place.position, following.position, place.offset, following.offset)
        assert following.position > place.position, "a scan moves on"
        place = following


def _resynchronise(file: Readable, damaged: Place, bounds: Bounds) -> Place | None:
    """Find the first sound batch after the damaged one, or None."""
    stated_end = _stated_end(file, damaged, bounds)
    if stated_end == bounds.end_position:
        return None
    if stated_end is not None and (found := _confirmed(file, stated_end, damaged, bounds)):
        return found
    for position in _candidates(file, damaged, bounds):
        if found := _confirmed(file, position, damaged, bounds):
            return found
    return None


def _stated_end(file: Readable, damaged: Place, bounds: Bounds) -> int | None:
    header = header_at(file, damaged.position, bounds._replace(end_offset=1 << 62))
    return None if header is None else damaged.position + header.size


def _confirmed(file: Readable, position: int, damaged: Place, bounds: Bounds) -> Place | None:
    """Return the place at `position` if a sound batch is there and what follows fits it.

    The second condition keeps a batch that someone sent as a payload from being taken for ours.
    """
    header = header_at(file, position, bounds)
    if header is None or header.base_offset <= damaged.offset:
        return None
    place = Place(position, header.base_offset)
    end = position + header.size
    if end < bounds.end_position:
        following = header_at(file, end, bounds)
        if following is None or following.base_offset != header.next_offset:
            return None
    return place if _is_sound(file, place, header, bounds) else None


def _candidates(file: Readable, damaged: Place, bounds: Bounds) -> Iterator[int]:
    """Yield the positions after the damaged header where the bytes look like another header."""
    pattern = _header_pattern(damaged.offset + 1, bounds.end_offset)
    position = damaged.position + 1
    while position + HEADER_SIZE <= bounds.end_position:
        data = file.pread(min(_CHUNK_BYTES, bounds.end_position - position), position)
        if len(data) <= _MAGIC_AT:
            return
        for match in pattern.finditer(data):
            yield position + match.start() - _MAGIC_AT
        position += len(data) - _MAGIC_AT


def _header_pattern(lowest_offset: int, end_offset: int) -> re.Pattern[bytes]:
    """Match a magic byte that follows a base offset in range and a positive length."""
    highs = {struct.pack(">q", offset)[:4] for offset in (lowest_offset, end_offset)}
    high = b"|".join(re.escape(each) for each in sorted(highs))
    # The class comes first so that the search runs at the speed of a byte scan.
    return re.compile(rb"(?s)[\x02IP](?<=(?:" + high + rb").{4}[\x00-\x7f].{7}[\x02IP])")
