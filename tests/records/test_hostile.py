"""Batches made to be costly: time grows as they do, and memory has a limit."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest
from cramjam import zstd

from penstock import records
from penstock.limits import DECODED_ROWS
from penstock.log.header import Magic, build_header
from penstock.records import MalformedBatchError
from penstock.records.pulsar.metadata_pb2 import KeyValue, SingleMessageMetadata
from stored_batches import (
    TIME,
    Headers,
    Record,
    at_offset,
    batched,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    pulsar_batch,
    read,
)

MIB = 1 << 20


def from_kafka(count: int, headers: Callable[[int], tuple[bytes, bytes | None]]) -> bytes:
    """One record with so many headers."""
    return kafka_batch([Record(b"v", None, tuple(headers(index) for index in range(count)))])


def from_iggy(count: int, kinds: int, header: Callable[[int], tuple[bytes, bytes | None]]) -> bytes:
    headers = tuple(header(index) for index in range(count))
    return iggy_batch(iggy_body([Record(b"v", None, headers)], kinds=kinds))


def from_pulsar(count: int, name: Callable[[int], str]) -> bytes:
    message = SingleMessageMetadata(
        payload_size=0, properties=[KeyValue(key=name(index), value="v") for index in range(count)]
    )
    body = entry(metadata(num_messages_in_batch=1), batched([(message, b"")]))
    return pulsar_batch(body)


ATTACKS: dict[str, Callable[[int], bytes]] = {
    "names that differ": lambda n: from_kafka(n, lambda i: (b"%d" % i, b"v")),
    "values that are no text": lambda n: from_kafka(n, lambda i: (b"%d" % i, b"\xff")),
    "one name": lambda n: from_kafka(n, lambda _: (b"n", b"v")),
    "nothing": lambda n: from_kafka(n, lambda _: (b"", None)),
    "packed": lambda n: from_kafka(n, lambda i: (b"penstock.header.%d" % i, b"bg==:dg==")),
    "parts": lambda n: from_kafka(n, lambda i: (b"penstock.header.1.%d" % (n - i), b"bg==")),
    "parts of one number": lambda n: from_kafka(n, lambda _: (b"penstock.header.1.1", b"bg==:-")),
    "base64": lambda n: from_kafka(n, lambda i: (b"penstock.base64.%d" % i, b"/w==")),
    "times": lambda n: from_kafka(n, lambda _: (b"penstock.timestamp", b"1")),
    "ids": lambda n: from_kafka(n, lambda _: (b"penstock.iggy.id", b"x" * 31)),
    "kinds": lambda n: from_kafka(n, lambda _: (b"penstock.iggy.kinds", b"22")),
    "producers": lambda n: from_kafka(n, lambda _: (b"penstock.pulsar.producer", b"v")),
    "a long key": lambda n: kafka_batch([Record(b"v", b"k" * (50 * n))]),
    "empty keys": lambda n: kafka_batch(n * [Record(b"v", b"")]),
    "properties that differ": lambda n: from_pulsar(n, str),
    "one property": lambda n: from_pulsar(n, lambda _: "n"),
    "names of numbers": lambda n: from_iggy(n, 0x11, lambda i: (b"\xff%d" % i, b"\xff")),
    "one name of numbers": lambda n: from_iggy(n, 0x11, lambda _: (b"\xff", b"\xff")),
}


def seconds(stored: bytes, target: Magic) -> float:
    """The processor's time of one conversion."""
    before = time.thread_time()
    join(records.convert(stored, target))
    return time.thread_time() - before


@pytest.mark.parametrize("attack", ATTACKS)
def test_time_grows_as_the_batch_does(attack: str) -> None:
    small, large = ATTACKS[attack](1_000), ATTACKS[attack](16_000)
    for target in set(Magic) - {small[16]}:
        least = min(seconds(small, target) for _ in range(3))
        assert min(seconds(large, target) for _ in range(3)) < 64 * max(least, 0.001)


@pytest.mark.parametrize("count", [15, 16, 17, 33, 300])
def test_what_pulsar_can_not_say_comes_back_from_crowded_records(count: int) -> None:
    headers: Headers = tuple(
        (b"n%d" % (index // 2), (b"\xff", b"text", None)[index % 3]) for index in range(count)
    )
    stored = kafka_batch([Record(b"v", None, headers)])
    for target in (Magic.PULSAR, Magic.IGGY):
        converted = join(records.convert(stored, target))
        assert read(records.decode(converted))[0].headers == headers


def of_empty_records(count: int) -> bytes:
    """A compressed batch of records without key, value and headers."""
    body = bytearray()
    for index in range(count):
        delta = 2 * index
        encoded = bytearray()
        while delta > 127:
            encoded.append(delta & 127 | 128)
            delta >>= 7
        encoded.append(delta)
        body += bytes([2 * (len(encoded) + 5), 0, 0]) + encoded + b"\1\1\0"
    times = {"base_timestamp": TIME // 1000, "max_timestamp": TIME // 1000}
    packed = bytes(zstd.compress(bytes(body)))
    header = build_header(Magic.KAFKA, packed, record_count=count, attributes=4, **times)
    return at_offset(header + packed, 7)


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("target", [Magic.PULSAR, Magic.IGGY])
def test_a_record_without_anything_takes_some_hundred_bytes(target: Magic) -> None:
    stored = of_empty_records(100_000)
    assert peak_bytes(lambda: join(records.convert(stored, target))) < 40 * MIB


def test_more_records_than_may_be_in_memory_take_none() -> None:
    stored = bytearray(of_empty_records(10_000))
    body = bytes(zstd.compress(bytes(7 * (DECODED_ROWS + 1))))
    count = DECODED_ROWS + 1
    header = build_header(
        Magic.KAFKA, body, record_count=count, attributes=4, base_timestamp=0, max_timestamp=0
    )
    stored += at_offset(header + body, 10_007)
    reached: list[int] = []

    def convert() -> None:
        with pytest.raises(MalformedBatchError, match="records or headers") as caught:
            reached.extend(map(len, records.convert(stored, Magic.PULSAR)))
        reached.append(caught.value.base_offset)

    assert peak_bytes(convert) < 40 * MIB
    assert len(reached) == 2
    assert reached[1] == 10_007


def test_what_every_record_repeats_is_bounded() -> None:
    messages = [(SingleMessageMetadata(payload_size=0), b"") for _ in range(2_000)]
    name = "x" * MIB
    body = entry(metadata(num_messages_in_batch=2_000, producer_name=name), batched(messages))
    stored = pulsar_batch(body, 3, 2_000)
    for target in (Magic.KAFKA, Magic.IGGY):
        with pytest.raises(MalformedBatchError, match="another encoding") as caught:
            join(records.convert(stored, target))
        assert (caught.value.base_offset, caught.value.next_offset) == (3, 2_003)
