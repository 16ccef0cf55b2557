"""Goal: no batch is stored that its readers would stop at, and nothing else is refused for it.

Method: batches into a session without a socket, as a producer of ill will makes them; one real
consumer at the end reads what was produced around a batch that was refused.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import random
import socket
import time
import tracemalloc

import confluent_kafka
import pytest

from kafka_dialog import TOPIC, Dialog
from patience import PATIENCE_SECONDS
from penstock import limits, records
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka import records_at_fault
from penstock.kafka.handlers import api_00_produce
from penstock.kafka.wire import ErrorCode, api, decode_response, encode_request
from penstock.log.header import HEADER_SIZE, Magic, build_header, walk
from penstock.memory import Reading
from penstock.testing import Penstock
from stored_batches import Record as Stored
from stored_batches import kafka_batch

GARBAGE = b"no records at all, but a checksum that fits"


def with_body(body: bytes, codec: int = 0, count: int = 1, **fields: int) -> bytearray:
    times = {"base_timestamp": 1, "max_timestamp": 1} | fields
    return build_header(Magic.KAFKA, body, record_count=count, attributes=codec, **times) + body


def batch(*values: bytes, key: bytes | None = None) -> bytearray:
    return encode_batch([Record(value, key, timestamp_ms=1) for value in values])


def end_of(dialog: Dialog) -> int:
    topic = dialog.broker.topics.by_kafka_name(TOPIC)
    assert topic is not None
    return topic.partition(0).end_offset


BAD = {
    "garbage": with_body(GARBAGE),
    "fewer records": with_body(bytes(batch(b"a", b"b")[HEADER_SIZE:]), count=3),
    "more records": with_body(bytes(batch(b"a", b"b")[HEADER_SIZE:])),
    "large garbage": with_body(GARBAGE * ((3 << 20) // len(GARBAGE))),
    **{
        f"plain bytes as codec {codec}": with_body(bytes(batch(b"a")[HEADER_SIZE:]), codec)
        for codec in (1, 2, 3, 4)
    },
    "compressed garbage": with_body(gzip.compress(GARBAGE), 1),
}


@pytest.mark.parametrize("name", BAD)
async def test_garbage_with_a_sound_checksum_is_refused(dialog: Dialog, name: str) -> None:
    await dialog.create_topic(max_message_bytes=str(1 << 24))
    result = await dialog.produce(bytearray(BAD[name]))
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert end_of(dialog) == 0
    assert (await dialog.produce(batch(b"after"))).base_offset == 0


async def test_the_record_at_fault_is_named_from_version_8_on(dialog: Dialog) -> None:
    await dialog.create_topic(cleanup_policy="compact")
    keyless = encode_batch([Record(b"v", b"k"), Record(b"v"), Record(b"v", b"k")])
    for version in (3, 8, 12):
        result = await dialog.produce(bytearray(keyless), version=version)
        assert result.error_code == ErrorCode.INVALID_RECORD
        named = [
            (each.batch_index, each.batch_index_error_message) for each in result.record_errors
        ]
        assert [index for index, _ in named] == ([1] if version >= 8 else [])
        assert all("compacted" in text for _, text in named)
    assert (await dialog.produce(batch(b"v", key=b"k"))).error_code == 0
    assert (await dialog.produce(batch(b"v", key=b""))).error_code == 0


@pytest.mark.parametrize("codec", [0, 1])
async def test_all_records_without_a_key_are_named(
    dialog: Dialog, codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dialog.create_topic(cleanup_policy="compact")
    keys = [None, b"k", None, b"", None]
    sent = kafka_batch([Stored(b"v", key) for key in keys], codec=codec)
    result = await dialog.produce(bytearray(sent))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in result.record_errors] == [0, 2, 4]
    monkeypatch.setattr(records_at_fault, "KAFKA_RECORDS_NAMED", 2)
    result = await dialog.produce(bytearray(sent))
    assert [each.batch_index for each in result.record_errors] == [0, 2]


async def test_what_can_not_be_read_behind_it_names_the_first_without_a_key(
    dialog: Dialog,
) -> None:
    await dialog.create_topic(cleanup_policy="compact")
    body = bytes(batch(b"a", b"b")[HEADER_SIZE:]) + GARBAGE
    result = await dialog.produce(with_body(body, count=3))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in result.record_errors] == [0]


async def test_all_records_of_too_late_a_time_are_named(dialog: Dialog) -> None:
    await dialog.create_topic(message_timestamp_after_max_ms="1000")
    late = time.time_ns() // 1_000_000 + 3_600_000
    sent = encode_batch([Record(b"v", timestamp_ms=each) for each in (1, late, 2, late)])
    result = await dialog.produce(sent)
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in result.record_errors] == [1, 3]
    assert end_of(dialog) == 0


async def test_a_key_is_asked_for_on_compacted_topics_only(dialog: Dialog) -> None:
    await dialog.create_topic()
    assert (await dialog.produce(batch(b"v"))).error_code == 0


async def test_a_wrong_latest_time_is_put_right(dialog: Dialog) -> None:
    await dialog.create_topic()
    body = bytes(batch(b"a")[HEADER_SIZE:])
    result = await dialog.produce(with_body(body, max_timestamp=4_000_000_000_000))
    assert result.error_code == 0
    fetched = (await dialog.fetch(0)).records
    ((_, header),) = walk(bytes(fetched))
    assert header.max_timestamp == 1
    assert len(records.decode(bytes(fetched))) == 1


async def test_a_topic_may_go_without(dialog: Dialog) -> None:
    await dialog.create_topic(penstock_validate_records="false")
    assert (await dialog.produce(with_body(GARBAGE))).error_code == 0


async def test_what_inflates_to_too_much_is_too_large(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.records.kafka import compression
    from penstock.records.kafka import validation as of_records

    def limited(codec: int, body: memoryview) -> object:
        return compression.inflate_kafka(codec, body, 1 << 20)

    await records.prepare()
    monkeypatch.setattr(of_records, "inflate_kafka", limited)
    await dialog.create_topic()
    large = kafka_batch([Stored(bytes(2 << 20))], codec=1)
    result = await dialog.produce(bytearray(large))
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE


class Threads:
    """Counts the looks that were taken in a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = 0
        self._in_thread = api_00_produce.in_thread
        monkeypatch.setattr(api_00_produce, "in_thread", self._counted)

    async def _counted(self, *arguments: object) -> object:
        self.looks += 1
        return await self._in_thread(*arguments)  # type: ignore[arg-type]  # as they are


