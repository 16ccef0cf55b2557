"""A compacted log has the last value of each key, at its offset and in its order."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compacted_batches import (
    DAY,
    NOBODY,
    NOW,
    check_stored,
    compact,
    headers,
    last_of_keys,
    log_of,
    of_iggy,
    of_kafka,
    of_pulsar,
    read,
)
from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_DELETE_HORIZON,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    Magic,
    build_header,
    read_header,
    walk,
)
from penstock.records import MalformedBatchError, convert, decode, field
from penstock.records.compaction import assembling
from penstock.records.compaction.aborted import Transactions
from penstock.records.compaction.choosing import Rules
from penstock.records.compaction.cleaning import Inflating, Pass, remember
from penstock.records.compaction.offset_map import OffsetMap, hash_keys
from penstock.records.iggy.batch import verify_iggy_batch
from penstock.records.kernels import keyed_hash
from penstock.records.pulsar.entry import parse_entry
from stored_batches import (
    TIME,
    Record,
    kafka_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.records.columns import Bytes, Numbers


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
@given(st.lists(batches_of_all, min_size=2, max_size=12), st.sampled_from([1, 1 << 20]))
def test_a_map_that_is_too_small_takes_several_passes(
    batches: list[tuple[bytes, int]], span_bytes: int
) -> None:
    log = log_of(*batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.records.compaction.offset_map.COMPACTION_SPAN_BYTES", span_bytes)
        left, passes = compacted_in_passes(log)
    assert passes <= len(batches)
    assert read(left) == last_of_keys(read(log))


def compacted_in_passes(log: bytes) -> tuple[bytes, int]:
    """Return what is left of a log by a map of twelve keys, and after how many passes."""
    offsets, passes = OffsetMap(0), 0
    start: int | None = 0
    left = log
    while start is not None:
        offsets.clear()
        dirty = memoryview(left)[
            next(position for position, each in walk(left) if each.next_offset > start) :
        ]
        stopped = remember(dirty, offsets, Transactions(), Inflating())
        rules = Rules(NOW, DAY, False, NOBODY)
        passing = Pass(offsets, Transactions(), rules, Inflating())
        parts = [*passing.clean(memoryview(left)), passing.end()]
        left = b"".join(part.data for part in parts if part is not None)
        assert stopped is None or stopped > start
        start, passes = stopped, passes + 1
        if start == headers(left)[-1].next_offset:
            break
    return left, passes


def test_a_batch_with_more_keys_than_there_is_room_for_is_passed() -> None:
    of_many = of_kafka([Record(b"1", b"%d" % number) for number in range(100)])
    log = log_of(of_many, of_kafka([Record(b"2", b"0"), Record(b"2", b"99")]), of_many)
    left, passes = compacted_in_passes(log)
    assert passes == 3
    values = {record.key: record.value for record in read(left)}
    assert values == {b"%d" % number: b"1" for number in range(100)}
    assert len(read(left)) < 202


@given(st.lists(st.binary(max_size=30), min_size=1, unique=True), st.booleans())
def test_a_key_is_known_by_a_polynomial_of_its_bytes(found: list[bytes], at_end: bool) -> None:
    data = np.frombuffer(b"".join(found) + (b"" if at_end else bytes(8)), np.uint8)
    records = np.zeros((field.RECORD_FIELDS, len(found)), np.int64)
    records[field.KEY_SIZE] = [len(each) for each in found]
    records[field.KEY_START] = np.cumsum(records[field.KEY_SIZE]) - records[field.KEY_SIZE]
    first, second = 0x123456789ABCDEF, keyed_hash.PRIME - 1
    hashes = np.zeros((2, len(found)), np.int64)
    hash_keys(data, records, first, second, hashes)
    for row, secret in enumerate((first, second)):
        expected = [mixed(polynomial(each, secret)) for each in found]
        assert hashes[row].view(np.uint64).tolist() == expected
    assert len({*hashes[0].tolist()}) == len(found)


def polynomial(key: bytes, secret: int) -> int:
    state = len(key) * secret
    for start in range(0, len(key), 7):
        state = (state + int.from_bytes(key[start : start + 7], "little")) * secret
    return state % keyed_hash.PRIME


def mixed(number: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
        number = (number ^ number >> 33) * factor % (1 << 64)
    return number


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


@pytest.mark.parametrize("target", Magic)
def test_who_reads_what_is_left_converted_never_comes_to_it_again(target: Magic) -> None:
    first = of_kafka([Record(b"1", b"a"), Record(b"2", b"b")])
    left = compact(log_of(first, of_kafka([Record(b"3", b"b")]), of_kafka([Record(b"4", b"b")])))
    batch, gap, _ = headers(left)
    converted = b"".join(convert(left[: batch.size + gap.size], target))
    assert headers(converted)[-1].next_offset in {batch.next_offset, gap.next_offset}


def test_gaps_do_not_mix_leader_epochs() -> None:
    log = bytearray(log_of(*[of_kafka([Record(b"v", b"a")])] * 4))
    for number, (position, _) in enumerate(walk(bytes(log))):
        log[position + 12 : position + 16] = (number // 2).to_bytes(4, "big")
    left = compact(bytes(log))
    assert [(h.base_offset, h.leader_epoch) for h in headers(left)] == [(0, 0), (2, 1), (3, 1)]


@pytest.mark.parametrize(("epoch", "gaps"), [(0, [(1, 0)]), (1, [(1, 0), (13, 1)])])
def test_what_two_entries_lose_side_by_side_is_one_gap_in_one_epoch(
    epoch: int, gaps: list[tuple[int, int]]
) -> None:
    again = [Record(b"-", b"x%d" % number) for number in range(12)]
    entries = [
        of_pulsar([Record(b"1", b"a"), *again]),
        of_pulsar([*again, Record(b"4", b"b")]),
        of_pulsar([*again, Record(b"6", b"c")]),
    ]
    log = bytearray(log_of(*entries))
    for position, header in walk(bytes(log)):
        of_it = epoch if header.base_offset else 0
        log[position + 12 : position + 16] = of_it.to_bytes(4, "big")
    left = compact(bytes(log))
    check_stored(bytes(log), left)
    empty = [each for each in headers(left) if not each.record_count]
    merged = [(each.base_offset, each.leader_epoch) for each in empty]
    assert merged == gaps
    assert [each.value for each in read(left)] == [b"1", b"4", *[b"-"] * 12, b"6"]


@pytest.mark.parametrize("made", [of_kafka, of_pulsar, of_iggy])
def test_whatever_becomes_of_batches_is_one_step_for_all(
    made: Callable[[list[Record]], tuple[bytes, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's work for each would take longer than all that is done to its bytes."""
    steps: list[int] = []
    assemble = assembling.assemble

    def counted(stored: Bytes, batches: Numbers, *rest: Any) -> None:
        steps.append(batches.shape[1])
        assemble(stored, batches, *rest)

    monkeypatch.setattr(assembling, "assemble", counted)
    names = [b"%d" % number for number in range(200)]
    log = log_of(*(made([Record(b"1", b"x"), Record(b"2", name)]) for name in names))
    left = compact(log)
    check_stored(log, left)
    assert [each.key for each in read(left)] == [*names[:-1], b"x", names[-1]]
    alone = log_of(*(made([Record(b"1", name)]) for pair in pairwise(names) for name in pair))
    left = compact(alone)
    check_stored(alone, left)
    assert [each.key for each in read(left)] == names
    assert steps == [1, 199, 1, 397], "the pieces that are read"


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


