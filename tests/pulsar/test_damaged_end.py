"""A damaged batch at the end of a topic costs its own messages, and no Pulsar client its start."""

from __future__ import annotations

from typing import Any

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.pulsar.positions import entry_before, last_message_id, position_at
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Peer, batch, entry

KINDS = (api.CommandSubscribe.Exclusive, api.CommandSubscribe.Shared)


def flip_last_byte(partition: Partition) -> None:
    (segment,) = log_of(partition).directory.glob("*.log")
    stored = bytearray(segment.read_bytes())
    stored[-1] ^= 1
    segment.write_bytes(stored)


async def publish(peer: Peer, *bodies: bytes) -> list[api.MessageIdData]:
    return [(await peer.publish(body)).message_id for body in bodies]


@pytest.fixture
async def partition(broker: Broker, peer: Peer) -> Partition:
    """A topic of two single messages and a damaged one behind them."""
    await peer.producer("orders")
    await publish(peer, entry(b"first"), entry(b"second"), entry(b"third"))
    topic = broker.topics.get(TopicName("public", "default", "orders"))
    assert topic is not None
    partition = topic.partition(0)
    flip_last_byte(partition)
    return partition


async def last_of(peer: Peer, consumer_id: int) -> api.CommandGetLastMessageIdResponse:
    request = api.CommandGetLastMessageId(consumer_id=consumer_id, request_id=77)
    command = api.BaseCommand(type=api.BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId=request)
    return await peer.ask(command, api.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("position", [api.CommandSubscribe.Latest, api.CommandSubscribe.Earliest])
async def test_consumers_come_and_learn_the_last_message_that_can_be_read(
    peer: Peer, partition: Partition, kind: int, position: int
) -> None:
    await peer.subscribe("orders", subType=kind, initialPosition=position)
    answer = await last_of(peer, 1)
    assert answer.last_message_id.entryId == 1
    before = {api.CommandSubscribe.Latest: 2, api.CommandSubscribe.Earliest: -1}[position]
    expected = before if before >= 0 else (1 << 64) - 1
    assert answer.consumer_mark_delete_position.entryId == expected


async def test_a_reader_opens_at_the_damage_and_gets_what_comes_after(
    peer: Peer, partition: Partition
) -> None:
    start = api.MessageIdData(ledgerId=partition.id, entryId=2)
    await peer.subscribe("orders", durable=False, start_message_id=start)
    (later,) = await publish(peer, entry(b"fourth"))
    peer.flow(10)
    damaged = await peer.hear_frame(api.BaseCommand.MESSAGE)
    assert damaged.command.message.message_id.entryId == 2
    sound = await peer.hear_frame(api.BaseCommand.MESSAGE)
    assert sound.command.message.message_id.entryId == later.entryId
    assert (await last_of(peer, 1)).last_message_id.entryId == later.entryId


async def test_a_topic_of_which_nothing_can_be_read_ends_where_it_does(
    broker: Broker, peer: Peer
) -> None:
    await peer.producer("single")
    body, count = batch(b"one", b"two")
    (only,) = await publish(peer, entry(body, num_messages_in_batch=count))
    topic = broker.topics.get(TopicName("public", "default", "single"))
    assert topic is not None
    partition = topic.partition(0)
    flip_last_byte(partition)
    assert (await last_message_id(partition)).entryId == partition.end_offset - 1
    assert await position_at(partition, only) == 0
    assert await entry_before(partition, partition.end_offset) == 0


async def test_a_topic_of_which_everything_was_given_up_has_no_last_message(
    broker: Broker, peer: Peer
) -> None:
    await peer.producer("purged")
    await publish(peer, entry(b"first"), entry(b"second"))
    topic = broker.topics.get(TopicName("public", "default", "purged"))
    assert topic is not None
    partition = topic.partition(0)
    await partition.trim(2)
    assert (await last_message_id(partition)).entryId == (1 << 64) - 1
    (third,) = await publish(peer, entry(b"third"))
    assert (await last_message_id(partition)).entryId == third.entryId == 2


async def test_what_is_given_up_while_it_is_looked_for_closes_nobodys_connection(
    peer: Peer, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_at = partition.entry_at

    async def trim_first(*asked: Any) -> tuple[int, int] | None:
        await partition.trim(2)
        return await entry_at(*asked)

    monkeypatch.setattr(partition, "entry_at", trim_first)
    start = api.MessageIdData(ledgerId=partition.id, entryId=1)
    assert await position_at(partition, start) == 2
    await peer.subscribe("orders", durable=False, start_message_id=start)
