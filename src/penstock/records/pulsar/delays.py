"""From when on a Pulsar message is to be delivered (PIP-26)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.records.pulsar.entry import MalformedEntryError, parse_entry

if TYPE_CHECKING:
    from penstock.records.pulsar.metadata_pb2 import MessageMetadata

AT_ONCE = 0


def is_delayed(metadata: MessageMetadata) -> bool:
    """Whether a message, or a batch of messages, may have to wait."""
    return metadata.deliver_at_time > AT_ONCE


def deliver_at(entry: memoryview) -> int:
    """Return from when on a stored entry is to be delivered, in milliseconds since 1970; what can't
    be read is for the consumer to refuse, at once.
    """
    try:
        return parse_entry(entry).metadata.deliver_at_time
    except MalformedEntryError:
        return AT_ONCE
