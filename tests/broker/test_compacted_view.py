"""Goal: where compaction on request has to keep messages for a subscription, who asks for the
compacted view finds the last message of each key, everybody else all of them.

Method: entries of five messages, of which the second and the fourth have newer ones behind them,
and the third is deleted; a subscription that has acknowledged nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from patience import until
from penstock.broker.broker import Broker
from penstock.broker.compaction import cleaner, due, process
from penstock.broker.compaction.view import CompactedView
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.selectors.key_shared import AS_THEY_SPREAD
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log import LogConfig
from penstock.log.header import Magic
from penstock.pulsar.positions import last_message_id
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from receivers import consumer, receiver_of, shown
from running import running
from stored_batches import TIME, batched, entry, metadata, pulsar_batch

NODE = BrokerSettings(log=LogConfig(segment_bytes=1_000), compaction_check_ms=86_400_000)
NOW_MS = TIME // 1000 + 60_000
BATCHES = (["a0", "b0", "c0", "d0", "e0"], ["b1", "c", "d1"], ["f", "g0"], ["h0", "h"])
"""Values of which the first letter is the key; one that is all there is deletes it."""
ALL = dict(enumerate(value[1:] and value for batch in BATCHES for value in batch))
LEFT = {0: "a0", 4: "e0", 5: "b1", 7: "d1", 9: "g0"}


def of_pulsar(values: list[str]) -> bytearray:
    messages = [
        (SingleMessageMetadata(payload_size=0, partition_key=each[0]), each[1:] and each)
        for each in values
    ]
    said = metadata(num_messages_in_batch=len(values))
    payload = batched([(single, value.encode()) for single, value in messages])
    return bytearray(pulsar_batch(entry(said, payload), count=len(values)))


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with running(tmp_path, NODE) as broker:
        broker.compaction.now_ms = lambda: NOW_MS
        yield broker


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = topic.partitions[0]
    await subscribed(broker, partition, "slow")
    await write(partition, BATCHES)
    return partition


async def write(partition: Partition, batches: tuple[list[str], ...]) -> None:
    for values in batches:
        partition.append([of_pulsar(values)])
    await partition.flushed()


async def compact(broker: Broker, at_ms: int = NOW_MS) -> None:
    (topic,) = broker.topics.all()
    asked = {"compaction_requested_ms": str(at_ms)}
    await broker.topics.configure(topic, lambda _: topic.config.explicit | asked)
    await broker.compaction.check()


async def subscribed(broker: Broker, partition: Partition, name: str) -> Subscription:
    request = SubscribeRequest(name, SubscriptionKind.EXCLUSIVE, 0)
    return await broker.subscriptions.create(partition, request)


async def came(subscription: Subscription, last: int, *, compacted: bool = True) -> Consumer:
    """Return a new consumer that has got the message at an offset."""
    member = consumer("c", reads_compacted=compacted)
    subscription.attach(member, SubscriptionKind.EXCLUSIVE, Magic.PULSAR, AS_THEY_SPREAD)
    subscription.add_permits(member, 100)
    await until(lambda: last in texts(member))
    return member


def texts(member: Consumer) -> dict[int, str]:
    """Return what a consumer was sent, by offset."""
    return {offset: payload.decode() for offset, payload in shown(member).items()}


async def read(
    broker: Broker, partition: Partition, last: int, *, compacted: bool = True
) -> dict[int, str]:
    """Return what a new subscription is sent."""
    name = f"s{len(broker.subscriptions.of_partition(partition))}"
    return texts(await came(await subscribed(broker, partition, name), last, compacted=compacted))


async def test_who_asks_for_the_view_gets_the_last_of_each_key(
    broker: Broker, partition: Partition
) -> None:
    await compact(broker)
    assert await read(broker, partition, 9) == LEFT
    assert await read(broker, partition, 11, compacted=False) == ALL
    slow = broker.subscriptions.get(partition, "slow")
    assert slow is not None
    assert texts(await came(slow, 11, compacted=False)) == ALL


async def test_what_came_after_the_request_is_there_as_it_is(
    broker: Broker, partition: Partition
) -> None:
    await compact(broker)
    await write(partition, (["a1", "a2"],))
    assert await read(broker, partition, 13) == LEFT | {12: "a1", 13: "a2"}
    await compact(broker, NOW_MS + 1)
    left = {offset: value for offset, value in LEFT.items() if offset}
    assert await read(broker, partition, 13) == left | {13: "a2"}


async def test_a_durable_subscription_has_no_backlog_of_what_it_is_not_shown(
    broker: Broker, partition: Partition
) -> None:
    await compact(broker)
    subscription = await subscribed(broker, partition, "s")
    member = await came(subscription, 9)
    assert member.permits == 100 - len(LEFT)
    for offset in receiver_of(member).offsets:
        await subscription.acknowledge(offset)
    assert subscription.backlog == 0
    assert subscription.cursor.position == 12


async def test_what_comes_again_is_what_the_view_has_by_now(
    broker: Broker, partition: Partition
) -> None:
    subscription = await subscribed(broker, partition, "s")
    member = await came(subscription, 11)
    await compact(broker)
    receiver_of(member).deliveries.clear()
    subscription.redeliver(member, None)
    await until(lambda: subscription.backlog == len(LEFT))
    assert texts(member) == LEFT


async def test_the_last_message_of_the_view_is_one_that_is_in_it(
    broker: Broker, partition: Partition
) -> None:
    await compact(broker)
    last = await last_message_id(partition, compacted=True)
    assert (last.entryId, last.batch_index) == (8, 1)
    last = await last_message_id(partition)
    assert (last.entryId, last.batch_index) == (10, 1)
    await write(partition, (["i0", "j0", "j"],))
    await compact(broker, NOW_MS + 1)
    last = await last_message_id(partition, compacted=True)
    assert (last.entryId, last.batch_index) == (12, 0)


async def test_there_is_no_last_message_of_an_empty_view(broker: Broker) -> None:
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    await write(topic.partitions[0], (["a0", "a"],))
    await compact(broker)
    last = await last_message_id(topic.partitions[0], compacted=True)
    assert last.entryId == (1 << 64) - 1


async def test_a_view_outlives_a_crash(tmp_path: Path) -> None:
    async with running(tmp_path / "first", NODE) as broker:
        broker.compaction.now_ms = lambda: NOW_MS
        topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
        await subscribed(broker, topic.partitions[0], "slow")
        await write(topic.partitions[0], BATCHES)
        await compact(broker)
        crashed = shutil.copytree(tmp_path / "first", tmp_path / "crashed")
    async with running(crashed, NODE) as broker:
        (partition,) = broker.topics.all()[0].partitions
        await partition.opened()
        assert await read(broker, partition, 9) == LEFT


async def test_several_passes_and_a_process_make_the_same_view(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner, "COMPACTION_MAP_BYTES", 0)
    monkeypatch.setattr(process, "COMPACTED_IN_THREAD_BYTES", 0)
    rounds = tuple([f"{chr(97 + each)}{turn}" for each in range(20)] for turn in range(3))
    await write(partition, rounds)
    await compact(broker)
    assert partition.compaction.view.end == 12 + 60
    last = dict(zip(range(52, 72), rounds[-1], strict=True))
    assert await read(broker, partition, 71) == last


async def test_what_no_view_has_room_for_is_shown(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await compact(broker)
    monkeypatch.setattr(due, "COMPACTED_VIEW_BYTES", 2)
    await write(partition, (["a1", "a2", "a3", "a4", "a5"],))
    await compact(broker, NOW_MS + 1)
    assert partition.compaction.view.end == 12
    assert await read(broker, partition, 16) == LEFT | {12 + n: f"a{n + 1}" for n in range(5)}


async def test_what_was_trimmed_takes_no_room_in_a_view(
    broker: Broker, partition: Partition
) -> None:
    await compact(broker)
    await partition.trim(12)
    await write(partition, (["i0", "i1"],))
    await compact(broker, NOW_MS + 1)
    assert (partition.compaction.view.start, partition.compaction.view.end) == (12, 14)
    assert await read(broker, partition, 13) == {13: "i1"}


async def test_a_topic_that_is_compacted_for_all_has_no_view(
    broker: Broker, partition: Partition
) -> None:
    (topic,) = broker.topics.all()
    await broker.topics.configure(topic, lambda _: {"cleanup_policy": "compact"})
    await compact(broker)
    assert partition.compaction.view.end == 0


def test_a_view_is_a_bit_for_each_message() -> None:
    view = CompactedView().extended(5, 25, [(5, b"\x03"), (20, b"\xff")])
    assert view.left_out(0, 30) == 0b11111_0000000000000_11_00000
    assert [view.left_out(6, 8), view.left_out(7, 21), view.left_out(25, 99)] == [1, 1 << 13, 0]
    again = CompactedView(view.state)
    assert (again.start, again.end, again.left_out(0, 30)) == (5, 25, view.left_out(0, 30))
    assert [view.end_of_what_is_left(each) for each in (26, 25, 22, 20, 7, 5)] == [
        26,
        20,
        20,
        20,
        5,
        5,
    ]
    later = view.extended(6, 30, [(25, b"\x01")])
    assert later.left_out(0, 30) == view.left_out(0, 30) & ~0b111111 | 1 << 25
    assert CompactedView(b"\x02" + view.state[1:]).end == 0


def test_what_is_left_is_found_in_a_view_that_leaves_out_millions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end, left = 5 + 16 * 65_536 + 100, [6, 70_000, 5 + 2 * 65_536 - 1, 700_000, 5 + 16 * 65_536]
    bits = (1 << end - 5) - 1
    for offset in left:
        bits &= ~(1 << offset - 5)
    view = CompactedView().extended(5, end, [(5, bits.to_bytes(-(-end // 8), "little"))])
    looks: list[tuple[object, ...]] = []
    look = CompactedView.left_out

    def counted(self: CompactedView, *asked: int) -> int:
        looks.append(asked)
        return look(self, *asked)

    monkeypatch.setattr(CompactedView, "left_out", counted)
    for offset in left:
        for asked in (offset + 1, offset + 2, offset + 65_536, offset + 65_537):
            expected = max(each + 1 for each in left if each < asked)
            if asked <= end:
                del looks[:]
                assert view.end_of_what_is_left(asked) == expected
                assert len(looks) <= 2, "each takes time"
    assert view.end_of_what_is_left(6) == 5
