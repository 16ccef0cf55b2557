"""Entries of Pulsar without some of their messages.

What is left becomes one entry for each run of messages that follow one another, so that a message's
index in its entry still says its offset, and whoever has acknowledged all that it was shown has
acknowledged the entry. Pulsar itself leaves a message that is marked as compacted out: clients in
C++ and Python show it to their users as an empty one, and those that leave it out never acknowledge
the rest (apache/pulsar#23245).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from penstock.records.errors import MalformedBatchError
from penstock.records.kernels.arguments import (
    BytesIn,
    NumbersOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, load_big
from penstock.records.kernels.protobuf import WIRE_VARINT, next_field
from penstock.records.pulsar import entry_field, metadata
from penstock.records.pulsar.compression import compress_pulsar, inflate_pulsar
from penstock.records.pulsar.decode import read_entries
from penstock.records.pulsar.entry import build_entry, parse_entry
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.records.columns import Bytes, Numbers

_PAYLOAD_SIZE: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER


def read_entries_of(data: Bytes, batches: Numbers) -> Numbers:
    """Return the table of entries of a run, in which those of others are 0."""
    entries = np.zeros((entry_field.FIELDS, batches.shape[1]), np.int64)
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    read_entries(data, batches.copy(), entries, fields)
    return entries


class Run(NamedTuple):
    """Messages of an entry that follow one another, as an entry of their own."""

    first: int
    """Which of the messages that are kept is the first one."""
    message_count: int
    entry: bytearray


def pulsar_runs(stored: memoryview, offset: int, kept_offsets: Numbers) -> Iterator[Run]:
    """Yield entries of the messages of a batch that are kept, at these offsets.

    `stored` is the entry that is at `offset`; it is a batch, and not encrypted.
    Raises MalformedBatchError.
    """
    entry = parse_entry(stored)
    said = entry.metadata
    payload = np.frombuffer(entry.payload, np.uint8)
    if said.compression:
        payload = inflate_pulsar(said.compression, entry.payload, said.uncompressed_size)
    bounds = np.zeros(entry.message_count + 1, np.int64)
    if find_messages(payload, bounds) == MALFORMED:
        raise MalformedBatchError("the messages of an entry can't be read")
    breaks = np.flatnonzero(np.diff(kept_offsets) != 1) + 1
    firsts = np.concatenate(([0], breaks))
    counts = np.diff(np.append(firsts, len(kept_offsets)))
    indexes = kept_offsets[firsts] - offset
    # By that the last of its producer's messages is known, whichever of them are left.
    said.highest_sequence_id = said.highest_sequence_id or said.sequence_id + len(bounds) - 2
    table = np.stack((firsts, counts, bounds[indexes], bounds[indexes + counts]), axis=1)
    for first, count, start, end in table.tolist():
        said.num_messages_in_batch = count
        said.uncompressed_size = end - start
        body = compress_pulsar(said.compression, payload[start:end].data)
        yield Run(first, count, build_entry(said, body))


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
def find_messages(data: BytesIn, bounds: NumbersOut) -> int:
    """Fill in where each message of a batch ends, behind where the first begins; returns how many
    there are, or MALFORMED where these bytes are not so many messages.
    """
    for index in range(len(bounds) - 1):
        bounds[index + 1] = _message_end(data, bounds[index])
        if bounds[index + 1] == MALFORMED:
            return int64(MALFORMED)
    return len(bounds) - 1 if bounds[len(bounds) - 1] == len(data) else int64(MALFORMED)
