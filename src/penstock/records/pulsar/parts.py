"""Entries of Pulsar made anew of some of their messages.

A message's index in its entry says its offset. So one that is left out is either marked as
compacted out, as by Pulsar's own compaction, or what stands on both sides of it becomes an entry of
its own. Marks take less room where few messages are left out between two others, and are how
entries are stored. Clients get entries without marks: those in C++ and Python show a marked message
to their users as an empty one, and those that leave it out never acknowledge the rest
(apache/pulsar#23245).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.header import (
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    Magic,
)
from penstock.records import field
from penstock.records.columns import as_bytes
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    MaskIn,
    NumbersIn,
    TableIn,
    TableOut,
    int64,
    uint64,
)
from penstock.records.kernels.crc32 import crc32c
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_big, store_big, store_word
from penstock.records.kernels.protobuf import WIRE_VARINT, next_field, write_number
from penstock.records.made import (
    EPOCH_AT,
    MADE_FIELDS,
    PRODUCER_AT,
    PRODUCER_SIZE,
    Made,
    note,
    seal,
    write_header,
)
from penstock.records.pulsar import entry_field
from penstock.records.pulsar.compression import compress_pulsar
from penstock.records.pulsar.decode import read_entries_of
from penstock.records.pulsar.entry import CHECKSUM_AT, CHECKSUM_MAGIC, CHECKSUM_SIZE
from penstock.records.pulsar.metadata_pb2 import MessageMetadata, SingleMessageMetadata

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Mask, Numbers

_PAYLOAD_SIZE: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER
_SEQUENCE: Final = MessageMetadata.SEQUENCE_ID_FIELD_NUMBER
_HIGHEST: Final = MessageMetadata.HIGHEST_SEQUENCE_ID_FIELD_NUMBER
_MESSAGES: Final = MessageMetadata.NUM_MESSAGES_IN_BATCH_FIELD_NUMBER
_CODEC: Final = MessageMetadata.COMPRESSION_FIELD_NUMBER
_INFLATED_SIZE: Final = MessageMetadata.UNCOMPRESSED_SIZE_FIELD_NUMBER
_LONGEST_FIELD: Final = 12
_FIELDS_MADE: Final = 4
_ENTRY_BYTES: Final = CHECKSUM_SIZE + 4 + _FIELDS_MADE * _LONGEST_FIELD
"""What an entry takes at most beside its messages and the metadata of the one it was part of."""

_MARKED: Final = SingleMessageMetadata(payload_size=0, compacted_out=True).SerializeToString()
_MARK: Final = int.from_bytes(len(_MARKED).to_bytes(4, "big") + _MARKED, "little")
_MARK_BYTES: Final = 8
"""No message with a key takes fewer, so marks never make an entry grow."""
_AT_EDGE: Final = (HEADER_SIZE + _LONGEST_FIELD) // _MARK_BYTES
"""So many marks at an entry's beginning or end take no more than the gap in their place, and the
number of the last message, which the entry has to say then.
"""

# Fields of a part.
_BATCH: Final = 0
_FIRST: Final = 1
"""Its first offset, whether or not that message is marked."""
_LAST: Final = 2
_COUNT: Final = 3
"""How many messages are left."""
_TIME: Final = 4
_START: Final = 5
"""Where its messages begin, marks among them."""
_END: Final = 6
_SIZE: Final = 7
"""Of its messages, uncompressed."""
_PART_CODEC: Final = 8
_PART_FIELDS: Final = 9


def parts_of(
    columns: Columns, chosen: Numbers, kept: Mask, horizons: Numbers, *, marked: bool
) -> Made:
    """Return the batches that are left of the chosen ones, ascending, of each of which some
    messages are kept; others are left out, or are marked in it already.

    Without `marked` no message of them is. `horizons` are the delete horizons that all batches are
    given, -1 where they are not.
    """
    batches = columns.batches
    entries = read_entries_of(columns.data, batches)
    most = int(batches[field.RECORDS, chosen].sum())
    marks = _MARK_BYTES * int((batches[field.LAST_DELTA, chosen] + 1).sum()) if marked else 0
    messages = np.empty(len(columns.data) + marks, np.uint8)
    parts = np.empty((_PART_FIELDS, most), np.int64)
    tables = (batches, columns.records, entries, chosen, kept, int(marked))
    count = cut_entries(columns.data, *tables, parts, messages)
    parts = np.ascontiguousarray(parts[:, :count])
    messages = _with_compressed(messages, entries, parts)
    sizes = entries[entry_field.METADATA_END] - entries[entry_field.METADATA_START]
    room = (sizes[parts[_BATCH]] + parts[_END] - parts[_START] + HEADER_SIZE + _ENTRY_BYTES).sum()
    out = np.empty(int(room), np.uint8)
    common = np.empty(int(sizes.max()), np.uint8)
    made = np.empty((MADE_FIELDS, count), np.int64)
    write_parts(columns.data, messages, batches, entries, parts, horizons, common, out, made)
    return Made(out, made)


def _with_compressed(messages: Bytes, entries: Numbers, parts: Numbers) -> Bytes:
    """Compress the parts of compressed entries where that makes them smaller; return the bytes that
    `parts` point into.
    """
    codecs = entries[entry_field.CODEC][parts[_BATCH]]
    found, end = [messages], len(messages)
    for part in np.flatnonzero(codecs).tolist():
        plain = messages[parts[_START, part] : parts[_END, part]].data
        compressed = as_bytes(compress_pulsar(int(codecs[part]), plain))
        if len(compressed) < len(plain):
            parts[_PART_CODEC, part] = codecs[part]
            parts[[_START, _END], part] = end, end + len(compressed)
            found.append(compressed)
            end += len(compressed)
    return np.concatenate(found) if len(found) > 1 else messages


@helper
def _message_end(data: BytesIn, start: int) -> int:
    """Return the end of the message at a position, which has been read before."""
    position = start + 4
    end = position + load_big(data, start, 4)
    payload = int64(0)
    while position < end:
        number, wire_type, value, _, position = next_field(data, position, end)
        if number == _PAYLOAD_SIZE and wire_type == WIRE_VARINT:
            payload = value
    return end + payload


@helper
def _copy_message(
    data: BytesIn, records: TableIn, row: int, rows: int, out: BytesOut, position: int
) -> int:
    """Copy the message of a row, of a batch whose rows end before `rows`; return the position
    behind it.
    """
    start = records[field.BLOCK_START, row] - 4
    is_followed = row + 1 < rows
    if is_followed and records[field.OFFSET, row + 1] == records[field.OFFSET, row] + 1:
        end = records[field.BLOCK_START, row + 1] - 4
    else:
        end = _message_end(data, start)
    copy_bytes(out, position, data, start, end - start)
    return position + end - start


@helper
def _write_marks(out: BytesOut, position: int, count: int) -> int:
    """Write so many messages that are compacted out; return the position behind them."""
    for _ in range(count):
        store_word(out, position, uint64(_MARK))
        position += _MARK_BYTES
    return position


@helper
def _begin(parts: TableOut, part: int, batch: int, first: int, position: int) -> None:
    parts[_BATCH, part] = batch
    parts[_FIRST, part] = first
    parts[_COUNT, part] = 0
    parts[_TIME, part] = -1
    parts[_START, part] = position
    parts[_PART_CODEC, part] = 0


@helper
def _end(batches: TableIn, parts: TableOut, begin: int, count: int, latest: int) -> None:
    """Complete the parts of a batch; `latest` is the highest timestamp of all its messages."""
    for part in range(begin, count):
        batch = parts[_BATCH, part]
        parts[_SIZE, part] = parts[_END, part] - parts[_START, part]
        is_stamped = batches[field.ATTRIBUTES, batch] & ATTRIBUTE_LOG_APPEND_TIME
        if is_stamped or parts[_TIME, part] == latest:
            parts[_TIME, part] = batches[field.MAX_TIMESTAMP, batch]
        else:
            parts[_TIME, part] //= 1000


@kernel
def cut_entries(
    data: BytesIn, batches: TableIn, records: TableIn, entries: TableIn, chosen: NumbersIn,
    kept: MaskIn, marked: int, parts: TableOut, out: BytesOut,
) -> int:  # fmt: skip
    """Write the messages of all parts of the chosen batches; return how many parts there are."""
    position = count = int64(0)
    for index in range(len(chosen)):
        batch = chosen[index]
        between = at_edge = int64(0)
        if marked:
            at_edge = int64(_AT_EDGE)
            said = entries[entry_field.METADATA_END, batch]
            said -= entries[entry_field.METADATA_START, batch]
            between = (2 * HEADER_SIZE + _ENTRY_BYTES + said) // _MARK_BYTES
        expected = batches[field.BASE_OFFSET, batch]
        last = expected + batches[field.LAST_DELTA, batch]
        begin = count
        latest = int64(-1)
        row = batches[field.FIRST_RECORD, batch]
        rows = row + batches[field.RECORDS, batch]
        while row < rows:
            time = records[field.TIMESTAMP, row]
            latest = max(latest, time)
            if kept[row]:
                offset = records[field.OFFSET, row]
                if count == begin or offset - expected > between:
                    if count > begin or offset - expected > at_edge:
                        expected = offset
                    _begin(parts, count, batch, expected, position)
                    count += 1
                position = _write_marks(out, position, offset - expected)
                position = _copy_message(data, records, row, rows, out, position)
                expected = offset + 1
                parts[_LAST, count - 1] = offset
                parts[_END, count - 1] = position
                parts[_COUNT, count - 1] += 1
                parts[_TIME, count - 1] = max(parts[_TIME, count - 1], time)
            row += 1
        if count > begin and 0 <= last - expected < at_edge:
            position = _write_marks(out, position, last + 1 - expected)
            parts[_LAST, count - 1] = last
            parts[_END, count - 1] = position
        _end(batches, parts, begin, count, latest)
    return count


@helper
def _common_metadata(
    data: BytesIn, entries: TableIn, batch: int, common: BytesOut
) -> tuple[int, int, int]:
    """Copy what the metadata of an entry's parts have in common; return its size, and the numbers
    of the first and, 0 where it isn't said, the last of the entry's messages.
    """
    position = entries[entry_field.METADATA_START, batch]
    size = int64(0)
    sequence = highest = int64(0)
    while position < entries[entry_field.METADATA_END, batch]:
        start = position
        number, _, value, _, position = next_field(
            data, start, entries[entry_field.METADATA_END, batch]
        )
        if number == _HIGHEST:
            highest = value
            continue
        if number == _SEQUENCE:
            sequence = value
        if number not in (_MESSAGES, _CODEC, _INFLATED_SIZE):
            copy_bytes(common, size, data, start, position - start)
            size += position - start
    return size, sequence, highest


@helper
def _write_entry(
    out: BytesOut, position: int, common: BytesIn, common_size: int, messages: BytesIn,
    parts: TableIn, part: int, says_size: bool, highest: int,
) -> int:  # fmt: skip
    """Write an entry with its checksum; return the position behind it."""
    summed = position + CHECKSUM_SIZE
    copy_bytes(out, summed + 4, common, 0, common_size)
    end = summed + 4 + common_size
    end = write_number(out, end, _MESSAGES, parts[_LAST, part] - parts[_FIRST, part] + 1)
    if says_size:
        end = write_number(out, end, _INFLATED_SIZE, parts[_SIZE, part])
    if highest != 0:
        end = write_number(out, end, _HIGHEST, highest)
    if parts[_PART_CODEC, part] != 0:
        end = write_number(out, end, _CODEC, parts[_PART_CODEC, part])
    store_big(out, summed, 4, end - summed - 4)
    size = parts[_END, part] - parts[_START, part]
    copy_bytes(out, end, messages, parts[_START, part], size)
    end += size
    store_big(out, position, CHECKSUM_AT, CHECKSUM_MAGIC)
    store_big(out, position + CHECKSUM_AT, 4, crc32c(out, summed, end))
    return end


@helper
def _write_part_header(
    out: BytesOut, position: int, data: BytesIn, batches: TableIn, parts: TableIn, part: int,
    horizon: int,
) -> int:  # fmt: skip
    """Write a part's header, but for length and checksum; return the position of its entry."""
    batch = parts[_BATCH, part]
    source = batches[field.POSITION, batch]
    attributes = batches[field.ATTRIBUTES, batch]
    base_timestamp = batches[field.BASE_TIMESTAMP, batch]
    if horizon >= 0:
        attributes |= ATTRIBUTE_DELETE_HORIZON
        base_timestamp = horizon
    first, last = parts[_FIRST, part], parts[_LAST, part]
    time, count = parts[_TIME, part], parts[_COUNT, part]
    body = write_header(
        out, position, Magic.PULSAR, attributes, base_timestamp, time, first, last, count
    )
    copy_bytes(out, position + EPOCH_AT, data, source + EPOCH_AT, 4)
    copy_bytes(out, position + PRODUCER_AT, data, source + PRODUCER_AT, PRODUCER_SIZE)
    return body


