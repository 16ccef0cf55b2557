"""Goal: consumers and producers are in the budget for memory: who opens them by the thousand is
refused in Pulsar's words, and others open theirs.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from penstock.broker.subscriptions.push import PUSH_BYTES
from penstock.limits import CONNECTION_LEAST_BYTES, KIB
from penstock.pulsar.client import consumer_bytes, producer_bytes
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer, frame_of

BOUND = 200 * KIB
SHARED = api.CommandSubscribe.Shared
WITHOUT_RANGES = api.CommandSubscribe()


@pytest.fixture
def bound(broker: Broker) -> int:
    broker.memory.clients.bound = BOUND
    return BOUND


async def opened(peer: Peer, **options: object) -> bool:
    """Subscribe, or be refused."""
    made = api.CommandSubscribe(topic="t", request_id=1, subType=SHARED, durable=False, **options)
    peer.say(Command(type=Command.SUBSCRIBE, subscribe=made))
    return await heard(peer, Command.SUCCESS)


async def produces(peer: Peer, **options: object) -> bool:
    """Create a producer, or be refused."""
    made = api.CommandProducer(topic="t", request_id=1, **options)
    peer.say(Command(type=Command.PRODUCER, producer=made))
    return await heard(peer, Command.PRODUCER_SUCCESS)


async def heard(peer: Peer, success: int) -> bool:
    if all(frame.command.type not in {success, Command.ERROR} for frame in peer.heard):
        await peer.hear_frame(success)
        return True
    frame = peer.heard.pop()
    assert frame.command.type == success or frame.command.error.error == api.NotAllowedError
    return frame.command.type == success


async def most(peer: Peer, broker: Broker) -> int:
    """Open consumers with subscriptions of their own until one is refused; return how many."""
    count = 0
    while await opened(peer, consumer_id=count, subscription=f"{peer.peer} {count}"):
        count += 1
        assert count < 10 * BOUND // PUSH_BYTES, "they are bounded"
    return count


async def test_consumers_share_what_there_is_for_them(
    broker: Broker, peer: Peer, bound: int
) -> None:
    await peer.subscribe("t", 999, durable=False)
    first = await most(peer, broker)
    assert first > BOUND // 2 // (consumer_bytes("0" * 10, WITHOUT_RANGES) + PUSH_BYTES)
    assert broker.memory.clients.used < BOUND
    for number in range(20):
        other = Peer(broker)
        await other.connect()
        other.peer = f"other {number}"
        assert await most(other, broker) >= 2
    assert not await opened(peer, consumer_id=5000, subscription="one more")
    assert broker.memory.clients.used < BOUND + 20 * 2 * CONNECTION_LEAST_BYTES


async def test_producers_count_with_their_names(broker: Broker, peer: Peer, bound: int) -> None:
    count = 0
    while await produces(peer, producer_id=count, producer_name=f"{count:01000}"):
        count += 1
        assert count < BOUND // KIB
    assert count > BOUND // 2 // producer_bytes("n" * 1000)
    assert peer.client.held.size == count * producer_bytes("n" * 1000)


@pytest.mark.parametrize("wish", [api.Shared, api.WaitForExclusive])
async def test_all_is_given_back(broker: Broker, peer: Peer, bound: int, wish: int) -> None:
    used = broker.memory.clients
    for round_ in range(3):
        for number in range(3):
            await peer.subscribe("t", number, subscription=f"s{number}", durable=False)
            options = {"producer_access_mode": wish}
            assert await produces(peer, producer_id=number, **options)
        least = PUSH_BYTES + consumer_bytes("", WITHOUT_RANGES) + producer_bytes("")
        assert used.used > 3 * least
        for number in range(3):
            assert not peer.failures
            if round_ == 0:
                close = api.CommandCloseConsumer(consumer_id=number, request_id=1)
                command = Command(type=Command.CLOSE_CONSUMER, close_consumer=close)
            else:
                leave = api.CommandUnsubscribe(consumer_id=number, request_id=1)
                command = Command(type=Command.UNSUBSCRIBE, unsubscribe=leave)
            await peer.ask(command, Command.SUCCESS)
            end = api.CommandCloseProducer(producer_id=number, request_id=1)
            await peer.ask(
                Command(type=Command.CLOSE_PRODUCER, close_producer=end), Command.SUCCESS
            )
        assert used.used == 0


async def test_a_connection_that_is_lost_and_a_topic_that_is_deleted_give_back(
    broker: Broker, bound: int
) -> None:
    for is_lost in (True, False):
        peer = Peer(broker)
        await peer.connect()
        await peer.subscribe("t", 1)
        await peer.producer("t", 1)
        assert broker.memory.clients.used > PUSH_BYTES
        (topic,) = broker.topics.all()
        if is_lost:
            peer.lose()
        else:
            await broker.topics.delete(topic)
        assert broker.memory.clients.used == 0
        assert peer.client.held.size == 0


async def test_what_was_refused_holds_nothing(broker: Broker, peer: Peer, bound: int) -> None:
    await peer.subscribe("t", 1)
    held = broker.memory.clients.used
    for consumer_id in range(2, 5):
        refused = api.CommandSubscribe(
            topic="t", request_id=2, consumer_id=consumer_id, subscription="sub", subType=SHARED
        )
        refused.read_compacted = True
        peer.say(Command(type=Command.SUBSCRIBE, subscribe=refused))
        assert (await peer.hear(Command.ERROR)).error == api.NotAllowedError
    taken = api.CommandProducer(topic="t", request_id=3, producer_id=1, producer_access_mode=1)
    await peer.producer("t", 7)
    held = broker.memory.clients.used
    peer.say(Command(type=Command.PRODUCER, producer=taken))
    assert (await peer.hear(Command.ERROR)).error == api.ProducerFenced
    assert broker.memory.clients.used == held


async def test_who_had_many_consumers_is_forgotten_in_steps(broker: Broker, peer: Peer) -> None:
    count = 300
    failover = api.CommandSubscribe.Failover
    for number in range(count):
        options = {"subscription": f"s{number // 100}", "subType": failover}
        await peer.subscribe("t", number, durable=False, **options)
    peer.lose()
    left = [len(peer.client.consumers)]
    assert 0 < left[0] < count
    async with asyncio.timeout(PATIENCE_SECONDS):
        while left[-1]:
            await asyncio.sleep(0)
            left.append(len(peer.client.consumers))
    assert max(before - after for before, after in pairwise(left)) < count / 2
    assert broker.memory.clients.used == 0


@pytest.mark.parametrize("field", ["ack", "redeliverUnacknowledgedMessages"])
async def test_long_lists_of_ids_count_with_what_they_are_parsed_to(peer: Peer, field: str) -> None:
    ids = [api.MessageIdData(ledgerId=1, entryId=1)] * 1_000
    command = Command(type=Command.ACK)
    if field == "ack":
        command.ack.ack_type = api.CommandAck.Individual
    else:
        command.type = Command.REDELIVER_UNACKNOWLEDGED_MESSAGES
    getattr(command, field).consumer_id = 1
    (message_ids,) = [
        each for each in ("message_id", "message_ids") if hasattr(getattr(command, field), each)
    ]
    getattr(getattr(command, field), message_ids).extend(ids)
    frame = frame_of(command)
    request = peer.session.receive(memoryview(frame))
    assert request is not None
    # A message in Python's hands, and the pointers to it.
    assert request.held_bytes >= 140 * len(ids)
    ping = peer.session.receive(memoryview(frame_of(Command(type=Command.PING, ping={}))))
    assert ping is not None
    assert ping.held_bytes == 0
