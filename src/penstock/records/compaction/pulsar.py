"""Entries of Pulsar without some of their messages.

What is left becomes one entry for each run of messages that follow one another, so that a message's
index in its entry still says its offset, and whoever has acknowledged all that it was shown has
acknowledged the entry. Pulsar itself leaves a message that is marked as compacted out: clients in
C++ and Python show it to their users as an empty one, and those that leave it out never acknowledge
the rest (apache/pulsar#23245).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.limits import COMPRESSED_RUN_BYTES
from penstock.log.header import (
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_LOG_APPEND_TIME,
    HEADER_SIZE,
    Magic,
)
from penstock.records import field
from penstock.records.columns import as_bytes
from penstock.records.compaction.writing import (
    EPOCH_AT,
    MADE_FIELDS,
    PRODUCER_AT,
    PRODUCER_SIZE,
    Made,
    note,
    seal,
    write_header,
)
from penstock.records.kernels.arguments import (
    BytesIn,
    BytesOut,
    NumbersIn,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.crc32 import crc32c
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import copy_bytes, load_big, store_big
from penstock.records.kernels.protobuf import WIRE_VARINT, next_field, write_number
from penstock.records.pulsar import entry_field, metadata
from penstock.records.pulsar.compression import compress_pulsar
from penstock.records.pulsar.decode import read_entries
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
_LONGEST_FIELD: Final = 11
_FIELDS_MADE: Final = 4

# Fields of a run. The rows are those of records.
BATCH: Final = 0
FIRST: Final = 1
LAST: Final = 2
START: Final = 3
"""Where its messages begin in the decoded bytes, or behind them where they were compressed."""
END: Final = 4
SIZE: Final = 5
"""Of its messages, uncompressed."""
CODEC: Final = 6
RUN_FIELDS: Final = 7


def read_entries_of(data: Bytes, batches: Numbers) -> Numbers:
    """Return the table of entries of a run, in which those of others are 0."""
    entries = np.zeros((entry_field.FIELDS, batches.shape[1]), np.int64)
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    read_entries(data, batches.copy(), entries, fields)
    return entries


def pulsar_runs(columns: Columns, chosen: Numbers, kept: Mask, horizons: Numbers) -> Made:
    """Return the batches that are left of the chosen ones, ascending, of each of which some
    messages are kept and others not.

    `horizons` are the delete horizons that all batches are given, -1 where they are not.
    """
    batches = columns.batches
    entries = read_entries_of(columns.data, batches)
    runs = _runs(columns, chosen, kept)
    measure_runs(columns.data, columns.records, runs)
    data = _with_compressed(columns.data, entries, runs)
    sizes = entries[entry_field.METADATA_END] - entries[entry_field.METADATA_START]
    most = HEADER_SIZE + CHECKSUM_SIZE + 4 + _FIELDS_MADE * _LONGEST_FIELD
    room = (sizes[runs[BATCH]] + runs[END] - runs[START] + most).sum()
    out = np.empty(int(room), np.uint8)
    common = np.empty(int(sizes.max()), np.uint8)
    made = np.empty((MADE_FIELDS, runs.shape[1]), np.int64)
    tables = (batches, columns.records, entries, runs, horizons)
    write_runs(columns.data, data, *tables, common, out, made)
    return Made(out, made)


def _runs(columns: Columns, chosen: Numbers, kept: Mask) -> Numbers:
    """Return the runs of kept messages of the chosen batches; their sizes are not known yet."""
    batches = columns.batches
    is_chosen = np.zeros(batches.shape[1], np.bool_)
    is_chosen[chosen] = True
    rows = np.flatnonzero(kept & np.repeat(is_chosen, batches[field.RECORDS]))
    owners = np.repeat(np.arange(batches.shape[1]), batches[field.RECORDS])[rows]
    breaks = (np.diff(columns.offsets[rows]) != 1) | (np.diff(owners) != 0)
    firsts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
    runs = np.zeros((RUN_FIELDS, len(firsts)), np.int64)
    runs[BATCH] = owners[firsts]
    runs[FIRST] = rows[firsts]
    runs[LAST] = rows[np.append(firsts[1:], len(rows)) - 1]
    return runs


def _with_compressed(data: Bytes, entries: Numbers, runs: Numbers) -> Bytes:
    """Compress the longer runs of compressed entries; return the bytes that `runs` point into.

    A short run would gain nothing: what its messages have in common was in others.
    """
    codecs = entries[entry_field.CODEC][runs[BATCH]]
    chosen = np.flatnonzero((codecs != 0) & (runs[SIZE] >= int(COMPRESSED_RUN_BYTES)))
    parts, end = [data], len(data)
    for run in chosen.tolist():
        messages = data[runs[START, run] : runs[END, run]].data
        compressed = as_bytes(compress_pulsar(int(codecs[run]), messages))
        runs[CODEC, run] = codecs[run]
        runs[[START, END], run] = end, end + len(compressed)
        parts.append(compressed)
        end += len(compressed)
    return np.concatenate(parts) if len(parts) > 1 else data


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


@kernel
def measure_runs(data: BytesIn, records: TableIn, runs: TableOut) -> None:
    """Fill in where the messages of each run are."""
    for run in range(runs.shape[1]):
        start = records[field.BLOCK_START, runs[FIRST, run]] - 4
        end = _message_end(data, records[field.BLOCK_START, runs[LAST, run]] - 4)
        runs[START, run] = start
        runs[END, run] = end
        runs[SIZE, run] = end - start


@helper
def _common_metadata(
    data: BytesIn, entries: TableIn, batch: int, count: int, common: BytesOut
) -> tuple[int, int]:
    """Copy what the metadata of an entry's runs have in common; return its size, and the number of
    the last of the entry's messages: by that its producer is known, whichever of them are left.
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
    return size, highest if highest != 0 else sequence + count - 1


