"""What was refused because it could not be saved is no part of its transaction, in memory or in
rows, whatever is acknowledged in the same block meanwhile.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.layout import DATABASE_FILE
from penstock.metadata.errors import MetadataError
from penstock.metadata.pending_acknowledgements import (
    PendingAcknowledgementRepository,
    PendingPlace,
)
from receivers import consumer, message_batch, receiver_of, settled

ONE = 7
"""The id of a producer, by which its transaction is known."""
SIZE = 3


class HeldUpRepository:
    """Each write waits until the test says what becomes of it."""

    def __init__(self, repository: PendingAcknowledgementRepository) -> None:
        self._repository = repository
        self.writes: list[asyncio.Future[bool]] = []

    async def save(self, place: PendingPlace, blocks: Mapping[int, int]) -> None:
        self.writes.append(asyncio.get_running_loop().create_future())
        if not await self.writes[-1]:
            raise MetadataError("pending acknowledgements were not written")
        await self._repository.save(place, blocks)

    async def answer(self, *outcomes: bool) -> None:
        """Have so many writes succeed or fail, one after another."""
        for is_written in outcomes:
            async with asyncio.timeout(30):
                while not self.writes:
                    await asyncio.sleep(0)
            self.writes.pop().set_result(is_written)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    broker = await Broker.open(tmp_path / "data", BrokerSettings())
    await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = partition_of(broker)
    await partition.opened()
    for _ in range(5):
        partition.append(message_batch(SIZE))
    await partition.flushed()
    yield broker
    await broker.close()


@pytest.fixture
def repository(broker: Broker) -> Iterator[HeldUpRepository]:
    saves = broker.subscriptions.transactional._saves
    held_up = HeldUpRepository(saves._repository)
    saves._repository = held_up  # type: ignore[assignment]
    yield held_up
    for write in held_up.writes:
        write.set_result(False)


def partition_of(broker: Broker) -> Partition:
    (topic,) = broker.topics.all()
    return topic.partition(0)


async def subscribed(broker: Broker) -> tuple[Subscription, Consumer]:
    member = consumer()
    request = SubscribeRequest(name="sub", kind=SubscriptionKind.SHARED, position=0)
    subscription = await broker.subscriptions.subscribe(partition_of(broker), request, member)
    subscription.add_permits(member, 100)
    assert await taken(member, 5) == [0, 3, 6, 9, 12]
    return subscription, member


async def taken(member: Consumer, count: int) -> list[int]:
    """The offsets of the batches that a consumer was given since the last time."""
    receiver = receiver_of(member)
    async with asyncio.timeout(30):
        while len(receiver.deliveries) < count:
            await asyncio.sleep(0.001)  # It is read in a thread.
    await settled()
    deliveries, receiver.deliveries = receiver.deliveries, []
    return [each.entry.header.base_offset for each in deliveries]


async def acknowledged(
    broker: Broker, subscription: Subscription, *batches: int, producer_id: int = ONE
) -> asyncio.Task[None]:
    """Begin to acknowledge batches in a transaction, up to where it is saved."""
    for number in batches:
        subscription.hold(producer_id, number * SIZE, (number + 1) * SIZE)
    saving = broker.subscriptions.transactional.save(subscription, producer_id)
    task = asyncio.get_running_loop().create_task(saving)
    await settled()
    return task


async def outcomes(*tasks: asyncio.Task[None]) -> list[type[BaseException] | None]:
    async with asyncio.timeout(30):
        found = await asyncio.gather(*tasks, return_exceptions=True)
    return [None if each is None else type(each) for each in found]


async def decide(broker: Broker, *, committed: bool) -> None:
    participant = broker.subscriptions.transactional
    await participant.settled(ONE)
    await broker._store.write(*participant.outcome(ONE, committed=committed))
    participant.decided(ONE, committed=committed)
    await settled()


def rows_of(broker: Broker) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(broker.data_folder / DATABASE_FILE)) as connection:
        found = connection.execute("SELECT number, bits FROM pending_acknowledgements").fetchall()
    return [(number, int.from_bytes(bits, "little")) for number, bits in found]


async def test_what_was_refused_is_delivered_again_and_no_commit_takes_it(
    broker: Broker, repository: HeldUpRepository
) -> None:
    subscription, member = await subscribed(broker)
    first = await acknowledged(broker, subscription, 0)
    await repository.answer(True)
    second = await acknowledged(broker, subscription, 1, 3)
    await repository.answer(False)
    assert await outcomes(first, second) == [None, MetadataError]
    assert list(subscription.pending.runs_of(ONE)) == [(0, 3)]
    assert await taken(member, 2) == [3, 9]
    assert rows_of(broker) == [(0, 0b111)]
    await decide(broker, committed=True)
    assert subscription.cursor.position == 3
    assert not list(subscription.cursor.ranges)
    assert member.unacknowledged == 12


async def test_what_came_during_a_write_that_fails_is_refused_with_it(
    broker: Broker, repository: HeldUpRepository
) -> None:
    subscription, member = await subscribed(broker)
    first = await acknowledged(broker, subscription, 0)
    same = await acknowledged(broker, subscription, 0)
    other = await acknowledged(broker, subscription, 2)
    await repository.answer(False)
    assert await outcomes(first, same, other) == [MetadataError] * 3
    assert not subscription.pending.blocks
    assert await taken(member, 2) == [0, 6]
    again = await acknowledged(broker, subscription, 2)
    await repository.answer(True)
    assert await outcomes(again) == [None]
    assert rows_of(broker) == [(0, 0b111000000)]


async def test_what_comes_during_a_write_shares_the_next_one(
    broker: Broker, repository: HeldUpRepository
) -> None:
    subscription, _ = await subscribed(broker)
    tasks = [await acknowledged(broker, subscription, number) for number in (0, 1, 2)]
    await repository.answer(True, True)
    assert await outcomes(*tasks) == [None] * 3
    assert rows_of(broker) == [(0, 0b111111111)]
    assert not repository.writes


async def test_a_caller_that_left_keeps_nothing_pending(
    broker: Broker, repository: HeldUpRepository
) -> None:
    subscription, member = await subscribed(broker)
    left = await acknowledged(broker, subscription, 0)
    left.cancel()
    await repository.answer(False)
    assert await outcomes(left) == [asyncio.CancelledError]
    assert await taken(member, 1) == [0]
    assert not subscription.pending.blocks


@pytest.mark.parametrize("is_written", [True, False])
async def test_a_decision_waits_for_what_is_being_saved(
    broker: Broker, repository: HeldUpRepository, is_written: bool
) -> None:
    subscription, _ = await subscribed(broker)
    producer = await broker.transactions.begin(60_000)
    await broker.transactions.add_name("", producer, "sub")
    task = await acknowledged(broker, subscription, 0, producer_id=producer.id)
    ending = asyncio.get_running_loop().create_task(
        broker.transactions.end("", producer, committed=True)
    )
    await settled()
    for _ in range(2):  # By then a decision would be stored, and carried out.
        await broker._store.write()
        await settled()
    assert broker.transactions.how_ended(producer.id) is None
    await repository.answer(is_written)
    assert await outcomes(task) == [None if is_written else MetadataError]
    async with asyncio.timeout(30):
        await ending
    assert subscription.cursor.position == (3 if is_written else 0)
    assert not subscription.pending.blocks
