"""What Pulsar alone says about a message, as headers, and taken from them again."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.arena import header_arena
from penstock.records.columns import Bytes, Columns, Mask, Numbers
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.headers.selection import as_table, keep_headers, marked, rows_of
from penstock.records.kernels.arguments import (
    BytesIn,
    NumbersIn,
    NumbersOut,
    TableIn,
    TableOut,
    int64,
)
from penstock.records.kernels.declaring import helper, kernel
from penstock.records.kernels.primitives import same_spans
from penstock.records.kernels.text import read_decimal
from penstock.records.pulsar import entry_field, message_field
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

_TRUE: Final = b"true"
_NUMBER_DIGITS: Final = 18
_NAMES: Final = (
    reserved.PULSAR_PRODUCER,
    reserved.PULSAR_SEQUENCE,
    reserved.PULSAR_PUBLISH_TIME,
    reserved.PULSAR_METADATA,
    reserved.PULSAR_ORDERING_KEY,
    reserved.PULSAR_NULL_KEY,
)
_PRODUCER: Final = 0
_SEQUENCE: Final = 1
_PUBLISH_TIME: Final = 2
_METADATA: Final = 3
_ORDERING_KEY: Final = 4
_NULL_KEY: Final = 5
_CARRIED_ELSEWHERE: Final = (
    *("producer_name", "sequence_id", "publish_time", "properties", "partition_key"),
    *("compression", "uncompressed_size", "num_messages_in_batch", "event_time"),
    *("partition_key_b64_encoded", "ordering_key", "highest_sequence_id", "null_value"),
    *("null_partition_key", "num_chunks_from_msg", "uuid", "total_chunk_msg_size", "chunk_id"),
)
"""Fields of an entry's metadata that a record carries in another way."""


def add_pulsar_headers(columns: Columns, entries: Numbers, messages: Numbers) -> Columns:
    """Return the columns with a header for everything that only Pulsar knows."""
    batches = columns.batches
    entry = messages[message_field.ENTRY]
    chosen = np.repeat(batches[field.MAGIC] == Magic.PULSAR, batches[field.RECORDS])
    own = chosen & ~_converted(columns.data, entries)[entry]
    additions = Additions(columns)
    _add_producers(additions, entries, entry, own)
    sequences = messages[message_field.SEQUENCE_ID]
    additions.add_decimals(reserved.PULSAR_SEQUENCE, own & (sequences >= 0), sequences)
    published = own & (messages[message_field.HAS_EVENT_TIME] != 0)
    additions.add_decimals(
        reserved.PULSAR_PUBLISH_TIME, published, entries[entry_field.PUBLISHED][entry]
    )
    _add_ordering_keys(additions, messages, chosen)
    _add_constant(
        additions, reserved.PULSAR_NULL_KEY, chosen & (messages[message_field.KEY_IS_NULL] != 0)
    )
    _add_metadata(additions, entries, entry, own)
    return additions.apply()


def _converted(data: Bytes, entries: Numbers) -> Mask:
    """Return which entries were made here, for records that no Pulsar producer sent."""
    name = np.frombuffer(reserved.CONVERTED_PRODUCER, np.uint8)
    converted: Mask = entries[entry_field.PRODUCER_SIZE] == len(name)
    places = entries[entry_field.PRODUCER_START][converted][:, None] + np.arange(len(name))
    converted[converted] = (data[places] == name).all(axis=1)
    return converted


def _add_producers(additions: Additions, entries: Numbers, entry: Numbers, own: Mask) -> None:
    if own.any():
        sizes = entries[entry_field.PRODUCER_SIZE]
        starts = additions.arena.gather(
            additions.columns.data, entries[entry_field.PRODUCER_START], sizes
        )
        additions.add(reserved.PULSAR_PRODUCER, starts[entry], np.where(own, sizes[entry], -1))


def _add_ordering_keys(additions: Additions, messages: Numbers, chosen: Mask) -> None:
    sizes = np.where(chosen, messages[message_field.ORDERING_SIZE], -1)
    if (sizes >= 0).any():
        starts = additions.arena.gather(
            additions.columns.data, messages[message_field.ORDERING_START], sizes
        )
        additions.add(reserved.PULSAR_ORDERING_KEY, starts, sizes)


def _add_constant(additions: Additions, name: bytes, chosen: Mask) -> None:
    if chosen.any():
        starts = np.full(len(chosen), additions.arena.add_bytes(_TRUE))
        additions.add(name, starts, np.where(chosen, len(_TRUE), -1))


