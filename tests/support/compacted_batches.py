"""Logs of a few batches of any encoding, and what one pass of compaction leaves of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from penstock.log.header import BatchHeader, Magic, checksum_matches, walk
from penstock.records import decode
from penstock.records.compaction.aborted import Transactions
from penstock.records.compaction.choosing import Rules
from penstock.records.compaction.cleaning import Inflating, Pass, remember
from penstock.records.compaction.offset_map import OffsetMap
from penstock.records.pulsar.compression import compress_pulsar
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from stored_batches import (
    TIME,
    Record,
    at_offset,
    batched,
    entry,
    iggy_batch,
    iggy_body,
    kafka_batch,
    metadata,
    pulsar_batch,
)

NOW = TIME // 1000 + 10_000
DAY = 86_400_000
NOBODY = np.empty(0, np.int64)


class Found(NamedTuple):
    """What a reader finds at an offset."""

    offset: int
    key: bytes | None
    value: bytes | None
    time: int


def read(batches: bytes) -> list[Found]:
    columns = decode(batches)
    return [
        Found(
            int(columns.offsets[row]),
            columns.key(row),
            columns.value(row),
            int(columns.timestamps[row]),
        )
        for row in range(len(columns))
    ]


def compact(
    batches: bytes,
    *,
    now_ms: int = NOW,
    delete_retention_ms: int = DAY,
    keeps_keyless: bool = False,
    last_batches: Sequence[int] = (),
    aborted: Sequence[tuple[int, int, int]] = (),
    map_bytes: int = 1 << 16,
    chunks: int = 1,
) -> bytes:
    """Return what one pass leaves of a log, read in so many pieces."""
    offsets = OffsetMap(map_bytes)
    rows = np.array(aborted, np.int64).reshape(-1, 3).T
    transactions = partial(Transactions, lambda _start: (rows, sys.maxsize))
    remember(memoryview(batches), offsets, transactions(), Inflating())
    sequences = np.array(sorted(last_batches), np.int64)
    rules = Rules(now_ms, delete_retention_ms, keeps_keyless, sequences)
    cleaning = Pass(offsets, transactions(), rules, Inflating())
    starts = [position for position, _ in walk(batches)]
    cuts = [0, *starts[1 :: max(1, len(starts) // chunks)], len(batches)]
    pieces = [left for a, b in pairwise(cuts) for left in cleaning.clean(memoryview(batches)[a:b])]
    if (rest := cleaning.end()) is not None:
        pieces.append(rest)
    for piece in pieces:
        headers = list(walk(piece.data))
        latest = accumulate((header.max_timestamp for _, header in headers), max)
        assert [position for position, _ in headers] == list(piece.positions)
        assert [header.last_offset for _, header in headers] == list(piece.last_offsets)
        assert list(latest) == list(piece.latest)
    return b"".join(piece.data for piece in pieces)


def headers(batches: bytes) -> list[BatchHeader]:
    found = [header for _, header in walk(batches)]
    assert sum(header.size for header in found) == len(batches)
    return found


def check_stored(before: bytes, after: bytes) -> None:
    """Assert that it is a log still: checksums fit, and offsets follow on one another."""
    expected = headers(before)[0].base_offset
    for position, header in walk(after):
        assert checksum_matches(after[position : position + header.size])
        assert header.base_offset == expected
        expected = header.next_offset
    assert expected == headers(before)[-1].next_offset
    bounds = {(each.magic, each.base_offset, each.last_offset) for each in headers(before)}
    for header in headers(after):
        if header.record_count and header.magic != Magic.PULSAR:
            assert (header.magic, header.base_offset, header.last_offset) in bounds


def last_of_keys(records: list[Found]) -> list[Found]:
    """Return what a table of the keys would have, and what has no key."""
    last = {record.key: record.offset for record in records}
    return [each for each in records if each.key is None or last[each.key] == each.offset]


def log_of(*batches: tuple[bytes, int]) -> bytes:
    """Return batches of so many offsets each, one behind the other."""
    stored, offset = [], 0
    for batch, count in batches:
        stored.append(at_offset(batch, offset))
        offset += count
    return b"".join(stored)


def of_kafka(records: Sequence[Record], codec: int = 0) -> tuple[bytes, int]:
    return kafka_batch(records, codec=codec), len(records)


def of_pulsar(records: Sequence[Record], codec: int = 0) -> tuple[bytes, int]:
    messages = [
        (
            SingleMessageMetadata(
                payload_size=0,
                event_time=record.time // 1000,
                null_value=record.value is None,
                **({} if record.key is None else {"partition_key": record.key.decode("latin1")}),
            ),
            record.value or b"",
        )
        for record in records
    ]
    payload = batched(messages)
    fields = {"compression": codec, "uncompressed_size": len(payload)}
    said = metadata(num_messages_in_batch=len(records), **fields)
    body = entry(said, compress_pulsar(codec, memoryview(payload)))
    return pulsar_batch(body, count=len(records)), len(records)


def of_iggy(records: Sequence[Record]) -> tuple[bytes, int]:
    marked = [
        each._replace(value=b"-", headers=()) if each.value is None else each for each in records
    ]
    return iggy_batch(iggy_body(marked), count=len(records)), len(records)