async def test_what_takes_long_is_looked_at_in_a_thread_and_keeps_its_order(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await records.prepare()
    await dialog.create_topic()
    threads = Threads(monkeypatch)
    noise = random.Random(1)
    large = kafka_batch([Stored(noise.randbytes(1000)) for _ in range(100)], codec=1)
    batches = [large if number % 3 == 0 else bytes(batch(b"small")) for number in range(12)]
    waiting = [
        dialog.send("Produce", 12, **dialog.produce_fields((0, bytearray(each))))
        for each in batches
    ]
    answers = await asyncio.gather(*waiting)
    offsets = [each.responses[0].partition_responses[0].base_offset for each in answers]
    assert offsets == sorted(offsets)
    assert offsets[:4] == [0, 100, 101, 102]
    assert threads.looks == 4


async def test_a_small_body_that_inflates_far_is_not_inflated_on_the_loop(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await records.prepare()
    await dialog.create_topic()
    threads = Threads(monkeypatch)
    for codec in (1, 2, 3, 4):
        far = kafka_batch([Stored(bytes(2 * limits.INFLATED_AT_ONCE_BYTES))], codec=codec)
        assert (await dialog.produce(bytearray(far))).error_code == 0
        near = kafka_batch([Stored(bytes(1000))], codec=codec)
        assert (await dialog.produce(bytearray(near))).error_code == 0
    assert threads.looks == 4


async def test_an_idempotent_producer_may_repeat_what_was_looked_at(dialog: Dialog) -> None:
    await dialog.create_topic()
    body = gzip.compress(bytes(batch(bytes(300_000))[HEADER_SIZE:]))
    identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    for _ in range(2):
        result = await dialog.produce(with_body(body, 1, **identity))
        assert (result.error_code, result.base_offset) == (0, 0)
    assert end_of(dialog) == 1


async def test_the_memory_for_inflating_is_reserved_and_given_back(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dialog.create_topic()
    reserved: list[int] = []
    reserve = Reading.reserve

    async def noted(held: Reading, size: int) -> None:
        await reserve(held, size)
        reserved.append(held.size)

    monkeypatch.setattr(Reading, "reserve", noted)
    far = kafka_batch([Stored(bytes(8 << 20))], codec=1)
    assert (await dialog.produce(bytearray(far))).error_code == 0
    assert [size >> 20 for size in reserved] == [8]
    assert dialog.broker.memory.reads.used == 0


@pytest.mark.parametrize("name", ["large garbage", "compressed"])
async def test_what_is_refused_leaves_nothing_behind(dialog: Dialog, name: str) -> None:
    await dialog.create_topic()
    compressed = with_body(gzip.compress(bytes(20 << 20), 1), 1)
    bad = BAD["large garbage"] if name == "large garbage" else compressed
    await dialog.produce(bytearray(bad))  # Loads what is loaded once.
    gc.disable()
    tracemalloc.start()
    try:
        result = await dialog.produce(bytearray(bad))
        assert result.error_code == ErrorCode.INVALID_RECORD
        del result
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
        gc.enable()


def asked(sock: socket.socket, batch: bytearray, topic: str) -> tuple[int, int]:
    """Produce one batch over a socket; return error and offset."""
    types = api("Produce").request
    part = types.PartitionProduceData(index=0, records=batch)
    data = types.TopicProduceData(name=topic, partition_data=[part])
    request = types(acks=-1, timeout_ms=1000, topic_data=[data])
    sock.sendall(b"".join(map(bytes, encode_request(api("Produce"), 9, 1, "ill", request))))
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL))
    answer = memoryview(b"\0" * 4 + sock.recv(size, socket.MSG_WAITALL))
    (result,) = decode_response(api("Produce"), 9, answer)[1].responses[0].partition_responses
    return result.error_code, result.base_offset


def test_a_consumer_reads_on_past_what_was_refused() -> None:
    with Penstock() as broker:
        broker.create_topic("orders")
        host, _, port = broker.kafka.rpartition(":")
        with socket.create_connection((host, int(port))) as sock:
            assert asked(sock, batch(b"before"), "orders") == (0, 0)
            for bad in (with_body(GARBAGE), BAD["plain bytes as codec 1"], BAD["large garbage"]):
                assert asked(sock, bad, "orders")[0] in (87, 10)
            assert asked(sock, batch(b"after"), "orders") == (0, 1)
        settings = {"bootstrap.servers": broker.kafka, "group.id": "g"}
        consumer = confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        read = [consumer.poll(PATIENCE_SECONDS), consumer.poll(PATIENCE_SECONDS)]
        consumer.close()
    assert [(each.value(), each.offset()) for each in read if each] == [
        (b"before", 0),
        (b"after", 1),
    ]