def _add_metadata(additions: Additions, entries: Numbers, entry: Numbers, own: Mask) -> None:
    """Add the rarer fields of an entry's metadata, as the protocol encodes them, in base64."""
    unusual = (entries[entry_field.OTHER_FIELDS] > 0) | (entries[entry_field.IS_ENCRYPTED] != 0)
    chosen = own & unusual[entry]
    if not chosen.any():
        return
    spans = np.full((2, entries.shape[1]), -1)
    for index in np.unique(entry[chosen]).tolist():
        metadata = additions.columns.data[
            entries[entry_field.METADATA_START, index] : entries[entry_field.METADATA_END, index]
        ]
        text = _unusual_fields(
            metadata.tobytes(), whole=bool(entries[entry_field.IS_ENCRYPTED, index])
        )
        if text:
            spans[:, index] = additions.arena.add_bytes(text), len(text)
    starts, sizes = spans[:, entry]
    sizes = np.where(chosen & (sizes > 0), sizes, -1)
    additions.add(reserved.PULSAR_METADATA, starts, sizes)


def _unusual_fields(encoded: bytes, *, whole: bool) -> bytes:
    try:
        metadata = MessageMetadata.FromString(encoded)
    except DecodeError:
        # Strings that are no UTF-8: Pulsar's clients could not read them either.
        return b""
    if not whole:
        for field in _CARRIED_ELSEWHERE:
            metadata.ClearField(field)
    return base64.b64encode(metadata.SerializePartialToString())


@dataclass(slots=True)
class PulsarFacts:
    """What an entry and its messages say beside the records' own columns.

    Of each batch the producer's name, its rarer metadata as encoded, and the publish time; of each
    record the event time in milliseconds (0: none), the sequence id and the ordering key, null
    being -1, and whether the key is null in the way of a key-value schema.
    """

    producers: list[bytes]
    metadata: list[bytes]
    publish_times: Numbers
    event_times: Numbers
    sequences: Numbers
    ordering_starts: Numbers
    ordering_sizes: Numbers
    null_keys: Mask


def take_pulsar_headers(columns: Columns) -> tuple[Columns, PulsarFacts]:
    """Return the columns without the headers that an entry can express, and what they contained.

    An entry has one producer and one publish time, so theirs are only taken where all records
    of the batch agree on them.
    """
    facts = _plain_facts(columns)
    chosen = np.flatnonzero(marked(columns, reserved.PULSAR))
    if len(chosen) == 0:
        return columns, facts
    columns.header_data = header_arena(columns).join()
    named, found = _find(columns, chosen)
    _take_of_messages(columns, facts, found)
    taken = _take_of_entries(columns, facts, found)
    batch_of = np.repeat(np.arange(taken.shape[1]), columns.batches[field.RECORDS])
    ours = named >= 0
    kept = np.ones(columns.headers.shape[1], np.bool_)
    kept[chosen[ours]] = ~taken[named[ours], batch_of[rows_of(columns, chosen[ours])]]
    return keep_headers(columns, kept), facts


def _plain_facts(columns: Columns) -> PulsarFacts:
    count, batches = len(columns), columns.batches.shape[1]
    times = columns.records[field.TIMESTAMP] // 1000
    filled = columns.batches[field.RECORDS] > 0
    publish_times = np.zeros(batches, np.int64)
    if count:
        firsts = columns.batches[field.FIRST_RECORD][filled]
        publish_times[filled] = np.maximum.reduceat(times, firsts)
    return PulsarFacts(
        producers=[reserved.CONVERTED_PRODUCER] * batches,
        metadata=[b""] * batches,
        publish_times=publish_times,
        event_times=times,
        sequences=np.full(count, -1),
        ordering_starts=np.zeros(count, np.int64),
        ordering_sizes=np.full(count, -1),
        null_keys=np.zeros(count, np.bool_),
    )


def _find(columns: Columns, chosen: Numbers) -> tuple[Numbers, Numbers]:
    """Return which of `_NAMES` each chosen header has, and by name and record its last header.

    -1 is none.
    """
    named = np.full(len(chosen), -1)
    found = np.full((len(_NAMES), len(columns)), -1)
    rows = rows_of(columns, chosen)
    find_names(columns.header_data, columns.headers, chosen, rows, *as_table(_NAMES), named, found)
    return named, found


def _take_of_messages(columns: Columns, facts: PulsarFacts, found: Numbers) -> None:
    ordering = found[_ORDERING_KEY]
    rows = np.flatnonzero(ordering >= 0)
    facts.ordering_starts[rows] = columns.headers[field.CONTENT_START, ordering[rows]]
    sizes = columns.headers[field.CONTENT_SIZE, ordering[rows]]
    facts.ordering_sizes[rows] = np.maximum(sizes, 0)
    facts.null_keys |= found[_NULL_KEY] >= 0


