"""Whether what a stored batch holds may be more than its own bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.header import ATTRIBUTE_COMPRESSION, HEADER_SIZE, Magic, read_header
from penstock.records.pulsar.entry import MalformedEntryError, parse_entry

if TYPE_CHECKING:
    from penstock.session import Buffer


def is_compressed(batch: Buffer) -> bool:
    """Whether the body of a stored batch has to be inflated; False where it can't be read."""
    header = read_header(batch)
    if header.magic == Magic.KAFKA:
        return bool(header.attributes & ATTRIBUTE_COMPRESSION)
    if header.magic != Magic.PULSAR:
        return False
    try:
        entry = parse_entry(memoryview(batch)[HEADER_SIZE : header.size])
    except MalformedEntryError:
        return False
    return entry.metadata.compression != 0
