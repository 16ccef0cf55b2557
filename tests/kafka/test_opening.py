"""A log that is not open yet keeps the order of what a client sends without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_dialog import TOPIC, Dialog, kafka_broker
from penstock.broker.topics.storage import Storage
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api
from penstock.log import Log


def batch(value: str = "value") -> bytearray:
    return encode_batch([Record(value.encode(), timestamp_ms=1)])


@pytest.fixture
async def dialog(tmp_path: Path) -> AsyncIterator[Dialog]:
    """After a restart: no log is open."""
    async with kafka_broker(tmp_path) as broker:
        first = Dialog(broker)
        await first.create_topic(partitions=2)
        for index in (0, 1):
            await first.produce(batch("first"), index)
    async with kafka_broker(tmp_path) as broker:
        yield Dialog(broker)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """No log of a partition 0 is opened before this is set."""
    opened = asyncio.Event()
    open_log = Storage.open_log

    async def when_allowed(self: Storage, *args: object) -> Log:
        if args[1] == 0:
            await opened.wait()
        return await open_log(self, *args)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Storage, "open_log", when_allowed)
    return opened


async def test_requests_are_written_in_their_order_however_late_a_log_opens(
    dialog: Dialog, gate: asyncio.Event
) -> None:
    partition = dialog.broker.topics.by_kafka_name(TOPIC)
    assert partition is not None
    await partition.partition(1).opened()
    answers = [
        dialog.send("Produce", 12, **dialog.produce_fields((0, batch("0")), (1, batch("1")))),
        dialog.send("Produce", 12, **dialog.produce_fields((1, batch("2")))),
        dialog.send("Produce", 12, **dialog.produce_fields((0, batch("3")))),
    ]
    await asyncio.sleep(0.01)
    answers.append(dialog.send("Produce", 12, **dialog.produce_fields((1, batch("4")))))
    gate.set()
    # Where the log has been opened and those that waited are about to go on, too.
    while not partition.partition(0).is_open:
        await asyncio.sleep(0)
        answers.append(dialog.send("Produce", 12, **dialog.produce_fields((1, batch("more")))))
    offsets = [
        [part.base_offset for part in (await answer).responses[0].partition_responses]
        for answer in answers
    ]
    assert offsets[:4] == [[1, 1], [2], [2], [3]]
    assert offsets[4:] == [[4 + number] for number in range(len(offsets) - 4)]
    assert not dialog.session._client.produces.waiting


async def test_metadata_needs_no_log(dialog: Dialog) -> None:
    request = api("Metadata").request
    (topic,) = (
        await dialog.ask("Metadata", topics=[request.MetadataRequestTopic(name=TOPIC)])
    ).topics
    assert [each.leader_epoch for each in topic.partitions] == [1, 1]
    found = dialog.broker.topics.by_kafka_name(TOPIC)
    assert found is not None
    assert not any(partition.is_open for partition in found.partitions)


async def test_whoever_needs_a_log_has_it_opened(dialog: Dialog) -> None:
    assert (await dialog.fetch(0)).high_watermark == 1
    request = api("ListOffsets").request
    asked = request.ListOffsetsTopic(
        name=TOPIC, partitions=[request.ListOffsetsPartition(partition_index=1, timestamp=-1)]
    )
    listed = await dialog.ask("ListOffsets", topics=[asked])
    assert listed.topics[0].partitions[0].offset == 1


async def test_sizes_are_those_of_all_logs(dialog: Dialog) -> None:
    (folder,) = (await dialog.ask("DescribeLogDirs", topics=None)).results
    sizes = [part.partition_size for part in folder.topics[0].partitions]
    assert len(sizes) == 2
    assert all(sizes)
    partitions = dialog.broker.topics.all()[0].partitions
    assert not any(partition.is_open for partition in partitions), "nobody needs them open"
    for partition in partitions:
        await partition.opened()
    assert [partition.size_bytes for partition in partitions] == sizes


async def test_a_log_that_can_not_be_opened_is_refused_in_kafkas_words(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> Log:
        raise OSError(5, "Input/output error", "/a/path")

    monkeypatch.setattr(Storage, "open_log", fail)
    refused = await dialog.produce(batch())
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.error_message is not None
    assert "/" not in refused.error_message
    assert (await dialog.fetch(0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
