"""Goal: what is found sound before it is stored can be read by everyone, and nothing else is.

Method: batches of our encoder, of aiokafka and of real clients pass. Of batches with a byte
changed, plain Python that knows only Kafka's format says which are still sound, and must agree.
Batches lie in memory that ends where the process may not read on.
"""

from __future__ import annotations

import functools
import gzip
import struct
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from penstock import records
from penstock.clients.kafka import record_batch
from penstock.log.header import (
    HEADER_SIZE,
    Magic,
    build_header,
    checksum_matches,
    read_header,
    set_max_timestamp,
    walk,
)
from penstock.records.errors import MalformedBatchError, OverLimitError
from penstock.records.iggy.batch import IggyBatchError, verify_iggy_batch
from penstock.records.kafka.validation import KafkaFault, KafkaRecordError, validate_kafka
from penstock.records.pulsar.entry import MalformedEntryError, read_entry
from penstock.records.pulsar.metadata_pb2 import KeyValue, SingleMessageMetadata
from penstock.records.pulsar.validation import validate_pulsar
from stored_batches import (
    GuardedMemory,
    Record,
    batched,
    entry,
    iggy_body,
    kafka_batch,
    metadata,
    pulsar_batch,
)

GOLDEN = Path(__file__).parent / "golden"
TIME_MS = 1_700_000_000_000
HEADERS = ((b"name", b"value"), (b"other", None))
MIXED = [Record(b"payload", b"key", HEADERS), Record(None), Record(b"y" * 70, b"\xff")]
PLAIN = [Record(b"payload %d" % number, b"key") for number in range(5)]


@functools.cache
def memory() -> GuardedMemory:
    return GuardedMemory(pages=256)


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text(encoding="ascii"))


def validated(batch: bytes, *, keyed: bool = False) -> int:
    placed = memory().place(batch)
    return validate_kafka(placed, read_header(placed), keyed=keyed)


def with_body(body: bytes, count: int, base_timestamp: int = TIME_MS, codec: int = 0) -> bytes:
    times = {"base_timestamp": base_timestamp, "max_timestamp": base_timestamp}
    header = build_header(Magic.KAFKA, body, record_count=count, attributes=codec, **times)
    return bytes(header) + body


# What follows knows Kafka's format, and nothing of the code that is tested.


