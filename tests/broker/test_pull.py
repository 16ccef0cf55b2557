"""Consumers that ask for messages, on a real log, under a clock that the test turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from group_house import VirtualClock
from penstock.broker.broker import Broker
from penstock.broker.errors import InvalidRecordStateError
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.engine import Engine
from penstock.broker.subscriptions.leases import Holder
from penstock.broker.subscriptions.pull import Pull
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.header import ATTRIBUTE_CONTROL, Magic, build_header
from receivers import message_batch

LOCK_SECONDS = 30


@pytest.fixture
async def partition(tmp_path: Path) -> AsyncIterator[Partition]:
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    yield topic.partition(0)
    await broker.close()


class Share:
    """One subscription that is pulled from; three batches of ten messages are there."""

    def __init__(self, partition: Partition) -> None:
        self.clock = VirtualClock()
        self.cursor = Cursor(0)
        self.moves = 0
        self.engine = Engine(self.cursor, self._moved, partition.memory.subscriptions)
        self.pull = Pull(partition, self.engine, Magic.PULSAR, self.clock, LOCK_SECONDS)

    async def ask(self, holder: Holder, messages_max: int = 100) -> list[tuple[int, int, int]]:
        acquired = await self.pull.acquire(holder, messages_max)
        for each in acquired:
            header = each.entry.header
            assert header.base_offset <= each.start < each.end <= header.next_offset
        return [(each.start, each.end, each.deliveries) for each in acquired]

    def _moved(self) -> None:
        self.moves += 1


@pytest.fixture
async def share(partition: Partition) -> Share:
    for _ in range(3):
        partition.append(message_batch(10))
    await partition.flushed()
    return Share(partition)


@pytest.fixture
def one() -> Holder:
    return Holder("one")


@pytest.fixture
def other() -> Holder:
    return Holder("other")


async def test_consumers_get_the_next_messages_and_no_more_than_they_ask_for(
    share: Share, one: Holder, other: Holder
) -> None:
    assert await share.ask(one, 4) == [(0, 4, 1)]
    assert await share.ask(other, 12) == [(4, 10, 1), (10, 16, 1)]
    assert await share.ask(one) == [(16, 20, 1), (20, 30, 1)]
    assert await share.ask(other) == []
    assert (one.unacknowledged, other.unacknowledged) == (18, 12)


async def test_two_that_ask_at_once_get_different_messages(
    share: Share, one: Holder, other: Holder
) -> None:
    answers = await asyncio.gather(share.ask(one, 15), share.ask(other, 15))
    assert answers == [[(0, 10, 1), (10, 15, 1)], [(15, 20, 1), (20, 30, 1)]]


async def test_what_is_acknowledged_or_rejected_is_done(share: Share, one: Holder) -> None:
    await share.ask(one, 10)
    share.pull.acknowledge(one, 0, 3)
    share.pull.reject(one, 5, 7)
    assert (share.cursor.position, list(share.cursor.ranges)) == (3, [(5, 7)])
    assert (one.unacknowledged, share.moves) == (5, 2)
    share.clock.advance(LOCK_SECONDS)
    assert await share.ask(one, 6) == [(3, 5, 2), (7, 10, 2), (10, 11, 1)]


async def test_what_is_released_goes_to_whoever_asks_next_and_counts(
    share: Share, one: Holder, other: Holder
) -> None:
    await share.ask(one, 10)
    share.pull.release(one, 6, 8)
    share.pull.release(one, 2, 4)
    assert await share.ask(other, 3) == [(2, 4, 2), (6, 7, 2)]
    share.pull.release(other, 3, 4)
    assert await share.ask(one, 2) == [(3, 4, 3), (7, 8, 2)]
    share.pull.acknowledge(one, 3, 6)
    with pytest.raises(InvalidRecordStateError):
        share.pull.acknowledge(one, 6, 8)
    share.pull.acknowledge(other, 2, 3)
    share.pull.acknowledge(other, 6, 7)
    share.pull.acknowledge(one, 7, 10)
    share.pull.acknowledge(one, 0, 2)
    assert (share.cursor.position, len(share.engine.leases)) == (10, 0)
    assert (one.unacknowledged, other.unacknowledged) == (0, 0)


async def test_several_parts_of_one_batch_come_back(
    share: Share, one: Holder, other: Holder
) -> None:
    await share.ask(one, 15)
    share.pull.release(one, 2, 4)
    share.pull.release(one, 4, 6)
    share.pull.release(one, 9, 11)
    assert await share.ask(other, 10) == [
        (2, 4, 2),
        (4, 6, 2),
        (9, 10, 2),
        (10, 11, 2),
        (15, 19, 1),
    ]


async def test_a_lock_ends_with_its_time(share: Share, one: Holder, other: Holder) -> None:
    await share.ask(one, 10)
    share.clock.advance(10)
    await share.ask(one, 10)
    share.clock.advance(LOCK_SECONDS - 10.5)
    assert await share.ask(other, 5) == [(20, 25, 1)]
    share.clock.advance(0.5)
    assert await share.ask(other, 20) == [(0, 10, 2), (25, 30, 1)]
    with pytest.raises(InvalidRecordStateError, match="one does not hold the messages 0 to 9"):
        share.pull.acknowledge(one, 0, 10)
    share.pull.acknowledge(one, 10, 20)
    share.clock.advance(LOCK_SECONDS)
    with pytest.raises(InvalidRecordStateError):
        share.pull.release(other, 0, 10)
    assert list(share.cursor.ranges) == [(10, 20)]


async def test_who_leaves_gives_back_what_it_may_not_have_seen(
    share: Share, one: Holder, other: Holder
) -> None:
    await share.ask(one, 15)
    share.pull.acknowledge(one, 4, 6)
    share.pull.leave(one)
    assert one.unacknowledged == 0
    assert await share.ask(other, 10) == [(0, 4, 1), (6, 10, 1), (10, 12, 1)]


@pytest.mark.parametrize(
    ("start", "end"), [(0, 11), (9, 21), (30, 40), (5, 5), (7, 5), (-3, 2), (2, 4)]
)
async def test_nobody_speaks_of_messages_that_it_does_not_hold(
    share: Share, one: Holder, other: Holder, start: int, end: int
) -> None:
    await share.ask(one, 10)
    await share.ask(other, 10)
    share.pull.acknowledge(one, 3, 4)
    for speak in (share.pull.acknowledge, share.pull.release, share.pull.reject):
        with pytest.raises(InvalidRecordStateError):
            speak(one, start, end)
    assert list(share.cursor.ranges) == [(3, 4)]
    assert (one.unacknowledged, other.unacknowledged) == (9, 10)


async def test_what_is_no_message_or_is_acknowledged_is_passed_over(
    partition: Partition, share: Share, one: Holder
) -> None:
    share.engine.acknowledge(5, 30)
    header = build_header(
        Magic.KAFKA,
        b"end",
        record_count=1,
        base_timestamp=0,
        max_timestamp=0,
        attributes=ATTRIBUTE_CONTROL,
    )
    partition.append([header, b"end"])
    await partition.flushed()
    assert await share.ask(one) == [(0, 5, 1)]
    share.pull.acknowledge(one, 0, 5)
    assert await share.ask(one) == []
    assert share.cursor.position == 31


async def test_a_deleted_partition_has_nothing(
    partition: Partition, share: Share, one: Holder
) -> None:
    partition.deleted = True
    partition.forget()
    assert await share.ask(one) == []
