"""Pulsar's entries, read into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.log.header import Magic
from penstock.records import field, header_kinds
from penstock.records.arena import Arena
from penstock.records.batch_headers import check_read, malformed
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.kernels.arguments import BytesIn, NumbersIn, TableIn, TableOut, int64
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import MALFORMED, load_big
from penstock.records.kernels.protobuf import WIRE_BYTES, WIRE_VARINT, next_field
from penstock.records.kernels.text import decode_base64
from penstock.records.kernels.times import microseconds
from penstock.records.pulsar import entry_field, message_field, metadata
from penstock.records.pulsar.compression import inflate_pulsar
from penstock.records.pulsar.entry import CHECKSUM_MAGIC, CHECKSUM_SIZE, SMALLEST_MESSAGE
from penstock.records.pulsar.headers import add_pulsar_headers
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata

if TYPE_CHECKING:
    from penstock.records.columns import Bytes, Columns, Numbers
    from penstock.records.inflation import Inflation

_OF_PAYLOAD: Final = [
    *(entry_field.CODEC, entry_field.PAYLOAD_START),
    *(entry_field.PAYLOAD_END, entry_field.INFLATED_SIZE),
]

_KEY: Final = SingleMessageMetadata.PARTITION_KEY_FIELD_NUMBER << 3 | WIRE_BYTES
_PAYLOAD_SIZE: Final = SingleMessageMetadata.PAYLOAD_SIZE_FIELD_NUMBER << 3 | WIRE_VARINT
_EVENT_TIME: Final = SingleMessageMetadata.EVENT_TIME_FIELD_NUMBER << 3 | WIRE_VARINT
_ORDERING_KEY: Final = SingleMessageMetadata.ORDERING_KEY_FIELD_NUMBER << 3 | WIRE_BYTES
_SEQUENCE: Final = SingleMessageMetadata.SEQUENCE_ID_FIELD_NUMBER << 3 | WIRE_VARINT

# A bit for each number that a message says, whether it is other than 0.
_COMPACTED_OUT: Final = 1 << SingleMessageMetadata.COMPACTED_OUT_FIELD_NUMBER
_KEY_IS_BASE64: Final = 1 << SingleMessageMetadata.PARTITION_KEY_B64_ENCODED_FIELD_NUMBER
_NULL_VALUE: Final = 1 << SingleMessageMetadata.NULL_VALUE_FIELD_NUMBER
_NULL_KEY: Final = 1 << SingleMessageMetadata.NULL_PARTITION_KEY_FIELD_NUMBER
_HIGHEST_FLAG: Final = SingleMessageMetadata.NULL_PARTITION_KEY_FIELD_NUMBER

DROPPED: Final = -1
"""The offset of a message that is compacted out."""


class PulsarDecoder:
    """See `penstock.records.decoding.Decoder`."""

    magic: Final = Magic.PULSAR

    def __init__(self, data: Bytes, batches: Numbers) -> None:
        self._batches = batches
        self._entries = np.zeros((entry_field.FIELDS, batches.shape[1]), np.int64)
        self._messages = np.zeros((message_field.FIELDS, 0), np.int64)
        self._fields = np.empty((metadata.FIELDS, 2), np.int64)
        check_read(batches, read_entries(data, batches, self._entries, self._fields))

    def inflate(self, inflation: Inflation) -> None:
        entries, batches = self._entries, self._batches
        is_compressed = (entries[entry_field.CODEC] != 0) & (batches[field.RECORDS] > 0)
        chosen = np.flatnonzero(is_compressed)
        if not len(chosen):
            return
        data, places = inflation.data.data, []
        said = entries[_OF_PAYLOAD][:, chosen].T.tolist()
        for batch, (codec, start, end, size) in zip(chosen.tolist(), said, strict=True):
            try:
                inflated = inflate_pulsar(codec, data[start:end], size, inflation.left)
            except OverLimitError:
                raise  # Which says something else of the batch than that it is malformed.
            except MalformedBatchError as error:
                raise malformed(batches, batch, str(error)) from error
            places.append(inflation.add(inflated))
        found = np.array(places)
        entries[entry_field.PAYLOAD_START, chosen] = found[:, 0]
        entries[entry_field.PAYLOAD_END, chosen] = found[:, 1]

    def room(self) -> Numbers:
        entries = self._entries
        sizes = entries[entry_field.PAYLOAD_END] - entries[entry_field.PAYLOAD_START]
        return np.where(entries[entry_field.IS_BATCH] != 0, sizes // SMALLEST_MESSAGE, 1)

    def read_records(self, data: Bytes, records: Numbers, *, headers: bool) -> Numbers:
        fields = message_field.FIELDS if headers else message_field.FIELDS_OF_KEYS
        self._messages = np.zeros((fields, records.shape[1]), np.int64)
        tables = (self._batches, self._entries, records, self._messages, self._fields)
        check_read(self._batches, read_pulsar_records(data, *tables))
        return self._without_dropped(records)

    def read_headers(self, columns: Columns) -> None:
        tables = (columns.records, columns.header_start, columns.headers)
        unreadable = read_pulsar_headers(columns.data, columns.batches, self._entries, *tables)
        check_read(columns.batches, unreadable)

    def complete(self, columns: Columns, *, headers: bool) -> Columns:
        """Decode the keys, and add what only Pulsar's metadata says."""
        self._decode_keys(columns)
        return add_pulsar_headers(columns, self._entries, self._messages) if headers else columns

    def _without_dropped(self, records: Numbers) -> Numbers:
        """Take out the messages that are compacted out; their offsets become a gap."""
        batches = self._batches
        kept = records[field.OFFSET] != DROPPED
        if kept.all():
            return records
        # Rows of others are not filled in yet, and may say anything.
        kept |= np.repeat(batches[field.MAGIC] != self.magic, batches[field.RECORDS])
        if kept.all():
            return records
        ends = np.concatenate(([0], np.cumsum(kept)))
        starts = ends[batches[field.FIRST_RECORD]]
        after = batches[field.FIRST_RECORD] + batches[field.RECORDS]
        batches[field.RECORDS] = ends[after] - starts
        batches[field.FIRST_RECORD] = starts
        self._messages = np.ascontiguousarray(self._messages[:, kept])
        return np.ascontiguousarray(records[:, kept])

    def _decode_keys(self, columns: Columns) -> None:
        """Replace keys that are said to be base64 by their bytes, kept behind the others."""
        starts, sizes = columns.records[field.KEY_START], columns.records[field.KEY_SIZE]
        chosen = (self._messages[message_field.IN_BASE64] != 0) & (sizes >= 0)
        if not chosen.any():
            return
        keys = np.empty(int(sizes[chosen].sum()), np.uint8)
        arena = Arena.behind(columns.data)
        base = arena.add(keys)
        decode_base64(columns.data, chosen, starts, sizes, base, keys)
        columns.data = columns.header_data = arena.join()