class Reader:
    """Reads varints and bytes of a record; ValueError where there are none."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self, longest: int = 5) -> int:
        number = 0
        for index in range(longest):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                number &= (1 << 64) - 1
                return number >> 1 ^ -(number & 1)
        raise ValueError

    def span(self) -> bytes | None:
        size = self.varint()
        return None if size == -1 else self.take(size)


def plainly_read(body: bytes, count: int, base_timestamp: int) -> list[int] | None:
    """The times of the records that should be all of a body; None where they are not."""
    reader = Reader(body)
    try:
        times = [
            plain_time(Reader(reader.take(reader.varint())), index, base_timestamp)
            for index in range(count)
        ]
    except ValueError:
        return None
    return times if reader.at == len(body) else None


def plain_time(record: Reader, index: int, base_timestamp: int) -> int:
    record.take(1)
    time = base_timestamp + record.varint(10)
    if record.varint() != index or abs(time) >> 63:
        raise ValueError
    record.span()
    record.span()
    headers = record.varint()
    for _ in range(headers):
        if record.span() is None:
            raise ValueError
        record.span()
    if headers < 0 or record.at != len(record.data):
        raise ValueError
    return time


record_lists = st.lists(
    st.builds(
        record_batch.Record,
        value=st.none() | st.binary(max_size=200),
        key=st.none() | st.binary(max_size=80),
        headers=st.just(())
        | st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9)), max_size=3),
        timestamp_ms=st.integers(-1, 1 << 50),
    ),
    min_size=1,
    max_size=80,
)


@given(record_lists)
def test_whatever_our_own_client_writes_is_sound(written: list[record_batch.Record]) -> None:
    batch = bytes(record_batch.encode_batch(written))
    assert validated(batch) == max(record.timestamp_ms for record in written)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("count", [1, 63, 64, 65, 3000])
def test_what_another_library_writes_is_sound(codec: int, count: int) -> None:
    written = [Record(b"v" * (number % 300), b"k") for number in range(count)]
    batch = kafka_batch(written, codec=codec)
    assert validated(batch, keyed=True) == read_header(batch).max_timestamp


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.hex")))
def test_what_real_clients_send_is_sound(name: str) -> None:
    stored = golden(name)
    for position, header in walk(stored):
        batch = stored[position : position + header.size]
        body = memoryview(bytearray(batch))[HEADER_SIZE:]
        if header.magic == Magic.KAFKA:
            assert validated(batch) == header.max_timestamp
        elif header.magic == Magic.PULSAR:
            validate_pulsar(body, read_entry(body))
        else:
            verify_iggy_batch(body)


KAFKA_SAMPLES = [kafka_batch(MIXED), kafka_batch(PLAIN), golden("kafka-none")]


@given(st.sampled_from(KAFKA_SAMPLES), st.integers(0), st.integers(0, 255))
@example(KAFKA_SAMPLES[1], 0, 0x7F)
def test_a_changed_byte_is_judged_as_plain_code_does(sample: bytes, at: int, byte: int) -> None:
    body = bytearray(sample[HEADER_SIZE:])
    body[at % len(body)] = byte
    header = read_header(sample)
    batch = with_body(bytes(body), header.record_count, header.base_timestamp)
    times = plainly_read(bytes(body), header.record_count, header.base_timestamp)
    try:
        latest = validated(batch)
    except KafkaRecordError:
        assert times is None
    else:
        assert times is not None
        assert latest == max(-1, *times)
        assert len(records.decode(batch)) == header.record_count


@given(st.sampled_from([1, 2, 3, 4]), st.integers(0), st.integers(0, 255))
def test_a_changed_byte_of_a_compressed_batch_is_refused_or_read(
    codec: int, at: int, byte: int
) -> None:
    sample = kafka_batch(
        [Record(b"value %d" % number * 9, b"key") for number in range(50)], 0, codec
    )
    body = bytearray(sample[HEADER_SIZE:])
    body[at % len(body)] = byte
    batch = with_body(bytes(body), 50, codec=codec)
    try:
        validated(batch)
    except MalformedBatchError:
        return
    assert len(records.decode(batch)) == 50


def zigzag(number: int) -> bytes:
    number = (number << 1 ^ number >> 63) & (1 << 64) - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def record(offset: int = 0, delta: int = 0, rest: bytes = b"\x01\x01\x00") -> bytes:
    """A record without key and value, or with what else is behind its numbers."""
    fields = b"\0" + zigzag(delta) + zigzag(offset) + rest
    return zigzag(len(fields)) + fields


REFUSED = {
    "garbage": (b"no records at all, but a checksum that fits", 1, KafkaFault.STRUCTURE),
    "nothing": (b"", 1, KafkaFault.STRUCTURE),
    "cut off": (record(40)[:-1], 1, KafkaFault.STRUCTURE),
    "fewer than said": (record(40), 2, KafkaFault.STRUCTURE),
    "more than said": (record(40) + record(41), 1, KafkaFault.TRAILING_BYTES),
    "the same offset twice": (record(40) * 2, 2, KafkaFault.OFFSET_DELTA),
    "an offset left out": (record(40) + record(42), 2, KafkaFault.OFFSET_DELTA),
    "a null of -2": (record(40, rest=b"\x03\x01\x00"), 1, KafkaFault.STRUCTURE),
    "a size of 4 GiB": (record(40, rest=zigzag(1 << 32) + b"\x01\0"), 1, KafkaFault.STRUCTURE),
    "a number of six bytes": (
        record(40, rest=b"\x81" + b"\x80" * 4 + b"\0\1\0"), 1, KafkaFault.STRUCTURE
    ),
    "minus one header": (record(40, rest=b"\x01\x01\x01"), 1, KafkaFault.STRUCTURE),
    "a header that is not there": (record(40, rest=b"\x01\x01\x02"), 1, KafkaFault.STRUCTURE),
    "a name that is null": (record(40, rest=b"\x01\x01\x02\x01\x01"), 1, KafkaFault.STRUCTURE),
    "bytes behind the headers": (record(40, rest=b"\x01\x01\0\0"), 1, KafkaFault.STRUCTURE),
    "a time over 64 bits": (record(40, delta=(1 << 63) - 1), 1, KafkaFault.TIMESTAMP),
    "a time below 64 bits": (record(40, delta=-(1 << 63)), 1, KafkaFault.TIMESTAMP),
    "a million headers": (
        record(40, rest=b"\x01\x01" + zigzag(1 << 21)), 1, KafkaFault.MANY_HEADERS
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "with headers"])
def test_what_is_wrong_is_named(name: str, *, plain: bool) -> None:
    body, count, fault = REFUSED[name]
    headers = b"\0" if plain else b"\x02\x02n\x01"
    first = b"".join(record(index, rest=b"\x01\x06abc" + headers) for index in range(40))
    base = -5 if "below" in name else TIME_MS
    with pytest.raises(KafkaRecordError) as refused:
        validated(with_body(first + body, 40 + count, base))
    assert refused.value.fault is fault
    assert 40 <= refused.value.record <= 40 + count


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_plain_bytes_that_are_said_to_be_compressed_are_refused(codec: int) -> None:
    with pytest.raises(MalformedBatchError):
        validated(with_body(kafka_batch(PLAIN)[HEADER_SIZE:], len(PLAIN), codec=codec))


def test_a_key_may_be_asked_for() -> None:
    keyless = kafka_batch([*PLAIN, Record(b"value"), *PLAIN])
    validated(keyless)
    with pytest.raises(KafkaRecordError) as refused:
        validated(keyless, keyed=True)
    assert (refused.value.fault, refused.value.record) == (KafkaFault.NO_KEY, len(PLAIN))
    validated(kafka_batch(PLAIN), keyed=True)


def test_what_can_never_be_read_is_over_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    many = with_body(record() * 3, (1 << 20) + 1)
    with pytest.raises(OverLimitError):
        validated(many)
    inflating = with_body(gzip.compress(bytes(1 << 20)), 1, codec=1)
    from penstock.records.kafka import compression, validation

    small = functools.partial(compression.inflate_kafka, limit=1 << 16)
    monkeypatch.setattr(validation, "inflate_kafka", small)
    with pytest.raises(OverLimitError):
        validated(inflating)
    lying = bytearray(inflating)
    struct.pack_into("<I", lying, len(lying) - 4, 100)
    with pytest.raises(MalformedBatchError) as refused:
        validated(bytes(lying))
    assert not isinstance(refused.value, OverLimitError)


def test_the_latest_time_is_put_right_with_its_checksum() -> None:
    batch = bytearray(kafka_batch(PLAIN))
    set_max_timestamp(batch, 5)
    assert read_header(batch).max_timestamp == 5
    assert checksum_matches(batch)


MESSAGES = [
    (SingleMessageMetadata(partition_key="k", event_time=7, payload_size=0), b"payload"),
    (
        SingleMessageMetadata(properties=[KeyValue(key="a", value="b")], payload_size=0),
        b"other",
    ),
    (SingleMessageMetadata(payload_size=0, null_value=True), b""),
]
BATCH = batched(MESSAGES)
PULSAR_SAMPLES = {
    "batch": entry(metadata(num_messages_in_batch=3), BATCH),
    "single": entry(metadata(properties=[KeyValue(key="a", value="b")]), b"payload"),
}


def look_into(body: bytes, count: int) -> None:
    placed = memory().place(pulsar_batch(body, count=count))[HEADER_SIZE:]
    validate_pulsar(placed, read_entry(placed))


@given(st.sampled_from(sorted(PULSAR_SAMPLES)), st.integers(0), st.integers(0, 255))
def test_a_changed_byte_of_an_entry_is_refused_or_read(name: str, at: int, byte: int) -> None:
    body = bytearray(PULSAR_SAMPLES[name][6:])
    body[at % len(body)] = byte
    changed = bytes(body)
    try:
        parsed = read_entry(memoryview(changed))
        look_into(changed, 1)
    except (MalformedEntryError, MalformedBatchError):
        return
    count = parsed.message_count if parsed.is_batch else 1
    if parsed.metadata.HasField("marker_type") or parsed.is_chunk:
        return  # Which hold no records of their own.
    dropped = sum(each.compacted_out for each in plain_messages(parsed.payload, count))
    decoded = records.decode(pulsar_batch(changed, count=count))
    assert len(decoded) == (count - dropped if parsed.is_batch else count)


def plain_messages(payload: memoryview, count: int) -> list[SingleMessageMetadata]:
    """The metadata of a batch's messages, by protobuf's own parser, as far as they can be read."""
    found, at = [], 0
    for _ in range(count):
        size = int.from_bytes(payload[at : at + 4], "big")
        try:
            found.append(SingleMessageMetadata.FromString(bytes(payload[at + 4 : at + 4 + size])))
        except Exception:  # no batch
            break
        at += 4 + size + found[-1].payload_size
    return found


def test_entries_of_no_sense_are_refused() -> None:
    for payload, count, fields in (
        (b"no messages at all, but a checksum that fits", 2, {}),
        (BATCH[:-1], 3, {}),
        (BATCH + b"x", 3, {}),
        (BATCH, 2, {}),
        (BATCH, 4, {}),
        *(
            (BATCH, 3, {"compression": codec, "uncompressed_size": len(BATCH)})
            for codec in (1, 2, 3, 4)
        ),
    ):
        body = entry(metadata(num_messages_in_batch=count, **fields), payload)
        with pytest.raises(MalformedBatchError):
            look_into(body, count)


def test_what_is_encrypted_or_a_chunk_is_not_looked_into() -> None:
    from penstock.records.pulsar.metadata_pb2 import EncryptionKeys

    keys = [EncryptionKeys(key="k", value=b"v")]
    look_into(entry(metadata(num_messages_in_batch=2, encryption_keys=keys), b"secret " * 9), 2)
    chunk = {"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 90}
    look_into(entry(metadata(compression=1, uncompressed_size=90, **chunk), b"part"), 1)


IGGY = iggy_body([Record(b"payload", b"key", ((b"name", b"value"),)), *PLAIN])


def summed(body: bytearray) -> bytearray:
    """Calculate the checksums of frames and batch anew, as far as there are frames."""
    at, sums = 256, b""
    while at + 48 <= len(body):
        headers, payload = struct.unpack_from("<II", body, at + 32)
        end = min(len(body), at + 48 + headers + payload)
        struct.pack_into("<Q", body, at, xxh3_64_intdigest(bytes(body[at + 8 : end])))
        sums += body[at : at + 8]
        at = end
    head = bytes(body[:40] + body[48:52])
    struct.pack_into("<Q", body, 40, xxh3_64_intdigest(head + sums))
    return body


@given(st.integers(0), st.integers(0, 255))
def test_a_changed_byte_of_an_iggy_batch_is_refused_or_read(at: int, byte: int) -> None:
    body = bytearray(IGGY)
    body[at % len(body)] = byte
    try:
        facts = verify_iggy_batch(memory().place(bytes(summed(body))))
    except IggyBatchError:
        return
    times = {"base_timestamp": facts.first_timestamp // 1000, "max_timestamp": 1}
    header = build_header(Magic.IGGY, body, record_count=facts.message_count, **times)
    assert len(records.decode(bytes(header + body))) == 6
