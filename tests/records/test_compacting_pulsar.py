"""Entries of Pulsar that lose messages, which are marked in them, and how clients get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

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
from penstock.log.header import (
    HEADER_SIZE,
    BatchHeader,
    Magic,
    read_header,
    rebuilt_header,
    walk,
)
from penstock.records import convert
from penstock.records.pulsar.entry import Entry, build_entry, numbered_message, read_entry
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from stored_batches import (
    TIME,
    Record,
    at_offset,
    batched,
    chunk_batch,
    entry,
    metadata,
    pulsar_batch,
    singles,
)

if TYPE_CHECKING:
    from penstock.session import Buffer


def entries(batches: Buffer) -> list[tuple[BatchHeader, Entry]]:
    return [
        (header, read_entry(memoryview(batches)[position + HEADER_SIZE : position + header.size]))
        for position, header in walk(batches)
        if header.record_count and header.magic == Magic.PULSAR
    ]


def shown(batches: bytes) -> list[tuple[BatchHeader, Entry]]:
    """Return what Pulsar's clients get, in which no message is marked."""
    found = entries(b"".join(convert(batches, Magic.PULSAR)))
    assert all(header.is_full for header, _ in found)
    return found


def keys_of(each: Entry) -> list[str]:
    return [
        "-" if message.compacted_out else message.partition_key
        for message, _ in singles(bytes(each.payload))
    ]


def numbers_of(found: list[tuple[BatchHeader, Entry]]) -> list[tuple[int, int, int] | None]:
    numbered = [numbered_message(memoryview(build_entry(*each))) for _, each in found]
    assert all(each is not None and each.producer_name == "maker" for each in numbered)
    return [each and each.numbers for each in numbered]


def test_what_goes_is_marked_and_not_shown() -> None:
    batch = [Record(b"1", b"a"), Record(b"2", b"b"), Record(b"3", b"c")]
    for codec in range(5):
        log = log_of(of_pulsar(batch, codec), of_pulsar([Record(b"4", b"b")], codec))
        left = compact(log)
        check_stored(log, left)
        stored = entries(left)
        assert [(header.base_offset, header.record_count) for header, _ in stored] == [
            (0, 2),
            (3, 1),
        ]
        assert [each.message_count for _, each in stored] == [3, 1]
        assert numbers_of(stored) == [(5, 7, 5), (5, 5, 5)]
        alone = shown(left)
        assert [(header.base_offset, each.message_count) for header, each in alone] == [
            (0, 1),
            (2, 1),
            (3, 1),
        ]
        assert numbers_of(alone) == [(5, 7, 5), (5, 7, 5), (5, 5, 5)]
        if codec == 0:
            assert [keys_of(each) for _, each in stored] == [["a", "-", "c"], ["b"]]
            assert [keys_of(each) for _, each in alone] == [["a"], ["c"], ["b"]]


def test_an_entry_stays_compressed_where_that_makes_it_smaller() -> None:
    long = b"12345678" * 200
    for codec in range(5):
        batch = [Record(long, b"a"), Record(b"2", b"b"), Record(long, b"c"), Record(long, b"d")]
        batch_and_new = log_of(of_pulsar(batch, codec), of_pulsar([Record(b"4", b"b")], 0))
        left = compact(batch_and_new)
        check_stored(batch_and_new, left)
        assert [each.value for each in read(left)] == [long, long, long, b"4"]
        assert [each.metadata.compression for _, each in entries(left)] == [codec, 0]
        assert [each.metadata.compression for _, each in shown(left)] == [codec, codec, 0]


def test_a_part_says_what_its_entry_said() -> None:
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
    ((_, stored),) = entries(left)
    assert keys_of(stored) == ["-", "b", "-", "d"]
    assert stored.metadata == said
    alone = [each for header, each in shown(left) if header.base_offset < 4]
    assert [keys_of(each) for each in alone] == [["b"], ["d"]]
    said.num_messages_in_batch = 1
    assert [each.metadata for each in alone] == [said, said]