def read_entries_of(data: Bytes, batches: Numbers) -> Numbers:
    """Return the table of entries of a run that was decoded, in which those of others are 0."""
    entries = np.zeros((entry_field.FIELDS, batches.shape[1]), np.int64)
    fields = np.empty((metadata.FIELDS, 2), np.int64)
    read_entries(data, batches.copy(), entries, fields)
    return entries


@helper
def _read_entry(
    data: BytesIn, start: int, end: int, fields: TableOut, entries: TableOut, batch: int
) -> bool:
    """Find metadata and payload of one entry and read the metadata."""
    if end - start >= CHECKSUM_SIZE and load_big(data, start, 2) == CHECKSUM_MAGIC:
        start += CHECKSUM_SIZE
    if end - start < 4:
        return False
    size = load_big(data, start, 4)
    start += 4
    if size > end - start or not metadata.read_fields(
        data, start, start + size, metadata.OF_ENTRY, fields
    ):
        return False
    if (
        fields[metadata.PRODUCER, 1] < 0
        or fields[metadata.SEQUENCE, 1] < 0
        or fields[metadata.PUBLISH_TIME, 1] < 0
    ):
        return False
    entries[entry_field.METADATA_START, batch] = start
    entries[entry_field.METADATA_END, batch] = start + size
    entries[entry_field.PAYLOAD_START, batch] = start + size
    entries[entry_field.PAYLOAD_END, batch] = end
    return True


@kernel
def read_entries(data: BytesIn, batches: TableOut, entries: TableOut, fields: TableOut) -> int:
    """Fill the entry of every Pulsar batch; returns the index of a malformed batch, or -1.

    The number of its records becomes that of its messages, those that are compacted out among them;
    0 for a marker and for a chunk of a larger message, and 1 for what is encrypted and can't be
    looked into. `fields` has room for those of one message.
    """
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.PULSAR or batches[field.COUNT, batch] == 0:
            continue
        start = batches[field.BODY_START, batch]
        if not _read_entry(data, start, batches[field.BODY_END, batch], fields, entries, batch):
            return batch
        entries[entry_field.CODEC, batch] = fields[metadata.COMPRESSION, 0]
        entries[entry_field.INFLATED_SIZE, batch] = (
            fields[metadata.UNCOMPRESSED_SIZE, 0] & 0xFFFFFFFF
        )
        entries[entry_field.IS_BATCH, batch] = fields[metadata.MESSAGES, 1] >= 0
        entries[entry_field.IS_ENCRYPTED, batch] = fields[metadata.ENCRYPTION_KEYS, 1] >= 0
        entries[entry_field.PUBLISHED, batch] = fields[metadata.PUBLISH_TIME, 0]
        entries[entry_field.PRODUCER_START, batch] = fields[metadata.PRODUCER, 0]
        entries[entry_field.PRODUCER_SIZE, batch] = fields[metadata.PRODUCER, 1]
        entries[entry_field.OTHER_FIELDS, batch] = fields[metadata.OTHER, 0]
        messages = fields[metadata.MESSAGES, 0] if fields[metadata.MESSAGES, 1] >= 0 else int64(1)
        if messages != batches[field.LAST_DELTA, batch] + 1:
            return batch
        batches[field.RECORDS, batch] = messages
        if fields[metadata.MARKER, 1] >= 0 or fields[metadata.CHUNKS, 0] > 1:
            batches[field.RECORDS, batch] = 0
        elif entries[entry_field.IS_ENCRYPTED, batch]:
            entries[entry_field.CODEC, batch] = 0
            entries[entry_field.IS_BATCH, batch] = 0
            batches[field.RECORDS, batch] = 1
    return -1


