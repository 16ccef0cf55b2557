"""Goal: in a session a consumer names what changes, and hears of what is new (KIP-227)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_dialog import TOPIC, Dialog
from penstock.broker.topics.partition import Partition
from penstock.clients.kafka.record_batch import Record, encode_batch
from penstock.kafka.wire import ErrorCode, api

LONG_MS = 60_000
TYPES = api("Fetch").request


def batch(value: bytes) -> bytearray:
    return encode_batch([Record(value, timestamp_ms=1)])


def asked(*parts: tuple[int, int], topic: str = TOPIC) -> list[Any]:
    partitions = [
        TYPES.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in parts
    ]
    return [TYPES.FetchTopic(topic=topic, partitions=partitions)]


class Consumer:
    """A session of a client that follows the rules; `heard` is what the last answer had."""

    def __init__(self, dialog: Dialog, **options: object) -> None:
        self.dialog = dialog
        self.options = {"max_wait_ms": 0, "min_bytes": 1, **options}
        self.id = self.epoch = 0

    async def begin(self, *parts: tuple[int, int]) -> Any:
        self.epoch = 0
        return await self.ask(asked(*parts))

    async def ask(
        self, topics: list[Any] | None = None, forgotten: tuple[int, ...] = (), **options: object
    ) -> Any:
        gone = [TYPES.ForgottenTopic(topic=TOPIC, partitions=[*forgotten])] if forgotten else []
        response = await self.dialog.ask(
            "Fetch",
            12,
            **{**self.options, **options},
            session_id=self.id,
            session_epoch=self.epoch,
            topics=topics or [],
            forgotten_topics_data=gone,
        )
        self.id, self.epoch = response.session_id, self.epoch + 1
        return response


def heard(response: Any) -> dict[int, tuple[int, int]]:
    """Of each partition in an answer its error and its high watermark."""
    assert response.error_code == 0
    return {
        each.partition_index: (each.error_code, each.high_watermark)
        for topic in response.responses
        for each in topic.partitions
    }


async def partitions(dialog: Dialog, count: int = 3) -> list[Partition]:
    await dialog.create_topic(partitions=count)
    (topic,) = dialog.broker.topics.all()
    return topic.partitions


async def test_a_client_hears_of_what_is_new(dialog: Dialog) -> None:
    parts = await partitions(dialog)
    consumer = Consumer(dialog)
    first = await consumer.begin((0, 0), (1, 0), (2, 0))
    assert first.session_id > 0
    assert heard(first) == {0: (0, 0), 1: (0, 0), 2: (0, 0)}
    assert heard(await consumer.ask()) == {}
    await dialog.produce(batch(b"a"), 1)
    response = await consumer.ask()
    assert heard(response) == {1: (0, 1)}
    assert response.responses[0].partitions[0].records
    assert heard(await consumer.ask()) == {1: (0, 1)}, "it was not asked for anything else"
    assert heard(await consumer.ask(asked((1, 1)))) == {}
    await parts[1].trim(1)
    (topic,) = (await consumer.ask()).responses
    assert [each.log_start_offset for each in topic.partitions] == [1]


async def test_partitions_are_added_and_forgotten(dialog: Dialog) -> None:
    await partitions(dialog)
    for index in range(3):
        await dialog.produce(batch(b"a"), index)
    consumer = Consumer(dialog)
    assert heard(await consumer.begin((0, 0))) == {0: (0, 1)}
    assert heard(await consumer.ask(asked((1, 0)))) == {0: (0, 1), 1: (0, 1)}
    assert heard(await consumer.ask(forgotten=(0, 2))) == {1: (0, 1)}
    last = await consumer.ask(forgotten=(1,))
    assert (heard(last), last.session_id) == ({}, 0), "a session of nothing is none"


async def test_those_that_had_messages_are_served_last(dialog: Dialog) -> None:
    await partitions(dialog)
    for index in range(3):
        await dialog.produce(batch(bytes(1000)), index)
    consumer = Consumer(dialog, max_bytes=1500)
    served = []
    response = await consumer.begin((0, 0), (1, 0), (2, 0))
    for _ in range(6):
        served += [
            each.partition_index
            for topic in response.responses
            for each in topic.partitions
            if each.records
        ]
        response = await consumer.ask()
    assert {served.count(index) for index in range(3)} == {2}


async def test_an_error_is_said_until_it_is_over(dialog: Dialog) -> None:
    (only,) = await partitions(dialog, 1)
    consumer = Consumer(dialog, max_wait_ms=LONG_MS)
    missing = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert heard(await consumer.begin((0, 0), (1, 0))) == {0: (0, 0), 1: missing}
    assert heard(await consumer.ask()) == {1: missing}, "and nobody waits with it"
    await dialog.broker.topics.add_partitions(only.topic, 2)
    assert heard(await consumer.ask(max_wait_ms=0)) == {1: (0, 0)}
    beyond = await consumer.ask(asked((1, 9)))
    assert heard(beyond) == {1: (ErrorCode.OFFSET_OUT_OF_RANGE, -1)}


async def test_a_deleted_topic_ends_the_wait(dialog: Dialog) -> None:
    (only,) = await partitions(dialog, 1)
    consumer = Consumer(dialog)
    await consumer.begin((0, 0))
    waiting = asyncio.create_task(consumer.ask(max_wait_ms=LONG_MS))
    await asyncio.sleep(0.02)
    await dialog.broker.topics.delete(only.topic)
    assert heard(await waiting) == {0: (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)}


async def test_an_empty_request_waits_for_all_of_them(dialog: Dialog) -> None:
    parts = await partitions(dialog)
    consumer = Consumer(dialog)
    await consumer.begin((0, 0), (1, 0), (2, 0))
    for index in range(3):
        waiting = asyncio.create_task(consumer.ask(max_wait_ms=LONG_MS))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        other = Dialog(dialog.broker)
        await other.produce(batch(b"a"), index)
        assert heard(await waiting) == {index: (0, 1)}
        await consumer.ask(asked((index, 1)))
    assert not any(part._listeners for part in parts)


async def test_an_empty_request_waits_for_enough(dialog: Dialog) -> None:
    await partitions(dialog, 2)
    consumer = Consumer(dialog)
    await consumer.begin((0, 0), (1, 0))
    waiting = asyncio.create_task(consumer.ask(max_wait_ms=LONG_MS, min_bytes=1500))
    other = Dialog(dialog.broker)
    await other.produce(batch(bytes(1000)), 0)
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await other.produce(batch(bytes(1000)), 1)
    assert heard(await waiting) == {0: (0, 1), 1: (0, 1)}
    in_time = await consumer.ask(asked((0, 1), (1, 1)), max_wait_ms=20, min_bytes=1500)
    assert heard(in_time) == {}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"session_id": 1}, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ({"session_epoch": 2}, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
async def test_a_request_of_another_session_is_refused(
    dialog: Dialog, change: dict[str, int], code: ErrorCode
) -> None:
    await partitions(dialog)
    consumer = Consumer(dialog)
    await consumer.begin((0, 0))
    fields = {"session_id": consumer.id, "session_epoch": 1, "max_wait_ms": LONG_MS, **change}
    refused = await dialog.ask("Fetch", 12, **fields)
    assert (refused.error_code, refused.session_id, refused.responses) == (code, 0, [])
    assert heard(await consumer.ask()) == {}, "the session is as it was"
    other = await Dialog(dialog.broker).ask("Fetch", 12, session_id=consumer.id, session_epoch=2)
    assert other.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_topics_are_named_in_one_way(dialog: Dialog) -> None:
    await partitions(dialog)
    consumer = Consumer(dialog)
    await consumer.begin((0, 0))
    by_id = await dialog.ask("Fetch", 13, session_id=consumer.id, session_epoch=1)
    assert by_id.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


async def test_epochs_begin_again_after_the_last(dialog: Dialog) -> None:
    await partitions(dialog)
    consumer = Consumer(dialog)
    await consumer.begin((0, 0))
    session = dialog.session._client.fetch_session
    assert session is not None
    session._epoch, consumer.epoch = (1 << 31) - 2, (1 << 31) - 1
    assert heard(await consumer.ask()) == {}
    consumer.epoch = 1
    assert heard(await consumer.ask()) == {}


async def test_a_session_ends_with_a_full_request(dialog: Dialog) -> None:
    await partitions(dialog)
    account = dialog.broker.memory.clients
    consumer = Consumer(dialog)
    await consumer.begin(*((index, 0) for index in range(3)))
    first = consumer.id
    await consumer.begin((0, 0))
    assert consumer.id not in {0, first}
    final = await dialog.ask("Fetch", 12, session_id=consumer.id, session_epoch=-1)
    assert (final.error_code, final.session_id) == (0, 0)
    assert dialog.session._client.fetch_session is None
    assert account.used == 0


async def test_there_is_no_session_where_there_is_no_room(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitions(dialog)
    monkeypatch.setattr("penstock.limits.KAFKA_SESSION_PARTITIONS", 2)
    consumer = Consumer(dialog)
    assert (await consumer.begin((0, 0), (1, 0), (2, 0))).session_id == 0
    assert (await consumer.begin((0, 0), (0, 0))).session_id == 0, "it has each partition once"
    assert (await consumer.begin((0, 0), (1, 0))).session_id > 0
    ended = await consumer.ask(asked((2, 0)))
    assert (heard(ended), ended.session_id) == ({}, 0)
