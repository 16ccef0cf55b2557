"""Goal: no entry is stored that its readers would stop at; what is looked into keeps its place.

Method: a Pulsar client without a socket, which sends what no client means.
"""

from __future__ import annotations

import gc
import tracemalloc
import zlib

import pytest

from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer, batch, entry

NO_BATCH = b"no messages at all, but a checksum that fits"
SENSELESS = {
    "no batch": entry(NO_BATCH, num_messages_in_batch=3),
    "fewer messages": entry(batch(b"a" * 9, b"b" * 9)[0], num_messages_in_batch=3),
    "not compressed": entry(NO_BATCH, compression=1, uncompressed_size=100),
    "large": entry(NO_BATCH * 70_000, num_messages_in_batch=3),
    "large and not compressed": entry(bytes(40_000), compression=2, uncompressed_size=90_000),
}


@pytest.mark.parametrize("name", SENSELESS)
@pytest.mark.parametrize(
    ("client", "error"),
    [("Pulsar-CPP-v4.2.0", api.ChecksumError), ("Pulsar-Java-v4.0.0", api.NotAllowedError)],
)
async def test_an_entry_that_no_reader_could_read_fails_for_good(
    broker: Broker, name: str, client: str, error: int
) -> None:
    peer = Peer(broker)
    await peer.connect(client=client)
    await peer.producer("t")
    await peer.publish(entry(), sequence_id=0)
    sent = api.CommandSend(producer_id=1, sequence_id=1)
    refused = await peer.ask(
        Command(type=Command.SEND, send=sent), Command.SEND_ERROR, SENSELESS[name]
    )
    assert (refused.sequence_id, refused.error) == (1, error)
    assert (await peer.publish(entry(), sequence_id=2)).message_id.entryId == 1
    peer.lose()


@pytest.mark.parametrize("name", ["large", "large and not compressed"])
async def test_what_is_refused_leaves_nothing_behind(peer: Peer, name: str) -> None:
    await peer.producer("t")

    async def refused(sequence: int) -> None:
        sent = api.CommandSend(producer_id=1, sequence_id=sequence)
        await peer.ask(Command(type=Command.SEND, send=sent), Command.SEND_ERROR, SENSELESS[name])

    await refused(0)  # Loads what is loaded once.
    gc.disable()
    tracemalloc.start()
    try:
        for sequence in range(1, 11):
            await refused(sequence)
        assert tracemalloc.get_traced_memory()[0] < 5 * len(SENSELESS[name])
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_what_is_looked_into_in_a_thread_keeps_its_place(peer: Peer) -> None:
    await peer.producer("t")
    payload = zlib.compress(bytes(1 << 20))
    large = entry(payload, compression=2, uncompressed_size=1 << 20)
    for sequence in range(8):
        sent = api.CommandSend(producer_id=1, sequence_id=sequence)
        body = entry() if sequence % 2 else large
        peer.say(Command(type=Command.SEND, send=sent), body)
    receipts = [await peer.hear(Command.SEND_RECEIPT) for _ in range(8)]
    placed = [(each.sequence_id, each.message_id.entryId) for each in receipts]
    assert placed == [(number, number) for number in range(8)]


async def test_what_waits_for_a_look_is_dropped_with_its_producer(peer: Peer) -> None:
    await peer.producer("t")
    partition = peer.client.producers[1].partition
    large = entry(zlib.compress(bytes(1 << 20)), compression=2, uncompressed_size=1 << 20)
    sent = api.CommandSend(producer_id=1, sequence_id=0)
    peer.say(Command(type=Command.SEND, send=sent), large)
    close = api.CommandCloseProducer(producer_id=1, request_id=9)
    await peer.ask(Command(type=Command.CLOSE_PRODUCER, close_producer=close), Command.SUCCESS)
    await peer.ended()
    assert partition.end_offset == 0
    assert peer.silent(Command.SEND_RECEIPT)


async def test_a_topic_may_go_without(broker: Broker) -> None:
    name = TopicName("public", "default", "t")
    await broker.topics.create(name, 1, config={"validate_records": "false"})
    peer = Peer(broker)
    await peer.connect()
    await peer.producer("t-partition-0")
    assert (await peer.publish(SENSELESS["no batch"])).message_id.entryId == 0
    peer.lose()
