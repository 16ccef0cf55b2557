"""Goal: what clients make up by the million, names that commit, subscriptions and consumers, is
bounded, and what is there goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.errors import (
    ConsumerBusyError,
    TooManyOffsetsError,
    TooManySubscriptionsError,
)
from penstock.broker.groups.offsets import CommittedOffset, CommittedOffsets, OffsetOwner
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.consumer import Consumer
from penstock.broker.subscriptions.registry import SubscribeRequest
from penstock.broker.subscriptions.subscription import SubscriptionKind
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.memory import Memory
from penstock.metadata.offsets import OffsetRow
from receivers import consumer, message_batch, settled, stocked

if TYPE_CHECKING:
    from penstock.metadata.offsets import OffsetRepository

SHARED = SubscriptionKind.SHARED


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    return await stocked(broker, 0, 0, partitions=2)


async def test_committed_offsets_are_bounded(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMMITTED_OFFSET_BYTES", 5_000)
    offsets = broker.offsets
    owners = [OffsetOwner("kafka", f"made up {number}") for number in range(10)]
    kept = 7
    for owner in owners[:kept]:
        await offsets.commit(owner, {partition.id: CommittedOffset(1)})
    with pytest.raises(TooManyOffsetsError):
        await offsets.commit(owners[kept], {partition.id: CommittedOffset(1)})
    await offsets.commit(owners[0], {partition.id: CommittedOffset(2)})
    with pytest.raises(TooManyOffsetsError):
        await offsets.commit(owners[0], {partition.id: CommittedOffset(2, note="n" * 5_000)})
    with pytest.raises(TooManyOffsetsError):  # One wide character makes all of them wide.
        await offsets.commit(
            owners[0], {partition.id: CommittedOffset(2, note="n" * 1_300 + "\U0001f600")}
        )
    with pytest.raises(TooManyOffsetsError):
        await offsets.commit(OffsetOwner("kafka", "o" * 5_000), {partition.id: CommittedOffset(2)})
    assert offsets.of_owner(owners[0]) == {partition.id: CommittedOffset(2)}
    await offsets.delete(owners[0])
    await offsets.delete(owners[1], [partition.id])
    offsets.forget_partitions([partition.id])
    for owner in owners[:kept]:
        await offsets.commit(owner, {partition.id: CommittedOffset(3)})


def test_a_deleted_partition_costs_its_own_offsets_however_many_owners_there_are() -> None:
    rows = [OffsetRow("kafka", f"g{number}", 1, 5, -1, "", 0) for number in range(10_000)]
    rows.append(OffsetRow("kafka", "g0", 2, 7, -1, "", 0))
    repository = cast("OffsetRepository", SimpleNamespace(all=lambda: rows))
    offsets = CommittedOffsets(repository, lambda _: True, Memory())
    calls = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        offsets.forget_partitions([2, 3])
    finally:
        sys.setprofile(None)
    assert calls < 100
    assert dict(offsets.of_owner(OffsetOwner("kafka", "g0"))) == {1: CommittedOffset(5)}
    offsets.forget_partitions([1])
    assert offsets.owners("kafka") == []


async def test_subscriptions_are_bounded(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTIONS", 2)
    subscriptions = broker.subscriptions
    members: dict[int, Consumer] = {}

    async def subscribe(number: int, *, durable: bool = True) -> None:
        request = SubscribeRequest(f"s{number}", SHARED, 0, durable=durable)
        members[number] = consumer()
        await subscriptions.subscribe(partition, request, members[number])

    await subscribe(0)
    await subscribe(1, durable=False)
    with pytest.raises(TooManySubscriptionsError):
        await subscribe(2)
    reader = subscriptions.get(partition, "s1")
    assert reader is not None
    subscriptions.leave(reader, members[1])
    await subscribe(2)
    for number in (0, 2):
        found = subscriptions.get(partition, f"s{number}")
        assert found is not None
        await subscriptions.unsubscribe(found, members[number])
    await subscribe(1)
    await subscribe(3)
    with pytest.raises(TooManySubscriptionsError):
        await subscribe(0)


async def test_those_that_were_not_opened_yet_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTIONS", 1)
    broker = await Broker.open(tmp_path / "data", BrokerSettings())
    topic = await broker.topics.create(TopicName("public", "default", "t"), 2)
    for each in topic.partitions:
        await each.opened()
    first = SubscribeRequest("s", SHARED, 0)
    await broker.subscriptions.create(topic.partition(0), first)
    await broker.close()
    broker = await Broker.open(tmp_path / "data", BrokerSettings())
    (topic,) = broker.topics.all()
    await topic.partition(1).opened()
    with pytest.raises(TooManySubscriptionsError):
        await broker.subscriptions.create(topic.partition(1), first)
    await broker.topics.delete(topic)
    other = await broker.topics.create(TopicName("public", "default", "other"), 1)
    await other.partition(0).opened()
    await broker.subscriptions.create(other.partition(0), first)
    await broker.close()


@pytest.mark.parametrize(
    "request_",
    [
        SubscribeRequest("s" * 20_000, SHARED, 0),
        SubscribeRequest("s", SHARED, 0, properties={"k": "v" * 20_000}),
    ],
)
async def test_a_subscription_says_only_so_much_of_itself(
    broker: Broker, partition: Partition, request_: SubscribeRequest
) -> None:
    with pytest.raises(TooManySubscriptionsError):
        await broker.subscriptions.subscribe(partition, request_, consumer())


async def test_a_subscription_has_only_so_many_consumers(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTION_CONSUMERS", 2)
    request = SubscribeRequest("s", SHARED, 0)
    members = [consumer(str(number)) for number in range(3)]
    for member in members[:2]:
        subscription = await broker.subscriptions.subscribe(partition, request, member)
    with pytest.raises(ConsumerBusyError):
        await broker.subscriptions.subscribe(partition, request, members[2])
    broker.subscriptions.leave(subscription, members[0])
    await broker.subscriptions.subscribe(partition, request, members[2])


async def test_all_consumers_of_a_subscription_hold_only_so_much(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNACKNOWLEDGED_OF_SUBSCRIPTION", 30)
    for _ in range(100):
        partition.append(message_batch(1))
    await partition.flushed()
    request = SubscribeRequest("s", SHARED, 0)
    members = [consumer(str(number)) for number in range(3)]
    for member in members:
        subscription = await broker.subscriptions.subscribe(partition, request, member)
        subscription.add_permits(member, 1000)
    await settled()
    held = sum(member.unacknowledged for member in members)
    assert 30 <= held < 30 + 20, "a turn's batches are out before it is noted"
    for offset in range(held - 16):
        assert subscription.acknowledge_at_once(offset)
    await settled()
    assert sum(member.unacknowledged for member in members) == 16
    for offset in range(held - 16, held):
        assert subscription.acknowledge_at_once(offset)
    await settled()
    assert sum(member.unacknowledged for member in members) >= 30


async def test_subscriptions_and_offsets_have_a_part_of_the_budget(
    broker: Broker, partition: Partition
) -> None:
    account = broker.memory.metadata
    assert account.used == 0
    account.bound = 100 * limits.KIB
    properties = {str(number): "" for number in range(100)}

    async def create_many() -> None:
        for number in range(100):
            request = SubscribeRequest(f"made up {number}", SHARED, 0, properties=properties)
            await broker.subscriptions.create(partition, request)

    with pytest.raises(TooManySubscriptionsError):
        await create_many()
    assert 1 < len(broker.subscriptions.of_partition(partition)) < 10, "properties count"
    owner = OffsetOwner("kafka", "n" * 30_000)
    with pytest.raises(TooManyOffsetsError):
        await broker.offsets.commit(owner, {partition.id: CommittedOffset(1)})
    await broker.topics.delete(partition.topic)
    await settled()
    assert account.used == 0
