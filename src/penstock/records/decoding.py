"""Stored batches of any encodings, read into columns in the order of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.limits import DECODED_ROWS, INFLATED_BATCH_BYTES
from penstock.log.header import ATTRIBUTE_COMPRESSION, Magic, walk
from penstock.records import field, reserved
from penstock.records.additions import Additions
from penstock.records.arena import Arena
from penstock.records.columns import Bytes, Columns, Numbers, as_bytes
from penstock.records.compression import inflate_kafka, inflate_pulsar
from penstock.records.errors import MalformedBatchError
from penstock.records.escapes import restore
from penstock.records.iggy import layout
from penstock.records.iggy.decode import ID_DIGITS, read_iggy_headers, read_iggy_records, write_ids
from penstock.records.kafka.decode import SMALLEST_RECORD, read_kafka_headers, read_kafka_records
from penstock.records.kernels.text import decode_base64
from penstock.records.pulsar import entry_field, message_field, metadata
from penstock.records.pulsar.decode import (
    DROPPED,
    read_entries,
    read_pulsar_headers,
    read_pulsar_records,
)
from penstock.records.pulsar.entry import SMALLEST_MESSAGE
from penstock.records.pulsar.headers import add_pulsar_headers
from penstock.records.scan import malformed, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.session import Buffer


class OverLimitError(MalformedBatchError):
    """The batches hold or inflate to more than may be in memory at once."""


def decode(batches: Buffer, *, headers: bool = True) -> Columns:
    """As `penstock.records.decode`."""
    data = as_bytes(batches)
    table = scan(data)
    entries = np.zeros((entry_field.FIELDS, table.shape[1]), np.int64)
    present = set(np.unique(table[field.MAGIC]).tolist())
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    if Magic.PULSAR in present:
        _check(table, read_entries(data, table, entries, fields))
    data = _inflate(data, table, entries)
    _check_room(table, entries)
    table[field.FIRST_RECORD, 1:] = np.cumsum(table[field.RECORDS])[:-1]
    records = np.empty((field.RECORD_FIELDS, _within_limit(table[field.RECORDS])), np.int64)
    messages = np.zeros(
        (message_field.FIELDS, records.shape[1] if Magic.PULSAR in present else 0), np.int64
    )
    if Magic.KAFKA in present:
        _check(table, read_kafka_records(data, table, records))
    if Magic.PULSAR in present:
        _check(table, read_pulsar_records(data, table, entries, records, messages, fields))
        records, messages = _without_dropped(table, records, messages)
    if Magic.IGGY in present:
        _check(table, read_iggy_records(data, table, records))
    columns = _with_headers(Columns(data, data, records, *_headers_room(records), table), entries)
    if Magic.PULSAR in present:
        columns = _with_decoded_keys(columns, messages)
    if headers and Magic.IGGY in present:
        columns = _add_iggy_ids(columns)
    if headers and Magic.PULSAR in present:
        columns = add_pulsar_headers(columns, entries, messages)
    return restore(columns)


def decode_run(batches: Buffer, *, headers: bool = True) -> Iterator[Columns]:
    """As `penstock.records.decode_run`."""
    try:
        yield decode(batches, headers=headers)
    except OverLimitError:
        view = memoryview(batches)
        starts = [position for position, _ in walk(view)]
        if len(starts) == 1:
            raise
        middle = starts[len(starts) // 2]
        yield from decode_run(view[:middle], headers=headers)
        yield from decode_run(view[middle:], headers=headers)


def _check(table: Numbers, bad: int) -> None:
    if bad >= 0:
        raise malformed(table, bad, "its body can't be read in its own encoding")


def _inflate(data: Bytes, table: Numbers, entries: Numbers) -> Bytes:
    """Put the uncompressed bodies behind the batches and point the tables to them."""
    arena = Arena.behind(data)
    left = int(INFLATED_BATCH_BYTES)
    codecs = np.where(
        table[field.MAGIC] == Magic.KAFKA,
        table[field.ATTRIBUTES] & ATTRIBUTE_COMPRESSION,
        np.where(table[field.MAGIC] == Magic.PULSAR, entries[entry_field.CODEC], 0),
    )
    for batch in np.flatnonzero((codecs != 0) & (table[field.RECORDS] > 0)).tolist():
        part = _inflate_batch(data, table, entries, batch, int(codecs[batch]))
        left -= len(part)
        if left < 0:
            raise OverLimitError(f"more than {INFLATED_BATCH_BYTES} bytes of inflated batches")
        start = arena.add(part)
        where = table if table[field.MAGIC, batch] == Magic.KAFKA else entries
        starts, ends = (
            (field.BODY_START, field.BODY_END)
            if where is table
            else (entry_field.PAYLOAD_START, entry_field.PAYLOAD_END)
        )
        where[starts, batch], where[ends, batch] = start, start + len(part)
    return arena.join()


def _inflate_batch(data: Bytes, table: Numbers, entries: Numbers, batch: int, codec: int) -> Bytes:
    try:
        if table[field.MAGIC, batch] == Magic.KAFKA:
            body = data[table[field.BODY_START, batch] : table[field.BODY_END, batch]]
            return inflate_kafka(codec, body.data)
        payload = data[
            entries[entry_field.PAYLOAD_START, batch] : entries[entry_field.PAYLOAD_END, batch]
        ]
        return inflate_pulsar(codec, payload.data, int(entries[entry_field.INFLATED_SIZE, batch]))
    except MalformedBatchError as error:
        raise malformed(table, batch, str(error)) from error


def _check_room(table: Numbers, entries: Numbers) -> None:
    """Refuse counts that the bodies have no room for, before memory is taken for them."""
    sizes = table[field.BODY_END] - table[field.BODY_START]
    payloads = entries[entry_field.PAYLOAD_END] - entries[entry_field.PAYLOAD_START]
    singles = np.where(entries[entry_field.IS_BATCH] != 0, payloads // SMALLEST_MESSAGE, 1)
    room = np.where(table[field.MAGIC] == Magic.KAFKA, sizes // SMALLEST_RECORD, singles)
    frames = (sizes - layout.BATCH_HEADER_SIZE) // layout.FRAME_SIZE
    room = np.where(table[field.MAGIC] == Magic.IGGY, frames, room)
    crowded = np.flatnonzero(table[field.RECORDS] > np.maximum(room, 0))
    if len(crowded):
        raise malformed(table, int(crowded[0]), "it declares more records than it has room for")


def _without_dropped(
    table: Numbers, records: Numbers, messages: Numbers
) -> tuple[Numbers, Numbers]:
    """Take out the messages that compaction has emptied; their offsets become a gap."""
    kept = records[field.OFFSET] != DROPPED
    kept |= np.repeat(table[field.MAGIC] != Magic.PULSAR, table[field.RECORDS])
    if kept.all():
        return records, messages
    ends = np.concatenate(([0], np.cumsum(kept)))
    starts = ends[table[field.FIRST_RECORD]]
    table[field.RECORDS] = ends[table[field.FIRST_RECORD] + table[field.RECORDS]] - starts
    table[field.FIRST_RECORD] = starts
    return np.ascontiguousarray(records[:, kept]), np.ascontiguousarray(messages[:, kept])


def _headers_room(records: Numbers) -> tuple[Numbers, Numbers]:
    header_start = np.zeros(records.shape[1] + 1, np.int64)
    np.cumsum(records[field.HEADER_COUNT], out=header_start[1:])
    return np.empty(
        (field.HEADER_FIELDS, _within_limit(records[field.HEADER_COUNT])), np.int64
    ), header_start


def _within_limit(counts: Numbers) -> int:
    total = int(counts.sum())
    if total > DECODED_ROWS:
        raise OverLimitError(f"{total} records or headers at once, over {DECODED_ROWS}")
    return total


def _with_headers(columns: Columns, entries: Numbers) -> Columns:
    if columns.headers.shape[1] == 0:
        return columns
    data, table, records = columns.data, columns.batches, columns.records
    starts, headers = columns.header_start, columns.headers
    _check(table, read_kafka_headers(data, table, records, starts, headers))
    _check(table, read_pulsar_headers(data, table, entries, records, starts, headers))
    read_iggy_headers(data, table, records, starts, headers)
    return columns


def _with_decoded_keys(columns: Columns, messages: Numbers) -> Columns:
    chosen = (messages[message_field.IN_BASE64] != 0) & (columns.records[field.KEY_SIZE] >= 0)
    if not chosen.any():
        return columns
    keys = np.empty(int(columns.records[field.KEY_SIZE][chosen].sum()), np.uint8)
    arena = Arena.behind(columns.data)
    base = arena.add(keys)
    starts, sizes = columns.records[field.KEY_START], columns.records[field.KEY_SIZE]
    decode_base64(columns.data, chosen, starts, sizes, base, keys)
    columns.data = columns.header_data = arena.join()
    return columns


def _add_iggy_ids(columns: Columns) -> Columns:
    """Add the id, which only Iggy has."""
    starts, sizes = np.empty((2, len(columns)), np.int64)
    ids = np.empty(len(columns) * ID_DIGITS, np.uint8)
    end = write_ids(columns.data, columns.batches, columns.records, starts, sizes, ids)
    if end == 0:
        return columns
    additions = Additions(columns)
    additions.add_text(reserved.IGGY_ID, ids[:end], starts, sizes)
    return additions.apply()
