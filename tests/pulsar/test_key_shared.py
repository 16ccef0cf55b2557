"""What is said on the wire about who gets which keys, of logs and of non-persistent topics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import limits
from penstock.broker.broker import Broker
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer, batch, entry
from receivers import settled

EXCLUSIVE, SHARED = api.CommandSubscribe.Exclusive, api.CommandSubscribe.Shared
FAILOVER, KEY_SHARED = api.CommandSubscribe.Failover, api.CommandSubscribe.Key_Shared
EARLIEST = api.CommandSubscribe.Earliest
TOPICS = ("t", "non-persistent://public/default/t")
Asked = dict[str, Any]


def meta(*ranges: tuple[int, int], mode: Any = api.STICKY, **options: Any) -> api.KeySharedMeta:
    wanted = [api.IntRange(start=start, end=end) for start, end in ranges]
    return api.KeySharedMeta(keySharedMode=mode, hashRanges=wanted, **options)


async def answers(peer: Peer, topic: str, *requests: Asked) -> list[str]:
    """Subscribe one consumer after the other; return what each is answered."""
    found = []
    for number, request in enumerate(requests, 1):
        options = {"subType": KEY_SHARED, "consumer_name": f"c{number}", **request}
        asked = {"topic": topic, "subscription": "sub", "consumer_id": number, **options}
        made = api.CommandSubscribe(request_id=number, initialPosition=EARLIEST, **asked)
        peer.say(Command(type=Command.SUBSCRIBE, subscribe=made))
        while not (heard := [f for f in peer.heard if _answers(f.command, number)]):
            assert not peer.failures
            assert not peer.close_reason
            peer.say(Command(type=Command.PONG, pong=api.CommandPong()))
            await asyncio.sleep(0.001)
        (frame,) = heard
        peer.heard.remove(frame)
        error = frame.command.error
        refused = frame.command.type == Command.ERROR
        found.append(f"{api.ServerError.Name(error.error)}" if refused else "OK")
    return found


def _answers(command: Command, request_id: int) -> bool:
    answer = command.error if command.type == Command.ERROR else command.success
    return command.type in {Command.ERROR, Command.SUCCESS} and answer.request_id == request_id


ALONE: Asked = {"keySharedMeta": meta((0, 65_535))}
LOWER: Asked = {"keySharedMeta": meta((0, 32_767))}
UPPER: Asked = {"keySharedMeta": meta((32_768, 65_535))}
NONE: Asked = {"keySharedMeta": meta()}
SPREAD: Asked = {"keySharedMeta": meta(mode=api.AUTO_SPLIT)}
LOOSE: Asked = {"keySharedMeta": meta(mode=api.AUTO_SPLIT, allowOutOfOrderDelivery=True)}
MANY: Asked = {"keySharedMeta": meta(*((2 * n, 2 * n) for n in range(limits.KEY_RANGES + 1)))}


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize(
    ("requests", "answered"),
    [
        ([{}, SPREAD], ["OK", "OK"]),
        ([SPREAD, {"keySharedMeta": meta((10, 5), mode=api.AUTO_SPLIT)}], ["OK", "OK"]),
        ([SPREAD, {"keySharedMeta": meta(mode=0, entryBucketDispatch=True)}], ["OK", "OK"]),
        ([LOOSE, LOOSE], ["OK", "OK"]),
        ([LOOSE, {}], ["OK", "ConsumerBusy"]),
        ([ALONE, {}], ["OK", "ConsumerBusy"]),
        ([{}, ALONE], ["OK", "ConsumerBusy"]),
        ([NONE], ["ConsumerAssignError"]),
        ([{"keySharedMeta": meta((10, 5))}], ["ConsumerAssignError"]),
        ([LOWER, ALONE, UPPER], ["OK", "ConsumerAssignError", "OK"]),
        ([MANY], ["NotAllowedError"]),
        ([{}, {"subType": SHARED}], ["OK", "ConsumerBusy"]),
        ([{"subType": SHARED}, {}], ["OK", "ConsumerBusy"]),
        ([{}, {"subType": FAILOVER}], ["OK", "ConsumerBusy"]),
        ([{"subType": EXCLUSIVE, **LOWER}, {}], ["OK", "ConsumerBusy"]),
        ([{"subType": EXCLUSIVE, **NONE}], ["OK"]),
        ([{"subType": EXCLUSIVE, **SPREAD}], ["OK"]),
        ([{"subType": EXCLUSIVE, **MANY}], ["NotAllowedError"]),
        ([{"subType": FAILOVER, **NONE}, {"subType": FAILOVER, **ALONE}], ["OK", "OK"]),
        ([{"read_compacted": True}], ["NotAllowedError"]),
    ],
)
async def test_who_may_share_keys(
    peer: Peer, topic: str, requests: list[Asked], answered: list[str]
) -> None:
    assert await answers(peer, topic, *requests) == answered


async def test_a_mode_that_is_none_is_refused(peer: Peer) -> None:
    known = api.CommandSubscribe(
        topic="t", subscription="s", subType=KEY_SHARED, consumer_id=1, request_id=1, **SPREAD
    )
    command = Command(type=Command.SUBSCRIBE, subscribe=known).SerializeToString()
    unknown = command.replace(b"\x08\x00", b"\x08\x07")
    assert unknown != command
    peer.say_bytes((len(command) + 4).to_bytes(4) + len(command).to_bytes(4) + unknown)
    assert (await peer.hear(Command.ERROR)).error == api.NotAllowedError


async def heard(peer: Peer) -> list[tuple[int, bytes]]:
    """Which consumer has heard what; forgets it."""
    await settled()
    found = [frame for frame in peer.heard if frame.command.type == Command.MESSAGE]
    peer.heard = [frame for frame in peer.heard if frame not in found]
    return [(f.command.message.consumer_id, bytes(f.entry)[-2:]) for f in found]


@pytest.mark.parametrize("topic", TOPICS)
async def test_each_key_has_its_consumer(peer: Peer, topic: str) -> None:
    await peer.producer(topic)
    assert await answers(peer, topic, {}, {}) == ["OK", "OK"]
    for consumer_id in (1, 2):
        peer.flow(100, consumer_id)
    for key in ("k0", "k1", "k2", "k3") * 2:
        await peer.publish(entry(key.encode(), partition_key=key))
    payload, count = batch(b"one", b"two")
    of_batch = entry(payload, partition_key="k1", num_messages_in_batch=count)
    await peer.publish(of_batch)
    found = await heard(peer)
    of_c1 = [(1, key) for key in (b"k0", b"k3") * 2]
    of_c2 = [(2, key) for key in (b"k1", b"k2") * 2] + [(2, b"wo")]
    assert sorted(found) == sorted(of_c1 + of_c2)
    assert peer.silent(Command.ACTIVE_CONSUMER_CHANGE)


async def test_what_is_not_stored_is_nobodys_without_its_consumer(peer: Peer) -> None:
    topic = TOPICS[1]
    await peer.producer(topic)
    assert await answers(peer, topic, LOWER, UPPER) == ["OK", "OK"]
    peer.flow(100, 1)
    sent = [f"{number:02}" for number in range(40)]
    for key in sent:
        await peer.publish(entry(key.encode(), partition_key=key))
    first = await heard(peer)
    assert {consumer for consumer, _ in first} == {1}
    peer.flow(100, 2)
    for key in sent:
        await peer.publish(entry(key.encode(), partition_key=key))
    second = await heard(peer)
    assert len(second) == 40
    assert [each for each in second if each[0] == 1] == first


@pytest.mark.parametrize("topic", TOPICS)
async def test_who_is_alone_may_read_some_keys(peer: Peer, topic: str, broker: Broker) -> None:
    sent = [f"{number:02}" for number in range(40)]
    found = []
    for request in (LOWER, UPPER):
        asked = {"subType": EXCLUSIVE, "durable": False, **request}
        assert await answers(peer, topic, asked) == ["OK"]
        peer.flow(100)
        await peer.producer(topic)
        for key in sent:
            await peer.publish(entry(key.encode(), partition_key=key))
        found.append([key for _, key in await heard(peer)])
        consumer = peer.client.consumers.get(1)
        if consumer is not None:
            assert consumer.subscription.backlog <= len(found[-1]) * 2
        closing = api.CommandCloseConsumer(consumer_id=1, request_id=9)
        await peer.ask(
            Command(type=Command.CLOSE_CONSUMER, close_consumer=closing), Command.SUCCESS
        )
        peer.client.close_producer(1)
    lower, upper = (set(each) for each in found)
    assert lower.isdisjoint(upper)
    assert lower | upper == {key.encode() for key in sent}


async def test_an_acknowledgement_up_to_a_message_is_refused_or_ignored(peer: Peer) -> None:
    await peer.producer("t")
    assert await answers(peer, "t", {}) == ["OK"]
    peer.flow(10)
    await peer.publish(entry(b"k0", partition_key="k0"))
    message = await peer.hear(Command.MESSAGE)
    cumulative = api.CommandAck.Cumulative
    peer.acknowledge(message.message_id, ack_type=cumulative)
    await peer.ended()
    assert peer.client.consumers[1].subscription.backlog == 1
    stats = api.CommandConsumerStats(consumer_id=1, request_id=7)
    told = await peer.ask(
        Command(type=Command.CONSUMER_STATS, consumerStats=stats), Command.CONSUMER_STATS_RESPONSE
    )
    assert (told.type, told.unackedMessages, told.availablePermits) == ("Key_Shared", 1, 9)
