"""Control batches: the one record at the end of a transaction that says how it ended (KIP-98).

The record's key says which end it is, its value at which epoch the coordinator decided. The header
has the producer's id and epoch, and the bits of a transactional and of a control batch.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock import wall_clock
from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    Magic,
    build_header,
)

if TYPE_CHECKING:
    from penstock.session import Buffer

_RECORD: Final = struct.Struct(">BBBBBhhBhiB")
"""Size, attributes, deltas of time and offset, size of the key, its version and type, size of the
value, its version and coordinator epoch, count of headers: all varints in it are of one byte.
"""
_SIZE: Final = (_RECORD.size - 1) * 2
_KEY_SIZE: Final = 4 * 2
_VALUE_SIZE: Final = 6 * 2
_ABORT: Final = 0
_COMMIT: Final = 1
_TYPE_AT: Final = HEADER_SIZE + 7
_TYPE: Final = struct.Struct(">h")
_EPOCH_AT: Final = _TYPE_AT + 5
_EPOCH: Final = struct.Struct(">i")


def end_marker(
    producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
) -> bytearray:
    """Return the control batch that ends a producer's transaction now, for the log to stamp."""
    now_ms = wall_clock.now_ms()
    kind = _COMMIT if committed else _ABORT
    record = _RECORD.pack(_SIZE, 0, 0, 0, _KEY_SIZE, 0, kind, _VALUE_SIZE, 0, coordinator_epoch, 0)
    header = build_header(
        Magic.KAFKA,
        record,
        record_count=1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        attributes=ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return header + record


def is_commit(batch: Buffer) -> bool:
    """Whether a control batch, header included, says that its transaction was committed."""
    (kind,) = _TYPE.unpack_from(batch, _TYPE_AT)
    return bool(kind == _COMMIT)


def coordinator_epoch(batch: Buffer) -> int:
    """Return the epoch of the coordinator that decided, from a control batch, header included."""
    (epoch,) = _EPOCH.unpack_from(batch, _EPOCH_AT)
    return int(epoch)