def test_an_aborted_batch_that_nobody_can_read_goes() -> None:
    batch, _ = transactional(of_kafka([Record(b"1", b"a")], codec=4), 5)
    header = read_header(batch)
    body = b"nonsense"
    made = build_header(
        Magic.KAFKA,
        body,
        record_count=1,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=header.attributes | 4,
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
    )
    log = log_of((bytes(made) + body, 1), marker(5, committed=False))
    assert [h.record_count for h in headers(compact(log))] == [1, 1]
    assert [h.record_count for h in headers(compact(log, aborted=[(5, 0, 1)]))] == [0, 1]


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
    # The next pass finds no data of the first: its marker may go when its time is over, and nobody
    # is told any more that it was aborted.
    assert compact(left, aborted=aborted) == left
    again = compact(left)
    marked = next(h for h in headers(again) if h.base_offset == 3)
    assert marked.attributes & ATTRIBUTE_DELETE_HORIZON
    assert marked.base_timestamp == NOW + DAY
    assert compact(again) == again
    last = compact(again, now_ms=NOW + DAY)
    assert [h.base_offset for h in headers(last) if h.attributes & ATTRIBUTE_CONTROL] == [4]
    check_stored(log, last)


def test_a_marker_with_a_horizon_has_the_time_it_had() -> None:
    log = log_of(marker(5, committed=True), of_kafka([Record(b"4", b"c")]))
    left = bytearray(compact(log))
    left[22] &= ~ATTRIBUTE_CONTROL
    assert decode(bytes(left)).timestamps.tolist() == [TIME, TIME]
    assert parse_entry is not None