@kernel
def write_parts(
    data: BytesIn, messages: BytesIn, batches: TableIn, entries: TableIn, parts: TableIn,
    horizons: NumbersIn, common: BytesOut, out: BytesOut, made: TableOut,
) -> None:  # fmt: skip
    """Write a batch for each part, and say where it is. By the number of the entry's last message
    its producer is known, whichever of them are left, so each part says it.
    """
    position = int64(0)
    batch = int64(-1)
    size = sequence = highest = int64(0)
    for part in range(parts.shape[1]):
        if parts[_BATCH, part] != batch:
            batch = parts[_BATCH, part]
            size, sequence, highest = _common_metadata(data, entries, batch, common)
        base, delta = batches[field.BASE_OFFSET, batch], batches[field.LAST_DELTA, batch]
        first, last = parts[_FIRST, part], parts[_LAST, part]
        is_said = highest != 0 or (first == base and last == base + delta)
        of_last = highest if is_said else sequence + delta
        says_size = entries[entry_field.INFLATED_SIZE, batch] != 0
        body = _write_part_header(out, position, data, batches, parts, part, horizons[batch])
        end = _write_entry(out, body, common, size, messages, parts, part, says_size, of_last)
        seal(out, position, end)
        note(made, part, batch, position, end, first, last, parts[_TIME, part])
        position = end