@helper
def _write_entry(
    out: BytesOut, position: int, common: BytesIn, common_size: int, messages: BytesIn,
    runs: TableIn, run: int, highest: int,
) -> int:  # fmt: skip
    """Write an entry with its checksum; return the position behind it."""
    summed = position + CHECKSUM_SIZE
    copy_bytes(out, summed + 4, common, 0, common_size)
    end = summed + 4 + common_size
    end = write_number(out, end, _MESSAGES, runs[LAST, run] - runs[FIRST, run] + 1)
    end = write_number(out, end, _INFLATED_SIZE, runs[SIZE, run])
    end = write_number(out, end, _HIGHEST, highest)
    if runs[CODEC, run] != 0:
        end = write_number(out, end, _CODEC, runs[CODEC, run])
    store_big(out, summed, 4, end - summed - 4)
    size = runs[END, run] - runs[START, run]
    copy_bytes(out, end, messages, runs[START, run], size)
    end += size
    store_big(out, position, CHECKSUM_AT, CHECKSUM_MAGIC)
    store_big(out, position + CHECKSUM_AT, 4, crc32c(out, summed, end))
    return end


@helper
def _latest(records: TableIn, first: int, last: int) -> int:
    latest = records[field.TIMESTAMP, first]
    for row in range(first, last + 1):
        latest = max(latest, records[field.TIMESTAMP, row])
    return latest


@helper
def _run_time(batches: TableIn, records: TableIn, runs: TableIn, run: int, latest: int) -> int:
    """Return the highest timestamp of a run in ms; `latest` is that of its batch's records."""
    batch = runs[BATCH, run]
    of_run = _latest(records, runs[FIRST, run], runs[LAST, run])
    if batches[field.ATTRIBUTES, batch] & ATTRIBUTE_LOG_APPEND_TIME or of_run == latest:
        return batches[field.MAX_TIMESTAMP, batch]
    return of_run // 1000


@helper
def _write_run(
    out: BytesOut, position: int, data: BytesIn, batches: TableIn, records: TableIn,
    runs: TableIn, run: int, horizon: int, time: int,
) -> int:  # fmt: skip
    """Write a run's header, but for length and checksum; return the position of its entry."""
    batch = runs[BATCH, run]
    source = batches[field.POSITION, batch]
    first = records[field.OFFSET, runs[FIRST, run]]
    last = records[field.OFFSET, runs[LAST, run]]
    attributes = batches[field.ATTRIBUTES, batch]
    base_timestamp = batches[field.BASE_TIMESTAMP, batch]
    if horizon >= 0:
        attributes |= ATTRIBUTE_DELETE_HORIZON
        base_timestamp = horizon
    count = last - first + 1
    body = write_header(
        out, position, Magic.PULSAR, attributes, base_timestamp, time, first, last, count
    )
    copy_bytes(out, position + EPOCH_AT, data, source + EPOCH_AT, 4)
    copy_bytes(out, position + PRODUCER_AT, data, source + PRODUCER_AT, PRODUCER_SIZE)
    return body


@kernel
def write_runs(
    data: BytesIn, messages: BytesIn, batches: TableIn, records: TableIn, entries: TableIn,
    runs: TableIn, horizons: NumbersIn, common: BytesOut, out: BytesOut, made: TableOut,
) -> None:  # fmt: skip
    """Write a batch for each run, and say where it is."""
    position = int64(0)
    batch = int64(-1)
    size = highest = latest = int64(0)
    for run in range(runs.shape[1]):
        if runs[BATCH, run] != batch:
            batch = runs[BATCH, run]
            count = batches[field.COUNT, batch]
            size, highest = _common_metadata(data, entries, batch, count, common)
            row = batches[field.FIRST_RECORD, batch]
            latest = _latest(records, row, row + batches[field.RECORDS, batch] - 1)
        time = _run_time(batches, records, runs, run, latest)
        body = _write_run(out, position, data, batches, records, runs, run, horizons[batch], time)
        end = _write_entry(out, body, common, size, messages, runs, run, highest)
        seal(out, position, end)
        first = records[field.OFFSET, runs[FIRST, run]]
        last = records[field.OFFSET, runs[LAST, run]]
        note(made, run, batch, position, end, first, last, time)
        position = end
