"""A compacted log has the last value of each key, at its offset and in its order."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.limits import COMPRESSED_RUN_BYTES
from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    BatchHeader,
    Magic,
    build_header,
    checksum_matches,
    read_header,
    rebuilt_header,
    walk,
)
from penstock.records import MalformedBatchError, decode
from penstock.records.compaction.aborted import Transactions
from penstock.records.compaction.choosing import Rules
from penstock.records.compaction.cleaning import Pass, remember
from penstock.records.compaction.offset_map import OffsetMap
from penstock.records.iggy.batch import verify_iggy_batch
from penstock.records.pulsar.compression import compress_pulsar
from penstock.records.pulsar.entry import numbered_message, parse_entry, read_entry
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from stored_batches import (
    TIME,
    Record,
    at_offset,
    batched,
    chunk_batch,
    entry,
    iggy_batch,
    iggy_body,
    kafka_batch,
    metadata,
    pulsar_batch,
    singles,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    remember(memoryview(batches), offsets, Transactions(aborted))
    sequences = np.array(sorted(last_batches), np.int64)
    rules = Rules(now_ms, delete_retention_ms, keeps_keyless, sequences)
    cleaning = Pass(offsets, Transactions(aborted), rules)
    starts = [position for position, _ in walk(batches)]
    cuts = [0, *starts[1 :: max(1, len(starts) // chunks)], len(batches)]
    pieces = [cleaning.clean(memoryview(batches)[a:b]) for a, b in pairwise(cuts)]
    pieces.append(cleaning.end())
    for piece in filter(None, pieces):
        headers = list(walk(piece.data))
        assert [position for position, _ in headers] == piece.positions
        assert [header.last_offset for _, header in headers] == piece.last_offsets
        assert [header.max_timestamp for _, header in headers] == piece.timestamps
    return b"".join(piece.data for piece in pieces if piece is not None)


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


values = st.none() | st.binary(min_size=1, max_size=40)
names = st.sampled_from([b"a", b"b", b"c", b"key-%d" % 7, b"d" * 30])
keys = st.none() | names
times = st.integers(TIME // 1000, TIME // 1000 + 1_000).map(lambda time: time * 1000)
records = st.lists(
    st.builds(Record, value=values, key=keys, headers=st.just(()), time=times),
    min_size=1,
    max_size=6,
)
keyed = st.lists(
    st.builds(Record, value=values, key=names, headers=st.just(()), time=times),
    min_size=1,
    max_size=6,
)
batches_of_all = st.one_of(
    st.builds(of_kafka, keyed, st.sampled_from([0, 1, 2, 3, 4])),
    st.builds(of_pulsar, records, st.sampled_from([0, 1, 2, 3, 4])),
    st.builds(of_iggy, records),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(batches_of_all, min_size=1, max_size=12), st.integers(1, 4), st.data())
def test_what_is_left_is_the_last_of_each_key(
    batches: list[tuple[bytes, int]], chunks: int, data: st.DataObject
) -> None:
    log = log_of(*batches)
    left = compact(log, chunks=chunks)
    check_stored(log, left)
    assert read(left) == last_of_keys(read(log))
    assert compact(left, chunks=chunks) == left
    # Tombstones go when their time is over, and nothing else.
    later = compact(left, now_ms=NOW + DAY, chunks=chunks)
    check_stored(log, later)
    kept = {record.offset for record in read(left)} - {record.offset for record in read(later)}
    tombstones = {each.offset for each in read(left) if each.key and not each.value}
    assert kept == tombstones
    last = data.draw(st.sampled_from(headers(log))).base_offset
    with_sequence = compact(log, last_batches=[last])
    check_stored(log, with_sequence)
    assert read(with_sequence) == read(left)
    assert last in [header.base_offset for header in headers(with_sequence)]


@settings(max_examples=40, deadline=None)
@given(st.lists(batches_of_all, min_size=2, max_size=12))
def test_a_map_that_is_too_small_takes_several_passes(batches: list[tuple[bytes, int]]) -> None:
    log = log_of(*batches)
    offsets, start, passes = OffsetMap(0), 0, 0
    left = log
    while start is not None:
        offsets.clear()
        dirty = memoryview(left)[
            next(position for position, each in walk(left) if each.next_offset > start) :
        ]
        stopped = remember(dirty, offsets, Transactions())
        cleaning = Pass(offsets, Transactions(), Rules(NOW, DAY, False, NOBODY))
        parts = [cleaning.clean(memoryview(left)), cleaning.end()]
        left = b"".join(part.data for part in parts if part is not None)
        assert stopped is None or stopped > start
        start, passes = stopped, passes + 1
    assert passes <= len(batches)
    assert read(left) == last_of_keys(read(log))


def test_a_gap_takes_the_place_of_all_that_go() -> None:
    old = [of_kafka([Record(b"old", b"a")]) for _ in range(50)]
    log = log_of(*old, of_pulsar([Record(b"old", b"a")]), of_kafka([Record(b"new", b"a")]))
    left = compact(log, chunks=7)
    gap, last = headers(left)
    assert (gap.base_offset, gap.last_offset, gap.record_count) == (0, 50, 0)
    assert (gap.magic, gap.length, gap.producer_id) == (Magic.KAFKA, 49, -1)
    assert last.base_offset == 51
    again = log_of(*old[:3]) + left[:HEADER_SIZE]
    assert headers(again)[-1] == gap


def test_gaps_do_not_mix_leader_epochs() -> None:
    log = bytearray(log_of(*[of_kafka([Record(b"v", b"a")])] * 4))
    for number, (position, _) in enumerate(walk(bytes(log))):
        log[position + 12 : position + 16] = (number // 2).to_bytes(4, "big")
    left = compact(bytes(log))
    assert [(h.base_offset, h.leader_epoch) for h in headers(left)] == [(0, 0), (2, 1), (3, 1)]


def test_a_producers_last_batch_leaves_its_sequence() -> None:
    batch = bytearray(kafka_batch([Record(b"1", b"a"), Record(b"2", b"a")]))
    header = build_header(
        Magic.KAFKA,
        batch[HEADER_SIZE:],
        record_count=2,
        base_timestamp=1,
        max_timestamp=1,
        attributes=16,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
    )
    log = log_of((header + batch[HEADER_SIZE:], 2), of_kafka([Record(b"3", b"a")]))
    emptied = headers(compact(log, last_batches=[0]))[0]
    assert emptied.record_count == emptied.attributes == 0
    assert (emptied.producer_id, emptied.producer_epoch, emptied.base_sequence) == (7, 3, 11)
    assert emptied.last_offset_delta == 1
    assert headers(compact(log))[0].producer_id == -1


def test_a_delete_horizon_keeps_the_times_of_records() -> None:
    mixed = [Record(b"old", b"a"), Record(None, b"b", time=TIME + 5_000), Record(b"v", b"c")]
    log = log_of(of_kafka(mixed), of_kafka([Record(b"new", b"a")]))
    left = compact(log, delete_retention_ms=500)
    first = headers(left)[0]
    assert first.attributes & ATTRIBUTE_DELETE_HORIZON
    assert first.base_timestamp == NOW + 500
    assert first.max_timestamp == TIME // 1000 + 5
    assert read(left) == read(log)[1:]
    assert read(compact(left, now_ms=NOW + 499)) == read(left)
    assert [each.key for each in read(compact(left, now_ms=NOW + 500))] == [b"c", b"a"]


def test_the_latest_time_is_that_of_what_is_left() -> None:
    first = [Record(b"old", b"a", time=TIME + 9_000), Record(b"v", b"b", time=TIME + 1_000)]
    log = log_of(of_kafka(first), of_kafka([Record(b"new", b"a")]))
    assert headers(compact(log))[0].max_timestamp == TIME // 1000 + 1


def test_kafkas_records_without_a_key_go_and_others_stay() -> None:
    nameless = [Record(b"1"), Record(b"2", b"a")]
    log = log_of(of_kafka(nameless), of_pulsar(nameless), of_iggy(nameless))
    assert [(each.offset, each.key) for each in read(compact(log))] == [
        *((2, None), (4, None), (5, b"a"))
    ]
    left = read(compact(log, keeps_keyless=True))
    assert [each.offset for each in left] == [0, 2, 4, 5]


def test_entries_of_pulsar_stay_sound() -> None:
    batch = [Record(b"1", b"a"), Record(b"2", b"b"), Record(b"3", b"c")]
    for codec in range(5):
        log = log_of(of_pulsar(batch, codec), of_pulsar([Record(b"4", b"b")], codec))
        left = compact(log)
        found = [
            (header, read_entry(memoryview(left)[position + HEADER_SIZE : position + header.size]))
            for position, header in walk(left)
            if header.record_count
        ]
        assert [header.base_offset for header, _ in found] == [0, 2, 3]
        for header, each in found:
            assert header.record_count == each.message_count == header.last_offset_delta + 1 == 1
        # A run this short gains nothing from compression; an entry that stays whole keeps its own.
        assert [each.metadata.compression for _, each in found] == [0, 0, codec]
        numbered = [
            numbered_message(memoryview(left)[position + HEADER_SIZE : position + header.size])
            for position, header in walk(left)
            if header.record_count
        ]
        assert numbered == [("maker", 7), ("maker", 7), ("maker", 5)]
        if codec == 0:
            assert [singles(bytes(each.payload))[0][1] for _, each in found] == [b"1", b"3", b"4"]


def test_a_long_run_stays_compressed() -> None:
    long = b"12345678" * COMPRESSED_RUN_BYTES
    for codec in range(5):
        batch = [Record(long, b"a"), Record(b"2", b"b"), Record(long, b"c"), Record(long, b"d")]
        batch_and_new = log_of(of_pulsar(batch, codec), of_pulsar([Record(b"4", b"b")], codec))
        left = compact(batch_and_new)
        check_stored(batch_and_new, left)
        assert [each.value for each in read(left)] == [long, long, long, b"4"]
        for position, header in walk(left):
            if header.record_count and header.magic == Magic.PULSAR:
                stored = memoryview(left)[position + HEADER_SIZE : position + header.size]
                assert read_entry(stored).metadata.compression == codec


def test_a_run_says_what_its_entry_said() -> None:
    """Fields that nobody knows too, and the highest sequence number where the producer gave one."""
    messages = [
        (SingleMessageMetadata(payload_size=0, partition_key=key, null_value=key == "b"), b"12")
        for key in "abcd"
    ]
    said = metadata(
        num_messages_in_batch=4, sequence_id=9, highest_sequence_id=30, replicated_from="there"
    )
    said.properties.add(key="k", value="v" * 300)
    body = entry(said, batched(messages))
    log = log_of(
        (pulsar_batch(body, count=4), 4),
        *(of_kafka([Record(b"new", b"a")]), of_kafka([Record(b"new", b"c")])),
    )
    left = compact(log)
    check_stored(log, left)
    found = [
        read_entry(memoryview(left)[position + HEADER_SIZE : position + header.size])
        for position, header in walk(left)
        if header.magic == Magic.PULSAR
    ]
    assert [singles(bytes(each.payload))[0][0].partition_key for each in found] == ["b", "d"]
    for each in found:
        size = len(each.payload)
        expected = {"num_messages_in_batch": 1, "uncompressed_size": size}
        for name, value in expected.items():
            setattr(said, name, value)
        assert each.metadata == said


def test_each_run_of_an_entrys_messages_has_its_own_time() -> None:
    batch = [
        Record(b"v", key, time=TIME + 1_000 * late)
        for key, late in [(b"a", 5), (b"b", 2), (b"c", 9), (b"d", 1), (b"e", 3)]
    ]
    log = log_of(
        of_pulsar(batch), of_pulsar([Record(b"new", b"c")]), of_kafka([Record(b"k", b"a")])
    )
    runs = [header for header in headers(compact(log)) if header.magic == Magic.PULSAR]
    assert [(run.base_offset, run.record_count) for run in runs] == [(1, 1), (3, 2), (5, 1)]
    assert [run.max_timestamp - TIME // 1000 for run in runs[:2]] == [2, 3]


def test_a_producers_last_entry_leaves_its_sequence_where_it_loses_its_beginning() -> None:
    batch, _ = of_pulsar([Record(b"1", b"a"), Record(b"2", b"b")])
    named = rebuilt_header(
        read_header(batch)._replace(producer_id=-7, base_sequence=11), batch[61:]
    )
    log = log_of((bytes(named) + batch[61:], 2), of_kafka([Record(b"3", b"a")]))
    left = compact(log, last_batches=[0])
    emptied, run, _ = headers(left)
    assert (emptied.producer_id, emptied.base_sequence, emptied.record_count) == (-7, 11, 0)
    assert (emptied.base_offset, emptied.last_offset, run.base_offset) == (0, 0, 1)
    assert compact(left, last_batches=[0]) == left
    assert headers(compact(log))[0].producer_id == -1


def test_a_message_of_pulsar_without_payload_deletes_its_key() -> None:
    log = log_of(of_pulsar([Record(b"1", b"a")]), of_pulsar([Record(b"", b"a")]))
    left = compact(log)
    assert [each.offset for each in read(left)] == [1]
    assert read(compact(left, now_ms=NOW + DAY)) == []


def test_what_is_encrypted_or_in_chunks_stays_whole() -> None:
    sealed = metadata(num_messages_in_batch=3, partition_key="a")
    sealed.encryption_keys.add(key="k", value=b"v")
    encrypted = pulsar_batch(entry(sealed, b"?" * 40), count=3)
    chunk = chunk_batch([b"part", b"rest"], 0)
    log = log_of((encrypted, 3), (chunk, 1), of_kafka([Record(b"new", b"a")]))
    assert compact(log) == log


def test_batches_of_iggy_stay_sound() -> None:
    batch = [Record(b"1", b"a"), Record(b"2", b"b"), Record(b"3", b"c")]
    log = log_of(of_iggy(batch), of_iggy([Record(b"4", b"b")]))
    left = compact(log)
    header = headers(left)[0]
    assert header.record_count == 2
    body = left[HEADER_SIZE : header.size]
    with pytest.raises(MalformedBatchError, match="offset delta"):  # What is there is sound.
        verify_iggy_batch(body)
    assert [each.offset for each in read(left)] == [0, 2, 3]


def test_a_batch_that_nobody_can_read_stays_where_it_is() -> None:
    unreadable = build_header(
        Magic.KAFKA, b"nonsense", record_count=2, base_timestamp=1, max_timestamp=1
    )
    log = log_of(
        *(of_kafka([Record(b"1", b"a")]), (bytes(unreadable) + b"nonsense", 2)),
        of_kafka([Record(b"2", b"a")]),
    )
    left = compact(log)
    assert [(h.base_offset, h.record_count) for h in headers(left)] == [(0, 0), (1, 2), (3, 1)]


def transactional(batch: tuple[bytes, int], producer_id: int) -> tuple[bytes, int]:
    header = read_header(batch[0])
    body = batch[0][HEADER_SIZE:]
    made = build_header(
        header.magic,
        body,
        record_count=header.record_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=ATTRIBUTE_TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    return bytes(made) + body, batch[1]


def marker(producer_id: int, *, committed: bool) -> tuple[bytes, int]:
    record = Record(struct.pack(">hi", 0, 0), struct.pack(">hh", 0, int(committed)))
    batch = kafka_batch([record])
    body = batch[HEADER_SIZE:]
    made = build_header(
        Magic.KAFKA,
        body,
        record_count=1,
        base_timestamp=TIME // 1000,
        max_timestamp=TIME // 1000,
        attributes=ATTRIBUTE_TRANSACTIONAL | ATTRIBUTE_CONTROL,
        producer_id=producer_id,
        producer_epoch=0,
    )
    return bytes(made) + body, 1


def test_aborted_data_goes_and_markers_follow() -> None:
    log = log_of(
        *(of_kafka([Record(b"1", b"a")]), transactional(of_kafka([Record(b"2", b"a")]), 5)),
        *(transactional(of_pulsar([Record(b"3", b"b")]), 6), marker(5, committed=False)),
        *(marker(6, committed=True), of_kafka([Record(b"4", b"c")])),
    )
    aborted = [(5, 1, 3)]
    left = compact(log, aborted=aborted)
    assert [(each.offset, each.value) for each in read(left)] == [(0, b"1"), (2, b"3"), (5, b"4")]
    assert [h.base_offset for h in headers(left) if h.attributes & ATTRIBUTE_CONTROL] == [3, 4]
    # The next pass finds no data of the first: its marker may go when its time is over.
    again = compact(left, aborted=aborted)
    marked = next(h for h in headers(again) if h.base_offset == 3)
    assert marked.attributes & ATTRIBUTE_DELETE_HORIZON
    assert marked.base_timestamp == NOW + DAY
    assert compact(again, aborted=aborted) == again
    last = compact(again, aborted=aborted, now_ms=NOW + DAY)
    assert [h.base_offset for h in headers(last) if h.attributes & ATTRIBUTE_CONTROL] == [4]
    check_stored(log, last)


def test_a_marker_with_a_horizon_has_the_time_it_had() -> None:
    log = log_of(marker(5, committed=True), of_kafka([Record(b"4", b"c")]))
    left = bytearray(compact(log))
    left[22] &= ~ATTRIBUTE_CONTROL
    assert decode(bytes(left)).timestamps.tolist() == [TIME, TIME]
    assert parse_entry is not None