@helper
def _read_said(data: BytesIn, position: int, end: int) -> tuple[int, ...]:
    """Read the metadata of one message of a batch: what `_fill` takes, the payload's size and
    whether the message is compacted out.

    As protobuf has it, the last of several counts. The payload's size is -1 where there is none, or
    the bytes are malformed.
    """
    key_start = ordering_start = event_time = properties = int64(0)
    flags = int64(0)
    key_size = ordering_size = sequence = payload = int64(-1)
    while position < end:
        number, wire_type, value, size, position = next_field(data, position, end)
        if position == MALFORMED:
            payload = int64(-1)
            break
        tag = number << 3 | wire_type
        if tag == _KEY:
            key_start, key_size = value, size
        elif tag == _PAYLOAD_SIZE:
            payload = value
        elif tag == _SEQUENCE:
            sequence = value
        elif tag == _EVENT_TIME:
            event_time = value
        elif number == metadata.PROPERTIES_OF_BATCHED:
            properties += 1
        elif tag == _ORDERING_KEY:
            ordering_start, ordering_size = value, size
        elif wire_type == WIRE_VARINT and number <= _HIGHEST_FLAG:
            flags = (flags & ~(1 << number)) | (int64(value != 0) << number)
    is_base64, is_null_key = flags & _KEY_IS_BASE64, flags & _NULL_KEY
    said = (event_time, sequence, key_start, key_size, is_base64, is_null_key)
    rest = (ordering_start, ordering_size, properties, flags & _NULL_VALUE)
    return (*said, *rest, payload, flags & _COMPACTED_OUT)


@helper
def _said_of_entry(fields: TableIn) -> tuple[int, ...]:
    """Return the same of the metadata of an entry, whose message is all there is."""
    sequence = fields[metadata.SEQUENCE, 0]
    key_start, key_size = fields[metadata.PARTITION_KEY, 0], fields[metadata.PARTITION_KEY, 1]
    is_base64, is_null_key = fields[metadata.KEY_IS_BASE64, 0], fields[metadata.NULL_KEY, 0]
    start, size = fields[metadata.ORDERING_KEY, 0], fields[metadata.ORDERING_KEY, 1]
    properties, is_null = fields[metadata.PROPERTIES, 0], fields[metadata.NULL_VALUE, 0]
    said = (fields[metadata.EVENT_TIME, 0], sequence, key_start, key_size, is_base64, is_null_key)
    return (*said, start, size, properties, is_null, int64(0), int64(0))


@helper
def _fill(
    said: tuple[int, ...], published: int, records: TableOut, messages: TableOut, row: int
) -> None:
    """Write what both kinds of metadata say about a message."""
    event_time, sequence, key_start, key_size, is_base64, is_null_key = said[:6]
    ordering_start, ordering_size, properties, is_null = said[6:10]
    messages[message_field.IN_BASE64, row] = is_base64 != 0 and key_size >= 0
    if messages.shape[0] > message_field.FIELDS_OF_KEYS:
        messages[message_field.HAS_EVENT_TIME, row] = event_time != 0
        messages[message_field.SEQUENCE_ID, row] = sequence
        messages[message_field.ORDERING_START, row] = ordering_start
        messages[message_field.ORDERING_SIZE, row] = ordering_size
        messages[message_field.KEY_IS_NULL, row] = is_null_key != 0
    records[field.TIMESTAMP, row] = microseconds(event_time if event_time != 0 else published)
    records[field.KEY_START, row] = key_start
    records[field.KEY_SIZE, row] = int64(-1) if is_null_key != 0 else key_size
    records[field.HEADER_COUNT, row] = properties
    if is_null != 0:
        records[field.VALUE_SIZE, row] = -1


