"""Entries of Pulsar that lose messages: each run that is left is an entry of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compacted_batches import (
    DAY,
    NOW,
    check_stored,
    compact,
    headers,
    log_of,
    of_kafka,
    of_pulsar,
    read,
)
from penstock.limits import COMPRESSED_RUN_BYTES
from penstock.log.header import (
    HEADER_SIZE,
    Magic,
    read_header,
    rebuilt_header,
    walk,
)
from penstock.records.pulsar.entry import numbered_message, read_entry
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from stored_batches import (
    TIME,
    Record,
    batched,
    chunk_batch,
    entry,
    metadata,
    pulsar_batch,
    singles,
)

if TYPE_CHECKING:
    pass


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
        left_of_three = ("maker", (5, 7, 5))
        assert numbered == [left_of_three, left_of_three, ("maker", (5, 5, 5))]
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
