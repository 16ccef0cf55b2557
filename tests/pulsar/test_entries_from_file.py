"""Goal: large entries are parts of the log's file, and the same as those that are read."""

from __future__ import annotations

import asyncio
import random

import pulsar
import pytest

from penstock.broker.broker import Broker
from penstock.limits import FROM_FILE_BYTES
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_messages import payloads, publish, receive
from pulsar_peer import Command, Peer, entry

SHARED = api.CommandSubscribe.Shared
KINDS = [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared]
SMALL, LARGE = 100, 50_000
SIZES = [LARGE, LARGE, SMALL, SMALL, LARGE, FROM_FILE_BYTES // 2, 2_000_000, SMALL]


async def connected(broker: Broker, *, sends_files: bool, version: int = 20) -> Peer:
    peer = Peer(broker, sends_files=sends_files)
    await peer.connect(version)
    return peer


async def published(broker: Broker, sizes: list[int], **metadata: object) -> list[bytes]:
    """Write an entry for each size, in bytes of its payload, and return them."""
    peer = await connected(broker, sends_files=False)
    await peer.producer("t")
    chance = random.Random(4)
    sent = []
    for number, size in enumerate(sizes):
        sent.append(entry(chance.randbytes(size), sequence_id=number, **metadata))
        await peer.publish(sent[-1], sequence_id=number)
    peer.lose()
    return sent


async def heard(peer: Peer, count: int) -> list[tuple[bytes, api.CommandMessage]]:
    """What the next messages bring."""
    frames = [await peer.hear_frame(Command.MESSAGE) for _ in range(count)]
    return [(bytes(frame.entry), frame.command.message) for frame in frames]


async def test_large_entries_go_from_the_file_as_they_are(broker: Broker) -> None:
    sent = await published(broker, SIZES)
    peer = await connected(broker, sends_files=True)
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(100)
    got = await heard(peer, len(sent))
    assert [body for body, _ in got] == sent
    assert [message.message_id.entryId for _, message in got] == list(range(len(sent)))
    # Those before the first small one, and the one that did not fit into the read that began there.
    assert peer.ranges == 3
    peer.lose()


async def test_permits_and_redelivery_are_the_same(broker: Broker) -> None:
    sent = await published(broker, [LARGE] * 40)
    peer = await connected(broker, sends_files=True)
    await peer.subscribe("t", subType=SHARED, initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(3)
    got = await heard(peer, 3)
    await asyncio.sleep(0.02)
    assert not [frame for frame in peer.heard if frame.command.type == Command.MESSAGE]
    peer.acknowledge(got[1][1].message_id)
    again = api.CommandRedeliverUnacknowledgedMessages(consumer_id=1)
    peer.say(
        Command(
            type=Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=again
        )
    )
    peer.flow(100)
    got = await heard(peer, 39)
    assert [body for body, _ in got] == [sent[0], *sent[2:]]
    assert [message.redelivery_count for _, message in got] == [1, 1, *[0] * 37]
    assert peer.ranges >= 40
    peer.lose()


@pytest.mark.parametrize(("sends_files", "version"), [(False, 20), (True, 10)])
async def test_who_takes_no_files_is_sent_none(
    broker: Broker, sends_files: bool, version: int
) -> None:
    sent = await published(broker, [LARGE] * 30)
    first = await connected(broker, sends_files=True)
    options = {"subType": SHARED, "initialPosition": api.CommandSubscribe.Earliest}
    await first.subscribe("t", **options)
    first.flow(2)
    await heard(first, 2)
    assert first.ranges == 2
    second = await connected(broker, sends_files=sends_files, version=version)
    await second.subscribe("t", **options)
    second.flow(10)
    got = [body for body, _ in await heard(second, 10)]
    checksum_size = 0 if version > 10 else 6
    assert got == [each[checksum_size:] for each in sent[2:12]]
    assert second.ranges == 0
    first.lose()
    second.lose()


async def test_chunks_are_looked_at(broker: Broker) -> None:
    chunks = {"uuid": "one", "num_chunks_from_msg": 2, "total_chunk_msg_size": 2 * LARGE}
    peer = await connected(broker, sends_files=True)
    await peer.producer("t")
    for number in range(2):
        body = entry(bytes(LARGE), chunk_id=number, sequence_id=0, **chunks)
        await peer.publish(body, sequence_id=number)
    await peer.subscribe("t", subType=SHARED, initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(10)
    await heard(peer, 2)
    assert peer.ranges == 0
    peer.lose()


@pytest.mark.parametrize(
    "kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared], ids=str
)
def test_a_real_client_gets_what_was_sent(
    client: pulsar.Client, topic: str, kind: pulsar.ConsumerType
) -> None:
    chance = random.Random(5)
    sent = [chance.randbytes(chance.choice(SIZES)) for _ in range(200)]
    publish(client.create_producer(topic, compression_type=pulsar.CompressionType.NONE), sent)
    consumer = client.subscribe(
        topic, "sub", consumer_type=kind, initial_position=pulsar.InitialPosition.Earliest
    )
    assert payloads(receive(consumer, len(sent))) == sent
