"""Entries of Pulsar without some of their messages.

A message that goes is marked as compacted out and loses its payload, as Pulsar's own compaction has
it, so that those behind it keep their place in the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.records.errors import MalformedBatchError
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, copy_bytes, load_big
from penstock.records.kernels.protobuf import WIRE_VARINT, next_field
from penstock.records.pulsar import entry_field, metadata
from penstock.records.pulsar.compression import compress_pulsar, inflate_pulsar
from penstock.records.pulsar.decode import read_entries
from penstock.records.pulsar.encode import FILLER
from penstock.records.pulsar.entry import build_entry, parse_entry
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Numbers

_PAYLOAD_SIZE: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER


def read_entries_of(data: Bytes, batches: Numbers) -> Numbers:
    """Return the table of entries of a run, in which those of others are 0."""
    entries = np.zeros((entry_field.FIELDS, batches.shape[1]), np.int64)
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    read_entries(data, batches.copy(), entries, fields)
    return entries


def pulsar_body(stored: memoryview, offset: int, kept_offsets: Numbers) -> bytes:
    """Return the entry of a batch, of which only the messages at some offsets are kept.

    `stored` is the entry that is at `offset`; it is a batch, and not encrypted.
    Raises MalformedBatchError.
    """
    entry = parse_entry(stored)
    said = entry.metadata
    payload = np.frombuffer(entry.payload, np.uint8)
    if said.compression:
        payload = inflate_pulsar(said.compression, entry.payload, said.uncompressed_size)
    kept = np.zeros(entry.message_count, np.bool_)
    kept[kept_offsets - offset] = True
    out = np.empty(len(payload) + len(FILLER) * entry.message_count, np.uint8)
    size = rewrite_messages(payload, kept, out)
    if size == MALFORMED:
        raise MalformedBatchError("the messages of an entry can't be read")
    said.uncompressed_size = size
    return bytes(build_entry(said, compress_pulsar(said.compression, out[:size].data)))


@helper
def _message_end(data: BytesIn, start: int) -> int:
    """Return the end of the message at a position, or MALFORMED."""
    if len(data) - start < 4:
        return int64(MALFORMED)
    position = start + 4
    end = position + load_big(data, start, 4)
    payload = int64(MALFORMED)
    while position < end:
        number, wire_type, value, _, position = next_field(data, position, min(end, len(data)))
        if position == MALFORMED:
            return int64(MALFORMED)
        if number == _PAYLOAD_SIZE and wire_type == WIRE_VARINT:
            payload = value
    if payload < 0 or payload > len(data) - end:
        return int64(MALFORMED)
    return end + payload


@kernel
def rewrite_messages(data: BytesIn, kept: MaskIn, out: BytesOut) -> int:
    """Write all messages of a batch, emptied those that are not kept; returns the size of that, or
    MALFORMED.
    """
    start = int64(0)
    position = int64(0)
    for index in range(len(kept)):
        end = _message_end(data, start)
        if end == MALFORMED:
            return int64(MALFORMED)
        if kept[index]:
            copy_bytes(out, position, data, start, end - start)
            position += end - start
        else:
            copy_bytes(out, position, FILLER, 0, len(FILLER))
            position += len(FILLER)
        start = end
    return position
