"""An entry that a Pulsar consumer finds damaged, which is how it hears of a batch that is."""

from __future__ import annotations

from penstock.log.header import NO_TIMESTAMP, Magic, build_header, stamp
from penstock.records.pulsar.entry import CHECKSUM_AT, build_entry
from penstock.records.pulsar.metadata_pb2 import MessageMetadata


def damaged_entry(start: int, end: int) -> bytes:
    """Return a stored Pulsar batch of offsets `start` up to `end` that fails its checksum.

    A client that finds the checksum wrong reports it, drops the entry and acknowledges it with the
    validation error ChecksumMismatch. It counts as one message, for that is the permit it returns.
    """
    metadata = MessageMetadata(producer_name="penstock", sequence_id=0, publish_time=0)
    body = build_entry(metadata, b"")
    body[CHECKSUM_AT] ^= 0xFF
    header = build_header(
        Magic.PULSAR,
        body,
        record_count=1,
        last_offset_delta=end - start - 1,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=NO_TIMESTAMP,
    )
    stamp(header, start, 0)
    return bytes(header + body)
