"""Goal: what is acknowledged is in the log, and every other batch gets its own error.

Method: batches into a session without a socket; the log is looked at directly.
"""

from __future__ import annotations

import asyncio
import struct
import time
from pathlib import Path
from uuid import uuid4

import cramjam
import pytest

from kafka_dialog import TOPIC, Dialog, kafka_broker
from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.topics.partition import Partition
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.log import LogFailedError
from penstock.log.header import Magic, build_header
from penstock.session import PeerError


def partition(broker: Broker, index: int = 0, topic: str = TOPIC) -> Partition:
    found = broker.topics.by_kafka_name(topic)
    assert found is not None
    return found.partition(index)


def batch(value: bytes = b"value", count: int = 1) -> bytearray:
    return encode_batch([Record(value, timestamp_ms=1)] * count)


def changed(**fields: int) -> bytearray:
    """A sound batch but for some fields of its header."""
    values = {"record_count": 1, "base_timestamp": 1, "max_timestamp": 1, **fields}
    magic = Magic(values.pop("magic", Magic.KAFKA))
    body = batch()[61:]
    return build_header(magic, body, **values) + body


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("version", range(3, 13))
async def test_every_version_appends(dialog: Dialog, acks: int, version: int) -> None:
    await dialog.create_topic()
    first = await dialog.produce(batch(count=3), acks=acks, version=version)
    second = await dialog.produce(batch(), acks=acks, version=version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 3)
    assert second.log_append_time_ms == -1
    if version >= 5:
        assert second.log_start_offset == 0
    log = log_of(partition(dialog.broker))
    assert log.end_offset == 4
    assert acks == 1 or log.flushed_offset == 4


async def test_version_13_names_topics_by_id(dialog: Dialog) -> None:
    topic_id = await dialog.create_topic()
    request = api("Produce").request
    part = request.PartitionProduceData(index=0, records=batch())
    for asked, code in ((topic_id, 0), (uuid4(), ErrorCode.UNKNOWN_TOPIC_ID)):
        data = request.TopicProduceData(topic_id=asked, partition_data=[part])
        response = await dialog.ask("Produce", 13, acks=-1, timeout_ms=1, topic_data=[data])
        assert response.responses[0].topic_id == asked
        assert response.responses[0].partition_responses[0].error_code == code


async def test_several_partitions_are_flushed_together(dialog: Dialog) -> None:
    await dialog.create_topic(partitions=3)
    fields = dialog.produce_fields((0, batch()), (2, batch(count=2)), (7, batch()))
    response = await dialog.ask("Produce", 12, **fields)
    codes = [each.error_code for each in response.responses[0].partition_responses]
    assert codes == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert log_of(partition(dialog.broker, 2)).flushed_offset == 2


async def test_requests_that_do_not_wait_are_written_in_their_order(dialog: Dialog) -> None:
    await dialog.create_topic()
    waiting = [
        dialog.send("Produce", 12, **dialog.produce_fields((0, batch(b"%d" % number))))
        for number in range(50)
    ]
    answers = await asyncio.gather(*waiting)
    offsets = [each.responses[0].partition_responses[0].base_offset for each in answers]
    assert offsets == list(range(50))


async def test_acks_0_is_not_answered(dialog: Dialog) -> None:
    await dialog.create_topic()
    fields = dialog.produce_fields((0, batch()), acks=0)
    frame = dialog.frame("Produce", 9, api("Produce").request(**fields))
    dialog.take(frame)
    assert not dialog.unawaited
    assert partition(dialog.broker).end_offset == 1
    fields = dialog.produce_fields((5, batch()), acks=0)
    with pytest.raises(PeerError, match="acks 0"):
        dialog.take(dialog.frame("Produce", 9, api("Produce").request(**fields)))


async def test_other_acks_are_refused(dialog: Dialog) -> None:
    await dialog.create_topic()
    result = await dialog.produce(batch(), acks=2)
    assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert partition(dialog.broker).end_offset == 0


async def test_an_unknown_topic_is_refused(dialog: Dialog) -> None:
    result = await dialog.produce(batch())
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert result.base_offset == -1
    assert "orders" in result.error_message


def flipped() -> bytearray:
    flipped = batch()
    flipped[-1] ^= 1
    return flipped


def with_count(count: int) -> bytearray:
    return changed(record_count=count)


def with_last_delta() -> bytearray:
    lying = batch()
    struct.pack_into(">i", lying, 23, 5)
    return rechecked(lying)


def rechecked(data: bytearray) -> bytearray:
    from fastcrc.crc32 import iscsi

    struct.pack_into(">I", data, 17, iscsi(bytes(data[21:])))
    return data


def at_time(timestamp_ms: int) -> bytearray:
    return encode_batch([Record(b"value", timestamp_ms=timestamp_ms)])


HOUR_MS = 3_600_000

