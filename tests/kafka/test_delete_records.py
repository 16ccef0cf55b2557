"""Goal: DeleteRecords moves the start of partitions, for everybody and for good."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from broker_process import BrokerProcess
from kafka_dialog import TOPIC, Dialog, kafka_broker
from patience import PATIENCE_SECONDS
from penstock.broker.topics import settling
from penstock.broker.topics.partition import Partition
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.handlers import api_21_delete_records
from penstock.kafka.wire import ErrorCode, api

EARLIEST = -2


def batch(value: bytes) -> bytearray:
    return encode_batch([Record(value, timestamp_ms=1)])


async def delete(dialog: Dialog, offset: int, partition: int = 0, topic: str = TOPIC) -> list[int]:
    types = api("DeleteRecords").request
    asked = types.DeleteRecordsTopic(
        name=topic,
        partitions=[types.DeleteRecordsPartition(partition_index=partition, offset=offset)],
    )
    response = await dialog.ask("DeleteRecords", topics=[asked], timeout_ms=1000)
    ((result,),) = [each.partitions for each in response.topics]
    return [result.error_code, result.low_watermark]


async def test_the_start_moves_and_stays(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        await dialog.create_topic()
        for number in range(5):
            await dialog.produce(batch(b"%d" % number))
        assert await delete(dialog, 2) == [0, 2]
        assert await delete(dialog, 1) == [0, 2], "what is gone does not come back"
        assert (await dialog.fetch(1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (await dialog.fetch(2)).log_start_offset == 2
    async with kafka_broker(tmp_path) as broker:
        dialog = Dialog(broker)
        assert (await dialog.fetch(1)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await delete(dialog, -1) == [0, 5]
        assert (await dialog.produce(batch(b"5"))).base_offset == 5


@pytest.mark.parametrize("asked", [-1, 5])
async def test_what_was_answered_before_it_was_safe_goes_too(dialog: Dialog, asked: int) -> None:
    await dialog.create_topic()
    for number in range(5):
        await dialog.produce(batch(b"%d" % number), acks=1)
    assert await delete(dialog, asked) == [0, 5]


async def test_all_partitions_of_a_request_become_safe_together(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_for = []

    async def settled(partitions: Collection[Partition]) -> None:
        waited_for.append({each.index for each in partitions})
        await settling.settled(partitions)

    monkeypatch.setattr(api_21_delete_records, "settled", settled)
    await dialog.create_topic(partitions=3)
    for index in range(3):
        await dialog.produce(batch(b"x"), partition=index, acks=1)
    types = api("DeleteRecords").request
    partitions = [
        types.DeleteRecordsPartition(partition_index=index, offset=1) for index in (0, 1, 2, 3)
    ]
    asked = types.DeleteRecordsTopic(name=TOPIC, partitions=partitions)
    (topic,) = (await dialog.ask("DeleteRecords", topics=[asked], timeout_ms=1000)).topics
    assert [each.low_watermark for each in topic.partitions] == [1, 1, 1, -1]
    assert waited_for == [{0, 1, 2}]


@pytest.mark.parametrize(
    ("offset", "place", "code"),
    [
        (1, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-2, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, {"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, {"topic": "missing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, {"topic": "compacted"}, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_what_can_not_be_deleted(
    dialog: Dialog, offset: int, place: dict[str, object], code: ErrorCode
) -> None:
    await dialog.create_topic()
    await dialog.create_topic("compacted", cleanup_policy="compact")
    assert await delete(dialog, offset, **place) == [code, -1]  # type: ignore[arg-type]  # any


async def test_a_topic_that_is_compacted_and_cut_can_be_cut(dialog: Dialog) -> None:
    await dialog.create_topic(cleanup_policy="compact,delete")
    assert await delete(dialog, 0) == [0, 0]


def test_confluent_deletes_records(shared_server: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    admin.create_topics([NewTopic("cut", 1)])["cut"].result()
    producer = Producer({"bootstrap.servers": shared_server.kafka})
    for number in range(10):
        producer.produce("cut", str(number))
    assert producer.flush(PATIENCE_SECONDS) == 0
    place = TopicPartition("cut", 0, 4)
    assert admin.delete_records([place])[place].result().low_watermark == 4
    place = TopicPartition("cut", 0)
    offsets = admin.list_offsets({place: OffsetSpec.earliest()})
    assert offsets[place].result().offset == 4
    place = TopicPartition("cut", 0, OFFSET_END)
    assert admin.delete_records([place])[place].result().low_watermark == 10
