"""Telling sound batches from damaged ones, many in one step: `penstock.log.scan` says what is sound
and takes one after the other, which costs a small batch more than all else that is done to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.batches import Batches
from penstock.log.header import ATTRIBUTE_CONTROL, CRC_START, HEADER_SIZE, PREFIX_SIZE, Magic
from penstock.log.scan import judge_by
from penstock.records.columns import as_bytes
from penstock.records.kernels.arguments import BytesIn, NumbersOut, int64
from penstock.records.kernels.crc32 import crc32c
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import load_big

if TYPE_CHECKING:
    from penstock.log.reading import Readable
    from penstock.log.scan import Bounds

_LENGTH_AT: Final = 8
_EPOCH_AT: Final = 12
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_LOW_ATTRIBUTES_AT: Final = 22
_LAST_DELTA_AT: Final = 23
_COUNT_AT: Final = 57
_SIGNED_32: Final = 1 << 31
_MIXED: Final = -1


def have_it_used() -> None:
    """Have logs read with it, in this process."""
    judge_by(sound_prefix)


def sound_prefix(
    file: Readable, data: memoryview, base_offset: int, bounds: Bounds, end: int
) -> Batches:
    """Return the sound batches that `data` begins with, as `penstock.log.scan.Judge` says."""
    del file  # Whoever else wants to run does: the interpreter is free meanwhile.
    found = np.empty(3, np.int64)
    judge(as_bytes(data), base_offset, end, bounds.end_offset, bounds.leader_epoch, found)
    size, next_offset, magic = found.tolist()
    return Batches(data[:size], base_offset, next_offset, None if magic == _MIXED else magic)


@helper
def _size_of_sound(
    data: BytesIn, position: int, offset: int, end_offset: int, leader_epoch: int
) -> int:
    """Return the size of the batch at a position, which is to begin at an offset; 0 where none is
    sound.
    """
    size = load_big(data, position + _LENGTH_AT, 4) + PREFIX_SIZE
    magic = data[position + _MAGIC_AT]
    delta = load_big(data, position + _LAST_DELTA_AT, 4)
    if (
        load_big(data, position, 8) != offset
        or not HEADER_SIZE <= size <= len(data) - position
        or magic not in (Magic.KAFKA, Magic.PULSAR, Magic.IGGY)
        or load_big(data, position + _EPOCH_AT, 4) > leader_epoch
        or delta >= min(_SIGNED_32, end_offset - offset)
        or crc32c(data, position + CRC_START, position + size)
        != load_big(data, position + _CRC_AT, 4)
    ):
        return int64(0)
    return size


@kernel
def judge(
    data: BytesIn, base_offset: int, end: int, end_offset: int, leader_epoch: int, found: NumbersOut
) -> None:
    """Say how many bytes are sound batches that begin below `end`, which offset is behind them, and
    which magic they have, as `Batches` says it.
    """
    position, offset = int64(0), int64(base_offset)
    magic = int64(_MIXED)
    only_control = True
    while position + HEADER_SIZE <= len(data) and offset < end:
        size = _size_of_sound(data, position, offset, end_offset, leader_epoch)
        if size == 0:
            break
        delta = load_big(data, position + _LAST_DELTA_AT, 4)
        its_magic = int64(data[position + _MAGIC_AT])
        if its_magic == Magic.PULSAR and load_big(data, position + _COUNT_AT, 4) <= delta:
            its_magic = int64(_MIXED)
        if not data[position + _LOW_ATTRIBUTES_AT] & ATTRIBUTE_CONTROL:
            magic = its_magic if only_control or its_magic == magic else int64(_MIXED)
            only_control = False
        offset += delta + 1
        position += size
    if only_control and position:
        magic = int64(Magic.KAFKA)
    found[0] = position
    found[1] = offset
    found[2] = magic