def _take_of_entries(columns: Columns, facts: PulsarFacts, found: Numbers) -> Mask:
    """Take over what holds once for all messages of an entry; returns by name whose was taken."""
    taken = np.zeros((len(_NAMES), columns.batches.shape[1]), np.bool_)
    taken[[_ORDERING_KEY, _NULL_KEY]] = True
    producers, metadata = np.full((2, columns.batches.shape[1]), -1)
    take_entries(
        *(columns.header_data, columns.headers, columns.batches, found, producers, metadata),
        *(facts.publish_times, facts.event_times, facts.sequences),
    )
    for batch in np.flatnonzero(producers >= 0).tolist():
        facts.producers[batch] = columns.content(int(producers[batch])) or b""
        taken[[_PRODUCER, _SEQUENCE, _PUBLISH_TIME], batch] = True
        if metadata[batch] >= 0:
            text = columns.content(int(metadata[batch])) or b""
            taken[_METADATA, batch] = _take_metadata(facts, batch, text)
    return taken


def _take_metadata(facts: PulsarFacts, batch: int, text: bytes) -> bool:
    try:
        encoded = base64.b64decode(text, validate=True)
        metadata = MessageMetadata.FromString(encoded)
    except (ValueError, DecodeError):
        return False
    # What was encrypted is shown as it is: it can't be an ordinary message again.
    if metadata.encryption_keys or metadata.HasField("producer_name"):
        return False
    facts.metadata[batch] = encoded
    return True


@kernel
def find_names(
    data: BytesIn, headers: TableIn, chosen: NumbersIn, rows: NumbersIn, names: BytesIn,
    ends: NumbersIn, named: NumbersOut, found: TableOut,
) -> None:  # fmt: skip
    """Find the chosen headers whose name is one of those; see `_find`."""
    for each in range(len(chosen)):
        start = headers[field.NAME_START, chosen[each]]
        size = headers[field.NAME_SIZE, chosen[each]]
        first = int64(0)
        for name in range(len(ends)):
            if size == ends[name] - first and same_spans(data, start, names, first, size):
                named[each] = name
                found[name, rows[each]] = chosen[each]
            first = ends[name]


@helper
def _number(data: BytesIn, headers: TableIn, header: int) -> int:
    """Return the number that a header is, or -1 where it is none or there is no header."""
    if header < 0:
        return int64(-1)
    size = headers[field.CONTENT_SIZE, header]
    return read_decimal(data, headers[field.CONTENT_START, header], size, _NUMBER_DIGITS)


@helper
def _same_content(data: BytesIn, headers: TableIn, one: int, other: int) -> bool:
    size = max(headers[field.CONTENT_SIZE, one], 0)
    return size == max(headers[field.CONTENT_SIZE, other], 0) and same_spans(
        data,
        headers[field.CONTENT_START, one],
        data,
        headers[field.CONTENT_START, other],
        size,
    )


@helper
def _published(data: BytesIn, headers: TableIn, found: TableIn, row: int, event_time: int) -> int:
    published = _number(data, headers, found[_PUBLISH_TIME, row])
    return published if published > 0 else event_time


@helper
def _agree(
    data: BytesIn, headers: TableIn, found: TableIn, name: int, first: int, last: int
) -> bool:
    """Whether all these records have this header, with the same value."""
    for row in range(first, last):
        if found[name, row] < 0 or not _same_content(
            data, headers, found[name, first], found[name, row]
        ):
            return False
    return True


@kernel
def take_entries(
    data: BytesIn, headers: TableIn, batches: TableIn, found: TableIn, producers: NumbersOut,
    metadata: NumbersOut, publish_times: NumbersOut, event_times: NumbersOut,
    sequences: NumbersOut,
) -> None:  # fmt: skip
    """Take times and sequence ids from the batches that can be an entry of one producer.

    Those have the header that says it in `producers`, and in `metadata` that of the rarer fields
    where all records agree on it.
    """
    for batch in range(batches.shape[1]):
        first = batches[field.FIRST_RECORD, batch]
        last = first + batches[field.RECORDS, batch]
        if first == last or not _agree(data, headers, found, _PRODUCER, first, last):
            continue
        published = _published(data, headers, found, first, event_times[first])
        same = True
        for row in range(first + 1, last):
            same = same and published == _published(data, headers, found, row, event_times[row])
        if not same:
            continue
        producers[batch] = found[_PRODUCER, first]
        publish_times[batch] = published
        for row in range(first, last):
            sequences[row] = _number(data, headers, found[_SEQUENCE, row])
            if found[_PUBLISH_TIME, row] < 0:
                event_times[row] = 0
        if _agree(data, headers, found, _METADATA, first, last):
            metadata[batch] = found[_METADATA, first]