REFUSED = {
    "null": (None, ErrorCode.INVALID_RECORD),
    "empty": (b"", ErrorCode.INVALID_RECORD),
    "short": (bytes(60), ErrorCode.CORRUPT_MESSAGE),
    "two batches": (batch() + batch(), ErrorCode.INVALID_RECORD),
    "cut off": (batch()[:-1], ErrorCode.CORRUPT_MESSAGE),
    "zeros": (bytes(100), ErrorCode.CORRUPT_MESSAGE),
    "flipped bit": (flipped(), ErrorCode.CORRUPT_MESSAGE),
    "Pulsar's magic": (changed(magic=Magic.PULSAR), ErrorCode.INVALID_RECORD),
    "no records": (with_count(0), ErrorCode.INVALID_RECORD),
    "last offset": (with_last_delta(), ErrorCode.INVALID_RECORD),
    "control": (changed(attributes=0x20), ErrorCode.INVALID_RECORD),
    "transactional": (changed(attributes=0x10), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    "log append time": (changed(attributes=0x08), ErrorCode.INVALID_TIMESTAMP),
    "unknown codec": (changed(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "no sequence": (changed(producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "future": (at_time(time.time_ns() // 10**6 + 2 * HOUR_MS), 32),
    "large": (batch(bytes(1_048_588)), ErrorCode.MESSAGE_TOO_LARGE),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_batch_that_is_not_sound_is_refused(dialog: Dialog, name: str) -> None:
    await dialog.create_topic()
    records, code = REFUSED[name]
    result = await dialog.produce(records)
    assert result.error_code == code
    assert result.base_offset == -1
    assert result.error_message
    assert partition(dialog.broker).end_offset == 0


async def test_zstd_needs_version_7(dialog: Dialog) -> None:
    await dialog.create_topic()
    body = bytes(cramjam.zstd.compress(bytes(batch()[61:])))
    times = {"base_timestamp": 1, "max_timestamp": 1}
    zstd = build_header(Magic.KAFKA, body, record_count=1, attributes=4, **times) + body
    result = await dialog.produce(zstd, version=6)
    assert result.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    result = await dialog.produce(zstd, version=7)
    assert result.error_code == 0


async def test_a_topic_may_allow_larger_and_later_batches(dialog: Dialog) -> None:
    await dialog.create_topic(max_message_bytes="100", message_timestamp_after_max_ms="0")
    assert (await dialog.produce(batch())).error_code == 0
    result = await dialog.produce(batch(bytes(50)))
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE
    late = at_time(time.time_ns() // 10**6 + HOUR_MS // 2)
    assert (await dialog.produce(late)).error_code == ErrorCode.INVALID_TIMESTAMP


async def test_a_topic_that_was_terminated_takes_no_batch(dialog: Dialog) -> None:
    await dialog.create_topic()
    assert (await dialog.produce(batch())).error_code == 0
    (topic,) = dialog.broker.topics.all()
    await dialog.broker.topics.configure(topic, lambda _: {"terminated": "true"})
    assert (await dialog.produce(batch())).error_code == ErrorCode.POLICY_VIOLATION
    assert topic.partitions[0].end_offset == 1


async def test_an_idempotent_producer_may_repeat_but_leave_nothing_out(dialog: Dialog) -> None:
    await dialog.create_topic()
    response = await dialog.ask("InitProducerId", transactional_id=None)
    identity = {"producer_id": response.producer_id, "producer_epoch": response.producer_epoch}
    for sequence, offset, code in ((0, 0, 0), (1, 1, 0), (0, 0, 0), (1, 1, 0), (3, -1, 45)):
        result = await dialog.produce(changed(**identity, base_sequence=sequence))
        assert (result.base_offset, result.error_code) == (offset, code)
    await dialog.produce(changed(**{**identity, "producer_epoch": 1}, base_sequence=0))
    result = await dialog.produce(changed(**identity, base_sequence=2))
    assert result.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_a_repeated_batch_is_known_after_a_restart(tmp_path: Path) -> None:
    identity = {"producer_id": 7, "producer_epoch": 0}
    async with kafka_broker(tmp_path) as broker:
        await Dialog(broker).create_topic()
        for sequence in range(3):
            await Dialog(broker).produce(changed(**identity, base_sequence=sequence))
    async with kafka_broker(tmp_path) as broker:
        repeated = await Dialog(broker).produce(changed(**identity, base_sequence=1))
        assert (repeated.error_code, repeated.base_offset) == (0, 1)
        following = await Dialog(broker).produce(changed(**identity, base_sequence=3))
        assert (following.error_code, following.base_offset) == (0, 3)


async def test_producer_ids_are_new(dialog: Dialog) -> None:
    ids = set()
    for version in range(6):
        response = await dialog.ask("InitProducerId", version, transactional_id=None)
        assert (response.error_code, response.producer_epoch) == (0, 0)
        ids.add(response.producer_id)
    assert len(ids) == 6
    for fields, code in (
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": None, "producer_id": 5}, ErrorCode.INVALID_REQUEST),
    ):
        response = await dialog.ask("InitProducerId", 5, **fields)
        assert response.error_code == code


async def test_a_log_that_failed_is_a_storage_error(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await dialog.create_topic()

    def fail(offset: int) -> asyncio.Future[None]:
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(LogFailedError("the disk is gone"))
        return failed

    monkeypatch.setattr(partition(dialog.broker), "durable", fail)
    result = await dialog.produce(batch())
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert result.base_offset == -1
