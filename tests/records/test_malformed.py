"""Bytes that no producer means: nothing but MalformedBatchError comes of them.

The batches lie in memory that ends where the process may not read on, so that a kernel that looks
behind its buffer ends the test run.
"""

from __future__ import annotations

import functools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import records
from penstock.log.header import HEADER_SIZE, Magic, build_header
from penstock.records import MalformedBatchError
from penstock.records.iggy.batch import IggyBatchError, verify_iggy_batch
from penstock.records.pulsar.metadata_pb2 import KeyValue, SingleMessageMetadata
from stored_batches import (
    GuardedMemory,
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

HEADERS = ((b"name", b"value"), (b"other", b"\x01\xff"))
RECORDS = [Record(b"payload", b"key", HEADERS), Record(b"x", None), Record(b"y" * 70, b"\xff")]
MESSAGES = [
    (
        SingleMessageMetadata(
            partition_key="a2V5", partition_key_b64_encoded=True, event_time=7, ordering_key=b"o",
            properties=[KeyValue(key="penstock.header.1", value="eA==:-")], payload_size=0,
        ),
        b"payload",
    ),
    (SingleMessageMetadata(payload_size=0, null_value=True), b""),
]  # fmt: skip


def batches() -> dict[str, bytes]:
    batch = entry(metadata(num_messages_in_batch=2), batched(MESSAGES))
    single = entry(metadata(partition_key="key", schema_version=b"1"), b"payload")
    return {
        "kafka": kafka_batch(RECORDS),
        **{f"kafka-{codec}": kafka_batch(RECORDS, codec=codec) for codec in (1, 2, 3, 4)},
        "pulsar": pulsar_batch(batch, count=2),
        "pulsar-single": pulsar_batch(single),
        "iggy": iggy_batch(iggy_body(RECORDS), count=3),
    }


SAMPLES = batches()


@functools.cache
def memory() -> GuardedMemory:
    return GuardedMemory()


def survives(stored: bytes) -> None:
    placed = memory().place(stored)
    for target in Magic:
        try:
            for converted in records.convert(placed, target):
                records.decode(converted)
        except MalformedBatchError:
            pass


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, bytes]:
    """A sample with some bytes changed behind the fields that say where the batch ends."""
    name = draw(st.sampled_from(sorted(SAMPLES)))
    stored = bytearray(SAMPLES[name])
    first = HEADER_SIZE - 4 if draw(st.booleans()) else 21
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(first, len(stored) - 1))
        stored[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    return name, bytes(stored)


@settings(max_examples=150)
@given(mutations())
def test_changed_bytes(mutated: tuple[str, bytes]) -> None:
    survives(mutated[1])


@settings(max_examples=100)
@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 2000))
def test_bodies_that_end_early(name: str, size: int) -> None:
    stored = bytearray(SAMPLES[name])[: HEADER_SIZE + size]
    stored[8:12] = (len(stored) - 12).to_bytes(4, "big")
    survives(bytes(stored))


@settings(max_examples=100)
@given(st.sampled_from(sorted(SAMPLES)), st.binary(max_size=400), st.integers(0, 3))
@example("kafka", b"\xff" * 10, 1)
@example("pulsar", b"\xff\xff\xff\xff", 1)
def test_bodies_of_noise(name: str, body: bytes, count: int) -> None:
    stored = bytearray(SAMPLES[name])[:HEADER_SIZE] + body
    stored[8:12] = (len(stored) - 12).to_bytes(4, "big")
    stored[57:61] = count.to_bytes(4, "big")
    survives(bytes(stored))


@settings(max_examples=200)
@given(st.integers(0, 2000), st.integers(0, 255))
def test_an_iggy_batch_with_any_changed_byte_is_refused(at: int, byte: int) -> None:
    body = bytearray(iggy_body(RECORDS))
    at %= len(body)
    if body[at] == byte:
        return
    body[at] = byte
    with pytest.raises(IggyBatchError):
        verify_iggy_batch(memory().place(bytes(body)))


@pytest.mark.parametrize("stored", [b"\0", bytes(61), bytes(60), SAMPLES["kafka"][:-1]])
def test_what_is_no_run_of_batches(stored: bytes) -> None:
    with pytest.raises(MalformedBatchError):
        records.decode(stored)


def test_nothing_has_no_records() -> None:
    assert len(records.decode(b"")) == 0
    assert list(records.convert(b"", Magic.IGGY)) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_a_count_without_room_takes_no_memory(name: str) -> None:
    stored = bytearray(SAMPLES[name])
    stored[23:27] = (0x7FFFFFFE).to_bytes(4, "big")
    stored[57:61] = (0x7FFFFFFF).to_bytes(4, "big")
    with pytest.raises(MalformedBatchError):
        records.decode(stored)


def test_the_error_says_where_the_batch_is() -> None:
    good, bad = kafka_batch(RECORDS, 10), bytearray(kafka_batch(RECORDS, 13))
    bad[-1] ^= 0xFF
    with pytest.raises(MalformedBatchError, match="batch at offset 13") as caught:
        records.decode(good + bytes(bad))
    assert (caught.value.base_offset, caught.value.next_offset) == (13, 16)


@pytest.mark.parametrize("magic", Magic)
def test_a_batch_of_nothing_is_a_gap(magic: Magic) -> None:
    """As compaction leaves it, and as a broker fills a place that says nothing to the reader."""
    times = {"base_timestamp": 0, "max_timestamp": 0}
    empty = at_offset(build_header(magic, b"", record_count=0, last_offset_delta=4, **times), 10)
    run = kafka_batch(RECORDS, 7) + empty + kafka_batch(RECORDS, 15)
    assert records.decode(run).offsets.tolist() == [7, 8, 9, 15, 16, 17]


def test_an_unknown_encoding_is_refused() -> None:
    stored = bytearray(SAMPLES["kafka"])
    stored[16] = 3
    with pytest.raises(MalformedBatchError):
        records.decode(stored)
