"""Message sets of Kafka's clients of before 2017: to one batch of magic 2, and out of batches.

They are held against a model that reads and writes them field by field, and against the reader and
writer of kafka-python.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from message_sets import (
    NO_TIME,
    OLD_SQUEEZES,
    SQUEEZES,
    Message,
    Squeeze,
    framed,
    lz4_of_old_clients,
    message_set,
    nullable,
    read,
    wrapped,
    write,
)
from penstock import records
from penstock.limits import DECODED_ROWS, INFLATED_BATCH_BYTES
from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    HEADER_SIZE,
    Magic,
    build_header,
    checksum_matches,
    read_header,
    walk,
)
from penstock.records import MessageSetMagic
from penstock.records.bounds import message_set_bytes
from penstock.records.columns import as_bytes
from penstock.records.message_sets.decode import batch_of_messages
from penstock.records.message_sets.encode import SET_BYTES, find_message
from penstock.records.message_sets.faults import Fault, MessageSetError
from penstock.records.message_sets.lz4 import with_right_checksum
from stored_batches import (
    TIME,
    Record,
    chunk_batch,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    pulsar_batch,
)

CONTENTS = st.none() | st.binary(max_size=20) | st.binary(min_size=250, max_size=600)
TIMES = st.just(NO_TIME) | st.integers(0, 1 << 41)
MESSAGES = st.lists(
    st.builds(Message, CONTENTS, CONTENTS, TIMES, st.integers(-1, 1 << 40), st.just(0)),
    min_size=1,
    max_size=6,
)
MAGICS = st.sampled_from([0, 1])
MILLISECONDS = TIME // 1000


def in_batch(batch: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Offset, time in milliseconds, key and value of each record."""
    columns = records.decode(batch)
    times = [time if time == NO_TIME else time // 1000 for time in columns.timestamps.tolist()]
    return [
        (offset, time, columns.key(row), columns.value(row))
        for row, (offset, time) in enumerate(zip(columns.offsets.tolist(), times, strict=True))
    ]


def expected(magic: int, messages: Sequence[Message]) -> object:
    return [
        (row, message.time if magic else NO_TIME, message.key, message.value)
        for row, message in enumerate(messages)
    ]


def batch_of(data: bytes) -> bytes:
    """The one sound batch that a set becomes."""
    batch = bytes(batch_of_messages(data))
    assert len(list(walk(batch))) == 1
    assert checksum_matches(batch)
    header = read_header(batch)
    assert header.size == len(batch)
    assert header.last_offset_delta == header.record_count - 1
    return batch


class TestToABatch:
    @given(MAGICS, MESSAGES)
    def test_what_is_not_compressed(self, magic: int, messages: list[Message]) -> None:
        batch = batch_of(message_set(magic, messages))
        assert in_batch(batch) == expected(magic, messages)
        assert read_header(batch).attributes == 0
        times = [message.time if magic else NO_TIME for message in messages]
        assert read_header(batch).base_timestamp == times[0]
        assert read_header(batch).max_timestamp == max(times)

    @given(MAGICS, st.data(), MESSAGES)
    def test_what_is_compressed(
        self, magic: int, data: st.DataObject, messages: list[Message]
    ) -> None:
        squeeze = data.draw(st.sampled_from([*(SQUEEZES if magic else OLD_SQUEEZES).values()]))
        batch = batch_of(wrapped(magic, messages, squeeze))
        assert in_batch(batch) == expected(magic, messages)
        assert read_header(batch).attributes & ATTRIBUTE_COMPRESSION == squeeze.codec

    @pytest.mark.parametrize("offsets", [(0, 1, 2), (70, 71, 72), (5, 9, 1 << 40), (0, 0, 0)])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_relative_and_absolute_offsets_mean_the_same(
        self, magic: int, offsets: tuple[int, ...]
    ) -> None:
        messages = [Message(b"v", b"k", 7, offset) for offset in offsets]
        batch = batch_of(wrapped(magic, messages, SQUEEZES["gzip"]))
        assert in_batch(batch) == expected(magic, messages)

    @pytest.mark.parametrize("codec", [0, 1, 2, 3])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_kafka_pythons_producer(self, magic: int, codec: int) -> None:
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
        for offset in range(50):
            builder.append(offset, MILLISECONDS + offset, b"key", b"value %d" % offset)
        batch = batch_of(bytes(builder.build()))
        messages = [Message(b"value %d" % n, b"key", MILLISECONDS + n) for n in range(50)]
        assert in_batch(batch) == expected(magic, messages)

    def test_a_large_set_compressed_stays_small(self) -> None:
        messages = [Message(b"the same again " * 60, None, 1, n) for n in range(500)]
        for squeeze in SQUEEZES.values():
            assert len(batch_of(wrapped(1, messages, squeeze))) < 100_000

    def test_kafka_python_reads_what_was_compressed(self) -> None:
        messages = [Message(b"value %d" % n, b"key", MILLISECONDS, n) for n in range(3000)]
        for name, squeeze in SQUEEZES.items():
            batch = batch_of(wrapped(1, messages, squeeze))
            found = [record for part in [MemoryRecords(batch).next_batch()] for record in part]
            assert [record.value for record in found] == [m.value for m in messages], name


def fault_of(data: bytes) -> Fault:
    with pytest.raises(MessageSetError) as caught:
        batch_of_messages(data)
    return caught.value.fault


GOOD = [Message(b"one", b"key", 5), Message(b"two", None, 6), Message(None, b"key", 7)]


class TestWhatIsRefused:
    @pytest.mark.parametrize("squeeze", [None, *SQUEEZES.values()])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_cut_off_anywhere(self, magic: int, squeeze: Squeeze | None) -> None:
        whole = wrapped(magic, GOOD, squeeze) if squeeze else message_set(magic, GOOD)
        ends = {len(message_set(magic, GOOD[:count])) for count in (1, 2)} if not squeeze else set()
        for end in set(range(1, len(whole))) - ends:
            assert fault_of(whole[:end]) is Fault.CORRUPT

    @pytest.mark.parametrize("magic", [0, 1])
    def test_any_flipped_bit_behind_the_offset(self, magic: int) -> None:
        whole = write(magic, GOOD[0])
        for position in range(12, len(whole)):
            flipped = bytearray(whole)
            flipped[position] ^= 4
            assert fault_of(bytes(flipped)) is Fault.CORRUPT

    @pytest.mark.parametrize("size", [-1, 0, 13, 1 << 30, -(1 << 31), (1 << 31) - 1])
    def test_sizes_that_lie(self, size: int) -> None:
        whole = bytearray(message_set(1, GOOD))
        struct.pack_into(">i", whole, 8, size)
        assert fault_of(bytes(whole)) is Fault.CORRUPT

    @pytest.mark.parametrize("size", [-2, 4, 1 << 30, (1 << 31) - 1, -(1 << 31)])
    @pytest.mark.parametrize("magic", [0, 1])
    def test_lengths_of_keys_and_values_that_lie(self, magic: int, size: int) -> None:
        time = bytes(8 * magic)
        head = bytes([magic, 0]) + time
        lie = struct.pack(">i", size)
        for body in (lie + b"key" + nullable(b"v"), nullable(b"key") + lie + b"val"):
            assert fault_of(framed(0, head + body)) is Fault.INVALID

    def test_too_short_for_a_timestamp(self) -> None:
        assert fault_of(framed(0, b"\x01\0" + nullable(None) + nullable(None))) is Fault.INVALID

    def test_something_behind_the_value(self) -> None:
        body = b"\0\0" + nullable(None) + nullable(b"value") + b"!"
        assert fault_of(framed(0, body)) is Fault.INVALID

    def test_nothing_at_all(self) -> None:
        assert fault_of(b"") is Fault.INVALID
        for squeeze in SQUEEZES.values():
            empty = Message(squeeze.compress(b""), attributes=squeeze.codec)
            assert fault_of(write(1, empty)) is Fault.INVALID
            assert fault_of(write(1, empty._replace(value=None))) is Fault.INVALID

    @pytest.mark.parametrize("other", [0, 2, 3, 255])
    def test_messages_of_two_magics(self, other: int) -> None:
        odd = framed(0, bytes([other, 0]) + bytes(8) + nullable(None) + nullable(b"v"))
        assert fault_of(message_set(1, GOOD) + odd) is Fault.INVALID
        if other > 1:
            assert fault_of(odd) is Fault.INVALID

    def test_a_compressed_set_of_another_magic(self) -> None:
        inner = SQUEEZES["gzip"].compress(message_set(0, GOOD))
        assert fault_of(write(1, Message(inner, attributes=1))) is Fault.INVALID

    def test_a_compressed_message_among_others(self) -> None:
        squeezed = wrapped(1, GOOD, SQUEEZES["gzip"])
        assert fault_of(squeezed + squeezed) is Fault.INVALID
        assert fault_of(message_set(1, GOOD) + squeezed) is Fault.INVALID

    def test_compressed_twice(self) -> None:
        inner = wrapped(1, GOOD, SQUEEZES["gzip"])
        twice = Message(SQUEEZES["gzip"].compress(inner), attributes=1)
        assert fault_of(write(1, twice)) is Fault.INVALID

    @pytest.mark.parametrize("codec", [4, 5, 6, 7])
    def test_codecs_that_message_sets_lack(self, codec: int) -> None:
        assert fault_of(write(1, Message(b"abc", attributes=codec))) is Fault.COMPRESSION

    @pytest.mark.parametrize("codec", [1, 2, 3])
    @pytest.mark.parametrize("value", [b"", b"plain bytes", b"\x1f\x8b\x08" + bytes(40)])
    def test_bytes_that_are_not_compressed(self, codec: int, value: bytes) -> None:
        assert fault_of(write(0, Message(value, attributes=codec))) is Fault.INVALID

    def test_a_wrong_checksum_within(self) -> None:
        inner = bytearray(message_set(1, GOOD))
        inner[-1] ^= 1
        outer = Message(SQUEEZES["lz4"].compress(bytes(inner)), attributes=3)
        assert fault_of(write(1, outer)) is Fault.CORRUPT

    def test_times_that_no_client_may_give(self) -> None:
        assert fault_of(write(1, Message(b"v", attributes=8))) is Fault.TIMESTAMP
        assert fault_of(write(1, Message(b"v", time=-2))) is Fault.TIMESTAMP
        assert in_batch(batch_of(write(0, Message(b"v", attributes=8)))), "it means nothing there"

    def test_more_messages_than_have_room(self) -> None:
        many = write(0, Message(None)) * (DECODED_ROWS + 1)
        assert fault_of(many) is Fault.TOO_LARGE
        assert fault_of(write(0, Message(SQUEEZES["gzip"].compress(many), attributes=1))) is (
            Fault.TOO_LARGE
        )

    def test_what_says_that_it_inflates_to_too_much(self) -> None:
        size = bytearray()
        rest = INFLATED_BATCH_BYTES + 1
        while rest > 0x7F:
            size.append(rest & 0x7F | 0x80)
            rest >>= 7
        size.append(rest)
        assert fault_of(write(0, Message(bytes(size), attributes=2))) is Fault.INVALID


@given(MAGICS, MESSAGES, st.sampled_from([*SQUEEZES.values()]))
def test_what_a_set_holds_at_most_is_known_before(
    magic: int, messages: list[Message], squeeze: Squeeze
) -> None:
    plain = message_set(magic, messages)
    assert message_set_bytes(plain) == len(plain)
    assert message_set_bytes(wrapped(magic, messages, squeeze)) >= len(plain)
    for end in range(40):
        message_set_bytes(wrapped(magic, messages, squeeze)[:end])


@given(st.binary(max_size=14 - 8), st.booleans())
def test_the_checksum_of_an_lz4_header(size: bytes, has_size: bool) -> None:
    """Of all lengths that a descriptor has, against the library's own."""
    import xxhash

    descriptor = bytes([0x68 if has_size else 0x60, 0x40]) + (
        size.ljust(8, b"\0") if has_size else b""
    )
    frame = b"\x04\x22\x4d\x18" + descriptor + b"\0rest"
    mended = with_right_checksum(memoryview(frame))
    right = xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF
    assert bytes(mended) == frame[: 4 + len(descriptor)] + bytes([right]) + b"rest"


def test_a_right_checksum_is_left_alone() -> None:
    frame = memoryview(OLD_SQUEEZES["lz4"].compress(b"text"))
    assert with_right_checksum(frame) is frame
    assert bytes(with_right_checksum(memoryview(lz4_of_old_clients(b"text")))) == bytes(frame)
    for cut in range(8):
        with_right_checksum(frame[:cut])


def sets(stored: bytes, magic: MessageSetMagic) -> bytes:
    """The messages that batches become, and the offsets that each set spans held to them."""
    found = b""
    headers = []
    converted = join(records.convert(stored, magic))
    for position, header in walk(converted):
        part = converted[position + HEADER_SIZE : position + header.size]
        assert checksum_matches(converted[position : position + header.size])
        offsets = [message.offset for _, message in read(part)]
        assert offsets == sorted(offsets)
        assert header.base_offset <= offsets[0]
        assert offsets[-1] <= header.last_offset
        headers.append(header)
        found += part
    for before, after in itertools.pairwise(headers):
        assert before.next_offset == after.base_offset
    stored_headers = [header for _, header in walk(stored)]
    if headers:
        assert headers[0].base_offset == stored_headers[0].base_offset
        assert headers[-1].next_offset == stored_headers[-1].next_offset
    return found


RECORDS = st.lists(
    st.builds(
        Record,
        value=CONTENTS,
        key=CONTENTS,
        headers=st.lists(st.tuples(st.just(b"name"), CONTENTS), max_size=2).map(tuple),
        time=st.integers(0, 1 << 41).map(lambda number: number * 1000),
    ),
    min_size=1,
    max_size=5,
)
EACH_MAGIC = pytest.mark.parametrize("magic", [*MessageSetMagic])


def messages_of(magic: int, written: Sequence[Record], offset: int) -> list[tuple[int, Message]]:
    return [
        (
            int(magic),
            Message(
                record.value, record.key, record.time // 1000 if magic else NO_TIME, offset + row
            ),
        )
        for row, record in enumerate(written)
    ]


class TestFromBatches:
    @EACH_MAGIC
    @given(first=RECORDS, second=RECORDS, codec=st.sampled_from([0, 1, 3]))
    def test_of_kafka(
        self, magic: MessageSetMagic, first: list[Record], second: list[Record], codec: int
    ) -> None:
        next_offset = 40 + len(first)
        stored = kafka_batch(first, 40, codec) + kafka_batch(second, next_offset)
        wanted = messages_of(magic, first, 40) + messages_of(magic, second, next_offset)
        assert read(sets(stored, magic)) == wanted

    @EACH_MAGIC
    def test_of_the_others(self, magic: MessageSetMagic) -> None:
        single = metadata(partition_key="key", event_time=MILLISECONDS)
        stored = pulsar_batch(entry(single, b"of pulsar"), 7)
        of_iggy = [Record(b"of iggy", b"key", ((b"name", b"x"),)), Record(b"more")]
        stored += iggy_batch(iggy_body(of_iggy), 8, count=2)
        written = [Record(b"of pulsar", b"key"), *of_iggy]
        assert read(sets(stored, magic)) == messages_of(magic, written, 7)

    @EACH_MAGIC
    def test_the_time_of_the_broker(self, magic: MessageSetMagic) -> None:
        stored = bytearray(kafka_batch([Record(b"a"), Record(b"b")]))
        header = read_header(stored)
        appended = build_header(
            Magic.KAFKA,
            stored[HEADER_SIZE:],
            record_count=2,
            base_timestamp=header.base_timestamp,
            max_timestamp=9,
            attributes=8,
        )
        found = read(sets(bytes(appended) + bytes(stored[HEADER_SIZE:]), magic))
        times = [(message.time, message.attributes) for _, message in found]
        assert times == [(9, 8)] * 2 if magic else [(NO_TIME, 0)] * 2

    @EACH_MAGIC
    def test_long_runs_come_in_sets_of_a_size(self, magic: MessageSetMagic) -> None:
        written = [Record(b"%d" % n * 300) for n in range(1000)]
        stored = kafka_batch(written, 5)
        converted = join(records.convert(stored, magic))
        sizes = [header.size for _, header in walk(converted)]
        assert len(sizes) > 5
        assert max(sizes) < SET_BYTES + 2000 + HEADER_SIZE
        assert read(sets(stored, magic)) == messages_of(magic, written, 5)

    @EACH_MAGIC
    def test_small_batches_share_a_set(self, magic: MessageSetMagic) -> None:
        stored = b"".join(kafka_batch([Record(b"v")], offset) for offset in range(100))
        assert len(list(walk(join(records.convert(stored, magic))))) == 1
        assert read(sets(stored, magic)) == messages_of(magic, [Record(b"v")] * 100, 0)

    @EACH_MAGIC
    def test_what_holds_no_records_is_left_out(self, magic: MessageSetMagic) -> None:
        assert join(records.convert(chunk_batch([b"a", b"b"], 0), magic)) == b""

    @pytest.mark.parametrize("codec", [0, 1])
    @EACH_MAGIC
    def test_kafka_python_reads_it(self, magic: MessageSetMagic, codec: int) -> None:
        written = [Record(b"%d" % n, b"key") for n in range(50)]
        found = []
        reader = MemoryRecords(sets(kafka_batch(written, 9, codec), magic))
        while (batch := reader.next_batch()) is not None:
            assert batch.validate_crc()
            found += [(record.offset, record.value, record.timestamp) for record in batch]
        time = MILLISECONDS if magic else None
        assert found == [(9 + n, b"%d" % n, time) for n in range(50)]

    def test_back_and_forth(self) -> None:
        written = [Record(b"%d" % n, b"key" if n % 2 else None) for n in range(10)]
        again = batch_of(sets(kafka_batch(written, 0), MessageSetMagic.V1))
        assert in_batch(again) == in_batch(kafka_batch(written, 0))

    def test_they_are_no_batches_of_the_log(self) -> None:
        converted = join(records.convert(kafka_batch([Record(b"v")]), MessageSetMagic.V1))
        with pytest.raises(records.MalformedBatchError):
            records.decode(converted)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True).map(sorted))
def test_a_message_is_found_by_its_offset(offsets: list[int]) -> None:
    whole = message_set(1, [Message(b"v" * offset, offset=offset) for offset in offsets])
    for asked in range(32):
        found = read(whole[find_message(as_bytes(whole), asked) :])
        assert [message.offset for _, message in found] == [o for o in offsets if o >= asked]