def test_each_part_of_an_entrys_messages_has_its_own_time() -> None:
    batch = [
        Record(b"v", key, time=TIME + 1_000 * late)
        for key, late in [(b"a", 5), (b"b", 2), (b"c", 9), (b"d", 1), (b"e", 3)]
    ]
    log = log_of(
        of_pulsar(batch), of_pulsar([Record(b"new", b"c")]), of_pulsar([Record(b"k", b"a")])
    )
    left = compact(log)
    assert [header.max_timestamp - TIME // 1000 for header, _ in entries(left)[:1]] == [3]
    found = [(header.base_offset, header.record_count) for header, _ in shown(left)]
    assert found == [(1, 1), (3, 2), (5, 1), (6, 1)]
    assert [header.max_timestamp - TIME // 1000 for header, _ in shown(left)[:2]] == [2, 3]


def test_what_is_left_is_parted_where_marks_would_take_more() -> None:
    names = [b"%d" % number for number in range(300)]
    stays = {40, 45, 250}
    old = of_pulsar([Record(b"old", name) for name in names])
    new = of_pulsar([Record(b"new", name) for n, name in enumerate(names) if n not in stays])
    log = log_of(old, new)
    left = compact(log)
    check_stored(log, left)
    found = [
        (header.base_offset, header.last_offset, header.record_count) for header in headers(left)
    ]
    assert found == [
        *((0, 39, 0), (40, 45, 2), (46, 249, 0), (250, 250, 1), (251, 299, 0)),
        (300, 596, 297),
    ]
    of_last = [(5, 304, 5)] * 2
    assert numbers_of(entries(left)[:2]) == of_last
    assert [header.base_offset for header, _ in shown(left)] == [40, 45, 250, 300]


kept_of_each = st.lists(st.lists(st.booleans(), min_size=1, max_size=60), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(kept_of_each, st.integers(0, 20), st.integers(0, 400))
def test_it_never_takes_more_room(stays: list[list[bool]], value: int, said: int) -> None:
    """Whichever messages go, and however small they and however large what the entry says."""
    log = bytearray()
    for batch in stays:
        messages = [
            (
                SingleMessageMetadata(payload_size=0, partition_key="" if not kept else None),
                b"v" * value,
            )
            for kept in batch
        ]
        whole = metadata(num_messages_in_batch=len(batch))
        whole.properties.add(key="k", value="v" * said)
        offset = headers(log)[-1].next_offset if log else 0
        body = entry(whole, batched(messages))
        log += at_offset(pulsar_batch(body, count=len(batch)), offset)
    last = of_kafka([Record(b"new", b"")])[0]
    log += at_offset(last, headers(log)[-1].next_offset)
    left = compact(bytes(log))
    check_stored(bytes(log), left)
    assert len(left) <= len(log)
    assert compact(left) == left
    expected = [kept for batch in stays for kept in batch]
    offsets = [offset for offset, kept in enumerate([*expected, True]) if kept]
    assert [each.offset for each in read(left)] == offsets
    for target in Magic:
        assert [each.offset for each in read(b"".join(convert(left, target)))] == offsets
    assert sum(each.message_count for _, each in shown(left)) == len(offsets)


def test_who_reads_what_is_left_comes_behind_it() -> None:
    batch = of_pulsar([Record(b"1", b"a"), Record(b"2", b"b"), Record(b"3", b"c")])
    left = compact(log_of(batch, of_kafka([Record(b"4", b"c")])))
    stored, _ = headers(left)
    assert (stored.base_offset, stored.last_offset, stored.record_count) == (0, 2, 2)
    converted = headers(b"".join(convert(left[: stored.size], Magic.PULSAR)))
    assert [(each.next_offset, each.record_count) for each in converted] == [(2, 2), (3, 0)]


def test_a_producers_last_entry_leaves_its_sequence_where_it_loses_its_beginning() -> None:
    names = [b"%d" % number for number in range(20)]
    batch, _ = of_pulsar([Record(b"1", name) for name in names])
    named = rebuilt_header(
        read_header(batch)._replace(producer_id=-7, base_sequence=11), batch[61:]
    )
    log = log_of((bytes(named) + batch[61:], 20), of_kafka([Record(b"3", n) for n in names[:19]]))
    left = compact(log, last_batches=[0])
    emptied, part, _ = headers(left)
    assert (emptied.producer_id, emptied.base_sequence, emptied.record_count) == (-7, 11, 0)
    assert (emptied.base_offset, emptied.last_offset, part.base_offset) == (0, 18, 19)
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
