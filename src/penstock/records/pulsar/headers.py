"""What Pulsar alone says about a message, as headers, and taken from them again."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.log.header import Magic
from penstock.records import field
from penstock.records.columns import Bytes, Columns, Mask, Numbers
from penstock.records.headers import reserved
from penstock.records.headers.additions import Additions
from penstock.records.headers.rewriting import Header, Rewriting, marked, read_headers, rows_of
from penstock.records.pulsar import entry_field, message_field
from penstock.records.pulsar.metadata_pb2 import MessageMetadata

_TRUE: Final = b"true"
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
    rows = rows_of(columns, marked(columns, reserved.PULSAR))
    if not rows:
        return columns, facts
    rewriting = Rewriting(columns)
    headers = {row: read_headers(columns, row) for row in rows}
    for batch in range(columns.batches.shape[1]):
        first = int(columns.batches[field.FIRST_RECORD, batch])
        members = range(first, first + int(columns.batches[field.RECORDS, batch]))
        taken = _take_of_messages(rewriting, facts, headers, members)
        if all(row in headers for row in members):
            taken |= _take_of_entry(columns, facts, batch, [headers[row] for row in members])
        for row in members:
            if row in headers:
                kept = [header for header in headers[row] if header.name not in taken]
                rewriting.set_headers(row, kept)
    return rewriting.apply(), facts


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


def _take_of_messages(
    rewriting: Rewriting, facts: PulsarFacts, headers: dict[int, list[Header]], members: range
) -> set[bytes]:
    for row in members:
        for header in headers.get(row, ()):
            if header.name == reserved.PULSAR_ORDERING_KEY:
                facts.ordering_starts[row], facts.ordering_sizes[row] = rewriting.add(
                    header.content or b""
                )
            elif header.name == reserved.PULSAR_NULL_KEY:
                facts.null_keys[row] = True
    return {reserved.PULSAR_ORDERING_KEY, reserved.PULSAR_NULL_KEY}


def _take_of_entry(
    columns: Columns, facts: PulsarFacts, batch: int, headers: list[list[Header]]
) -> set[bytes]:
    """Take over what holds once for all messages of an entry; returns the headers' names."""
    contents = [{header.name: header.content or b"" for header in each} for each in headers]
    producers = {each.get(reserved.PULSAR_PRODUCER) for each in contents}
    first = int(columns.batches[field.FIRST_RECORD, batch])
    published = {
        _number(each.get(reserved.PULSAR_PUBLISH_TIME)) or int(facts.event_times[row])
        for row, each in enumerate(contents, first)
    }
    producer = producers.pop() if len(producers) == 1 else None
    if producer is None or len(published) > 1:
        return set()
    facts.producers[batch] = producer
    facts.publish_times[batch] = published.pop()
    for row, each in enumerate(contents, first):
        sequence = _number(each.get(reserved.PULSAR_SEQUENCE))
        facts.sequences[row] = -1 if sequence is None else sequence
        if reserved.PULSAR_PUBLISH_TIME not in each:
            facts.event_times[row] = 0
    taken = {reserved.PULSAR_PRODUCER, reserved.PULSAR_SEQUENCE, reserved.PULSAR_PUBLISH_TIME}
    return taken | _take_metadata(facts, batch, contents)


def _take_metadata(
    facts: PulsarFacts, batch: int, contents: list[dict[bytes, bytes]]
) -> set[bytes]:
    texts = {each.get(reserved.PULSAR_METADATA) for each in contents}
    text = texts.pop() if len(texts) == 1 else None
    if text is None:
        return set()
    try:
        encoded = base64.b64decode(text, validate=True)
        metadata = MessageMetadata.FromString(encoded)
    except (ValueError, DecodeError):
        return set()
    # What was encrypted is shown as it is: it can't be an ordinary message again.
    if metadata.encryption_keys or metadata.HasField("producer_name"):
        return set()
    facts.metadata[batch] = encoded
    return {reserved.PULSAR_METADATA}


def _number(text: bytes | None) -> int | None:
    if text is None or not text.isdigit() or len(text) > 18:
        return None
    return int(text)
