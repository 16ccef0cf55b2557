"""How a Pulsar consumer is told that messages are damaged: Pulsar has no other word for it."""

from __future__ import annotations

import struct
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from penstock.log.header import NO_TIMESTAMP, Magic, build_header, stamp
from penstock.records.pulsar.metadata import MessageMetadata

_CHECKED: Final = struct.Struct(">HI")
_CHECKSUM_MAGIC: Final = 0x0E01
_SIZE: Final = struct.Struct(">I")


def damaged_entry(start: int, end: int) -> bytes:
    """Return a stored Pulsar batch of offsets `start` up to `end` that fails its checksum.

    A client that finds the checksum wrong reports it, drops the entry and acknowledges it with the
    validation error ChecksumMismatch. It counts as one message, for that is the permit it returns.
    """
    metadata = MessageMetadata(producer_name="penstock", sequence_id=0, publish_time=0)
    encoded = metadata.SerializeToString()
    summed = _SIZE.pack(len(encoded)) + encoded
    body = _CHECKED.pack(_CHECKSUM_MAGIC, ~crc32c(summed) & 0xFFFFFFFF) + summed
    header = build_header(
        Magic.PULSAR,
        body,
        record_count=1,
        last_offset_delta=end - start - 1,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
    )
    stamp(header, start, 0)
    return bytes(header) + body