@helper
def _read_batched(
    data: BytesIn, position: int, end: int, published: int, records: TableOut, messages: TableOut,
    row: int,
) -> int:  # fmt: skip
    """Read one message of a batch; returns the position behind it, or MALFORMED."""
    if end - position < 4:
        return int64(MALFORMED)
    size = load_big(data, position, 4)
    position += 4
    if size > end - position:
        return int64(MALFORMED)
    said = _read_said(data, position, position + size)
    payload, is_dropped = said[10], said[11]
    records[field.BLOCK_START, row] = position
    records[field.BLOCK_END, row] = position + size
    position += size
    if payload < 0 or payload > end - position:
        return int64(MALFORMED)
    records[field.VALUE_START, row] = position
    records[field.VALUE_SIZE, row] = payload
    _fill(said, published, records, messages, row)
    if is_dropped != 0:
        records[field.OFFSET, row] = DROPPED
    return position + payload


@helper
def _read_single(
    data: BytesIn,
    entries: TableIn,
    batch: int,
    fields: TableOut,
    records: TableOut,
    messages: TableOut,
    row: int,
) -> None:
    """Read the message of an entry that is no batch; its metadata has been checked."""
    start = entries[entry_field.METADATA_START, batch]
    end = entries[entry_field.METADATA_END, batch]
    metadata.read_fields(data, start, end, metadata.OF_ENTRY, fields)
    records[field.BLOCK_START, row] = start
    records[field.BLOCK_END, row] = end
    records[field.VALUE_START, row] = entries[entry_field.PAYLOAD_START, batch]
    records[field.VALUE_SIZE, row] = (
        entries[entry_field.PAYLOAD_END, batch] - entries[entry_field.PAYLOAD_START, batch]
    )
    published = entries[entry_field.PUBLISHED, batch]
    _fill(_said_of_entry(fields), published, records, messages, row)


@kernel
def read_pulsar_records(
    data: BytesIn,
    batches: TableIn,
    entries: TableIn,
    records: TableOut,
    messages: TableOut,
    fields: TableOut,
) -> int:
    """Fill the records of every Pulsar entry; returns the index of a malformed batch, or -1.

    `fields` has room for those of one message.
    """
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.PULSAR or batches[field.RECORDS, batch] == 0:
            continue
        first = batches[field.FIRST_RECORD, batch]
        for index in range(batches[field.RECORDS, batch]):
            records[field.OFFSET, first + index] = batches[field.BASE_OFFSET, batch] + index
            if messages.shape[0] > message_field.FIELDS_OF_KEYS:
                messages[message_field.ENTRY, first + index] = batch
        if entries[entry_field.IS_BATCH, batch] == 0:
            _read_single(data, entries, batch, fields, records, messages, first)
            continue
        position = entries[entry_field.PAYLOAD_START, batch]
        end = entries[entry_field.PAYLOAD_END, batch]
        published = entries[entry_field.PUBLISHED, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            position = _read_batched(data, position, end, published, records, messages, row)
            if position == MALFORMED:
                return batch
        if position != end:
            return batch
    return -1


@helper
def _read_property(data: BytesIn, position: int, end: int, headers: TableOut, header: int) -> bool:
    """Read a KeyValue, both of whose fields are required."""
    headers[field.NAME_SIZE, header] = -1
    headers[field.CONTENT_SIZE, header] = -1
    while position < end:
        number, wire_type, value, size, position = next_field(data, position, end)
        if position == MALFORMED or wire_type != WIRE_BYTES:
            return False
        if number == 1:
            headers[field.NAME_START, header] = value
            headers[field.NAME_SIZE, header] = size
        elif number == 2:
            headers[field.CONTENT_START, header] = value
            headers[field.CONTENT_SIZE, header] = size
    headers[field.KINDS, header] = header_kinds.OF_TEXT
    return headers[field.NAME_SIZE, header] >= 0 and headers[field.CONTENT_SIZE, header] >= 0


@kernel
def read_pulsar_headers(
    data: BytesIn,
    batches: TableIn,
    entries: TableIn,
    records: TableIn,
    header_start: NumbersIn,
    headers: TableOut,
) -> int:
    """Fill the properties of every message; returns the index of a malformed batch, or -1."""
    for batch in range(batches.shape[1]):
        if batches[field.MAGIC, batch] != Magic.PULSAR:
            continue
        wanted = metadata.PROPERTIES_OF_ENTRY
        if entries[entry_field.IS_BATCH, batch]:
            wanted = metadata.PROPERTIES_OF_BATCHED
        first = batches[field.FIRST_RECORD, batch]
        for row in range(first, first + batches[field.RECORDS, batch]):
            header = header_start[row]
            position = records[field.BLOCK_START, row]
            end = records[field.BLOCK_END, row]
            while position < end and header < header_start[row + 1]:
                number, _, start, size, position = next_field(data, position, end)
                if number != wanted:
                    continue
                if not _read_property(data, start, start + size, headers, header):
                    return batch
                header += 1
    return -1
