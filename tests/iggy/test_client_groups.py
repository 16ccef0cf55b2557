"""Stored offsets and consumer groups, by the real client."""

from __future__ import annotations

import asyncio
import datetime as dt

import pytest
from apache_iggy import AutoCommit, Consumer, IggyClient, PollingStrategy, ReceiveMessage

from broker_process import BrokerProcess
from iggy_clients import SECONDS, connected, poll, send, until

First, Next = PollingStrategy.First(), PollingStrategy.Next()


async def test_group_is_described_and_deleted(client: IggyClient, stream: str, topic: str) -> None:
    await client.create_consumer_group(stream, topic, "billing")
    with pytest.raises(RuntimeError, match=r"(?i)already exists"):
        await client.create_consumer_group(stream, topic, "billing")
    await client.create_consumer_group(stream, topic, "audit")
    groups = await client.get_consumer_groups(stream, topic)
    assert [(group.id, group.name) for group in groups] == [(0, "billing"), (1, "audit")]
    await client.join_consumer_group(stream, topic, "billing")
    group = await client.get_consumer_group(stream, topic, 0)
    assert group is not None
    assert (group.partitions_count, group.members_count) == (2, 1)
    assert [member.partitions for member in group.members] == [[0, 1]]
    await client.delete_consumer_group(stream, topic, "billing")
    assert await client.get_consumer_group(stream, topic, 0) is None
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await client.delete_consumer_group(stream, topic, "billing")


async def test_two_members_divide_the_partitions(
    shared_server: BrokerProcess, client: IggyClient, stream: str, topic: str
) -> None:
    other = await connected(shared_server.iggy)
    await client.create_consumer_group(stream, topic, "billing")
    for partition in (0, 1):
        await send(client, stream, topic, f"p{partition}", partition=partition)
    await client.join_consumer_group(stream, topic, "billing")
    await other.join_consumer_group(stream, topic, "billing")

    async def polled(member: IggyClient) -> list[bytes]:
        found = await poll(
            member, stream, topic, First, partition=None, consumer=Consumer.Group("billing")
        )
        return [payload for _, payload in found]

    assert await polled(client) == [b"p0"]
    assert await polled(client) == [b"p0"]
    assert await polled(other) == [b"p1"]
    await other.leave_consumer_group(stream, topic, "billing")
    assert sorted([await polled(client), await polled(client)]) == [[b"p0"], [b"p1"]]
    with pytest.raises(RuntimeError, match=r"(?i)member"):
        await polled(other)
    with pytest.raises(RuntimeError, match=r"(?i)member"):
        await other.leave_consumer_group(stream, topic, "billing")


async def test_connection_that_ends_leaves_its_groups(
    shared_server: BrokerProcess, client: IggyClient, stream: str, topic: str
) -> None:
    other = await connected(shared_server.iggy)
    await client.create_consumer_group(stream, topic, "billing")
    for member in (client, other):
        await member.join_consumer_group(stream, topic, "billing")
    await other.logout_user()
    del other

    async def alone() -> bool:
        group = await client.get_consumer_group(stream, topic, "billing")
        assert group is not None
        return [member.partitions for member in group.members] == [[0, 1]]

    await until(alone)


async def test_stored_offsets_of_a_group(client: IggyClient, stream: str, topic: str) -> None:
    consumer = await client.consumer_group(
        "billing",
        stream,
        topic,
        polling_strategy=Next,
        auto_commit=AutoCommit.Disabled(),
        poll_interval=dt.timedelta(milliseconds=10),
    )
    await send(client, stream, topic, "0", "1", "2")
    async with asyncio.timeout(SECONDS):
        async for message in consumer.iter_messages():
            if message.offset() == 2:
                break
    await consumer.store_offset(1, 0)
    group = Consumer.Group("billing")
    assert await poll(client, stream, topic, Next, consumer=group) == [(2, b"2")]
    with pytest.raises(RuntimeError, match=r"(?i)offset"):
        await consumer.store_offset(3, 0)
    await consumer.delete_offset(0)
    assert len(await poll(client, stream, topic, Next, consumer=group)) == 3
    with pytest.raises(RuntimeError, match=r"(?i)offset"):
        await consumer.delete_offset(0)


async def test_members_read_everything_once_while_others_come(
    shared_server: BrokerProcess, client: IggyClient, stream: str
) -> None:
    await client.create_stream(stream)
    await client.create_topic(stream, "orders", 4)
    seen: list[tuple[int, int]] = []
    enough = asyncio.Event()

    async def take(message: ReceiveMessage) -> None:
        seen.append((message.partition_id(), message.offset()))
        if len(set(seen)) == 80:
            enough.set()

    async def member() -> None:
        consumer = await (await connected(shared_server.iggy)).consumer_group(
            "billing",
            stream,
            "orders",
            polling_strategy=Next,
            batch_length=5,
            poll_interval=dt.timedelta(milliseconds=5),
        )
        await consumer.consume_messages(take, enough)

    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(member())
        for number in range(40):
            await send(client, stream, "orders", "x", "y", partition=number % 4)
            if number == 10:
                tasks.create_task(member())
    assert set(seen) == {(partition, offset) for partition in range(4) for offset in range(20)}


async def test_groups_and_offsets_last_and_members_do_not(server: BrokerProcess) -> None:
    client = await connected(server.iggy)
    await client.create_stream("shop")
    await client.create_topic("shop", "orders", 1)
    await client.create_consumer_group("shop", "orders", "billing")
    await client.join_consumer_group("shop", "orders", "billing")
    await send(client, "shop", "orders", "0", "1")
    group = Consumer.Group("billing")
    found = await poll(client, "shop", "orders", Next, 1, consumer=group, auto_commit=True)
    assert found == [(0, b"0")]
    server.restart()

    again = await connected(server.iggy)
    described = await again.get_consumer_group("shop", "orders", "billing")
    assert described is not None
    assert described.members_count == 0
    await again.join_consumer_group("shop", "orders", "billing")
    assert await poll(again, "shop", "orders", Next, consumer=group) == [(1, b"1")]
