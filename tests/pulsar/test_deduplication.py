"""Goal: what a producer sends again is written once, whatever happened to its connection or to the
broker; and owners of a topic stay counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pulsar
import pytest

from broker_process import BrokerProcess
from patience import PATIENCE_SECONDS
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_messages import receive
from pulsar_peer import Command, Peer, batch, entry

Connect = Callable[[str], pulsar.Client]
NOWHERE = 2**64 - 1
CPP = "Pulsar-CPP-v4.2.0"


@asynccontextmanager
async def connected(broker: Broker, client: str = "test") -> AsyncIterator[Peer]:
    peer = Peer(broker)
    await peer.connect(client=client)
    try:
        yield peer
    finally:
        if not peer.lost:
            peer.lose()


async def send(peer: Peer, sequence_id: int, body: bytes | None = None, **fields: Any) -> int:
    """Return where a message is stored, NOWHERE where it is there already."""
    sent = api.CommandSend(producer_id=1, sequence_id=sequence_id, **fields)
    body = body or entry(sequence_id=sequence_id)
    receipt = await peer.ask(Command(type=Command.SEND, send=sent), Command.SEND_RECEIPT, body)
    assert receipt.sequence_id == sequence_id
    assert (receipt.message_id.ledgerId == NOWHERE) == (receipt.message_id.entryId == NOWHERE)
    return int(receipt.message_id.entryId)


def partition_of(peer: Peer) -> Any:
    return peer.client.producers[1].partition


async def test_a_message_that_comes_again_has_a_receipt_and_no_place(peer: Peer) -> None:
    assert (await peer.producer("t", producer_name="me")).last_sequence_id == -1
    assert [await send(peer, number) for number in (0, 1, 7)] == [0, 1, 2]
    assert [await send(peer, number) for number in (7, 0, 5)] == [NOWHERE] * 3
    assert await send(peer, 8) == 3
    assert partition_of(peer).end_offset == 4


async def test_another_producer_has_numbers_of_its_own(peer: Peer) -> None:
    await peer.producer("t", producer_name="me")
    await send(peer, 5)
    close = api.CommandCloseProducer(producer_id=1, request_id=3)
    await peer.ask(Command(type=Command.CLOSE_PRODUCER, close_producer=close), Command.SUCCESS)
    assert (await peer.producer("t", producer_name="you")).last_sequence_id == -1
    assert await send(peer, 0) == 1


async def test_a_producer_that_comes_back_hears_where_it_was(peer: Peer, broker: Broker) -> None:
    await peer.producer("t", producer_name="me")
    await send(peer, 5)
    peer.lose()
    async with connected(broker) as again:
        assert (await again.producer("t", producer_name="me")).last_sequence_id == 5
        assert await send(again, 5) == NOWHERE
        assert await send(again, 6) == 1


@pytest.mark.parametrize("clean", [True, False])
async def test_a_restart_forgets_nothing(tmp_path: Path, clean: bool) -> None:
    settings = BrokerSettings()
    broker = await Broker.open(tmp_path, settings)
    async with connected(broker) as peer:
        await peer.producer("t", producer_name="me")
        payload, count = batch(b"a", b"b", b"c")
        assert await send(peer, 3, entry(payload, num_messages_in_batch=count)) == 0
        assert await send(peer, 10) == 3
        if not clean:  # What was acknowledged, and no checkpoint of it.
            (folder,) = (tmp_path / "topics").glob("*/0")
            kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    await broker.close()
    if not clean:
        put_back(folder, kept)
    broker = await Broker.open(tmp_path, settings)
    async with connected(broker) as peer:
        assert (await peer.producer("t", producer_name="me")).last_sequence_id == 10
        assert await send(peer, 3, entry(payload, num_messages_in_batch=count)) == NOWHERE
        assert await send(peer, 11) == 4
    await broker.close()


async def test_a_batch_counts_with_its_last_message(peer: Peer) -> None:
    await peer.producer("t", producer_name="me")
    payload, count = batch(b"a", b"b", b"c")
    body = entry(payload, num_messages_in_batch=count)
    assert await send(peer, 10, body, highest_sequence_id=12) == 0
    assert await send(peer, 10, body, highest_sequence_id=12) == NOWHERE
    assert await send(peer, 12) == NOWHERE
    assert await send(peer, 13) == 3


@pytest.mark.parametrize("fields", [{}, {"num_messages": 3}])
async def test_a_batch_without_its_highest_number_counts_with_it_for_who_comes_anew(
    peer: Peer, broker: Broker, fields: dict[str, int]
) -> None:
    """While its producer goes on, the numbers between may be those of other batches."""
    await peer.producer("t", producer_name="me")
    payload, count = batch(b"a", b"b", b"c")
    body = entry(payload, num_messages_in_batch=count)
    assert await send(peer, 10, body, **fields) == 0
    assert await send(peer, 10, body, **fields) == NOWHERE
    assert await send(peer, 11) == 3
    peer.lose()
    async with connected(broker) as anew:
        assert (await anew.producer("t", producer_name="me")).last_sequence_id == 12
        assert await send(anew, 12) == NOWHERE
        assert await send(anew, 13) == 4


@pytest.mark.parametrize("clean", [True, False])
async def test_batches_by_key_that_were_not_written_come_after_a_restart(
    tmp_path: Path, clean: bool
) -> None:
    """Their producer comes back under its name and sends again, in the order of first numbers."""
    payload, count = batch(b"a", b"b")
    body = entry(payload, num_messages_in_batch=count, sequence_id=0, highest_sequence_id=5)
    broker = await Broker.open(tmp_path, BrokerSettings())
    async with connected(broker) as peer:
        await peer.producer("t", producer_name="me")
        assert await send(peer, 0, body, highest_sequence_id=5) == 0
        if not clean:
            (folder,) = (tmp_path / "topics").glob("*/0")
            kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    await broker.close()
    if not clean:
        put_back(folder, kept)
    broker = await Broker.open(tmp_path, BrokerSettings())
    async with connected(broker) as peer:
        await peer.producer("t", producer_name="me", epoch=1)
        assert await send(peer, 0, body, highest_sequence_id=5) == NOWHERE
        assert [await send(peer, number) for number in (1, 2, 6)] == [2, 3, 4]
    await broker.close()


def put_back(folder: Path, kept: dict[str, bytes]) -> None:
    for file in folder.iterdir():
        file.unlink()
    for name, content in kept.items():
        (folder / name).write_bytes(content)


async def test_the_parts_of_a_message_have_one_number(peer: Peer) -> None:
    await peer.producer("t", producer_name="me")

    async def part(number: int) -> int:
        metadata = {"uuid": "u", "chunk_id": number, "num_chunks_from_msg": 3}
        return await send(peer, 4, entry(**metadata), is_chunk=True)

    assert [await part(number) for number in (0, 1, 0, 1, 2)] == [0, 1, 2, 3, 4]
    assert [await part(number) for number in (0, 1, 2)] == [NOWHERE] * 3
    assert await send(peer, 5) == 5


async def test_numbers_that_a_header_has_no_room_for_are_not_looked_at(peer: Peer) -> None:
    await peer.producer("t", producer_name="me")
    assert [await send(peer, 1 << 60) for _ in range(2)] == [0, 1]


async def test_a_topic_may_do_without(peer: Peer, broker: Broker) -> None:
    await peer.producer("t", producer_name="me")
    topic = broker.topics.get(TopicName("public", "default", "t"))
    assert topic is not None
    await broker.topics.configure(topic, lambda _: {"deduplication": "false"})
    assert [await send(peer, 1) for _ in range(2)] == [0, 1]
    peer.lose()
    async with connected(broker) as again:
        assert (await again.producer("t", producer_name="me")).last_sequence_id == -1


async def test_a_name_of_ours_is_forgotten_with_its_producer(peer: Peer) -> None:
    await peer.producer("t")
    await send(peer, 1)
    partition = partition_of(peer)
    assert len(partition.producers.named) == 1
    close = api.CommandCloseProducer(producer_id=1, request_id=3)
    await peer.ask(Command(type=Command.CLOSE_PRODUCER, close_producer=close), Command.SUCCESS)
    assert len(partition.producers.named) == 0


async def test_the_cpp_client_gives_no_number_twice(broker: Broker) -> None:
    """It begins to number anew behind the last message that the broker has, where it has no receipt
    yet, whatever it is about to send again.
    """
    async with connected(broker, CPP) as peer:
        name = (await peer.producer("t")).producer_name
        await send(peer, 0)
    async with connected(broker, CPP) as peer:
        options = {"producer_name": name, "user_provided_producer_name": False, "epoch": 1}
        following = (await peer.producer("t", **options)).last_sequence_id + 1
        assert following > 1_000_000
        assert [await send(peer, n) for n in (0, 1, 2, following)] == [NOWHERE, 1, 2, 3]


async def test_owners_stay_counted_over_a_restart(tmp_path: Path) -> None:
    fencing = {"producer_access_mode": api.ExclusiveWithFencing}
    for epoch in range(3):
        broker = await Broker.open(tmp_path, BrokerSettings())
        async with connected(broker) as peer:
            assert (await peer.producer("t", **fencing)).topic_epoch == epoch
            if epoch == 2:
                peer.lose()
                await old_owner_is_fenced(broker)
        await broker.close()


async def old_owner_is_fenced(broker: Broker) -> None:
    async with connected(broker) as late:
        made = api.CommandProducer(
            topic="t",
            producer_id=2,
            request_id=9,
            producer_access_mode=api.Exclusive,
            topic_epoch=1,
        )
        refused = await late.ask(Command(type=Command.PRODUCER, producer=made), Command.ERROR)
        assert refused.error == api.ProducerFenced
        made.topic_epoch = 2
        again = await late.ask(
            Command(type=Command.PRODUCER, producer=made), Command.PRODUCER_SUCCESS
        )
        assert again.topic_epoch == 2


async def test_a_deleted_topic_takes_its_epoch_along(peer: Peer, broker: Broker) -> None:
    fencing = {"producer_access_mode": api.ExclusiveWithFencing}
    await peer.producer("t", **fencing)
    topic = broker.topics.get(TopicName("public", "default", "t"))
    assert topic is not None
    await broker.topics.delete(topic)
    assert broker.exclusive_epochs.get(topic.partitions[0].id) is None
    assert (await peer.producer("t", producer_id=2, **fencing)).topic_epoch == 0


@pytest.mark.parametrize("name", ["mine", None])
def test_kill_9_under_a_producer_writes_each_message_once(
    server: BrokerProcess, connect: Connect, topic: str, name: str | None
) -> None:
    producer = connect(server.pulsar).create_producer(
        topic, producer_name=name, batching_enabled=True, batching_max_messages=7
    )
    producer.send(b"0")
    done = threading.Semaphore(0)
    failures: list[pulsar.Result] = []

    def sent(result: pulsar.Result, _id: object) -> None:
        if result != pulsar.Result.Ok:
            failures.append(result)
        done.release()

    total = 300
    for number in range(1, total):
        producer.send_async(b"%d" % number, sent)
        if number == 150:
            server.kill9()
            server.start()
        elif number % 20 == 0:
            time.sleep(0.002)
    producer.flush()
    for _ in range(total - 1):
        assert done.acquire(timeout=PATIENCE_SECONDS)
    assert not failures
    earliest = pulsar.InitialPosition.Earliest
    consumer = connect(server.pulsar).subscribe(topic, "sub", initial_position=earliest)
    assert [int(message.data()) for message in receive(consumer, total)] == list(range(total))
    with pytest.raises(pulsar.Timeout):
        consumer.receive(300)


def test_batches_by_key_are_all_there(server: BrokerProcess, connect: Connect, topic: str) -> None:
    """Their numbers lie between each other: 0 and 7 in one, 1 and 8 in the next."""
    total = 300
    producer = connect(server.pulsar).create_producer(
        topic, batching_enabled=True, batching_type=pulsar.BatchingType.KeyBased
    )
    for number in range(total):
        producer.send_async(b"%d" % number, None, partition_key=str(number % 7))
    producer.flush()
    earliest = pulsar.InitialPosition.Earliest
    consumer = connect(server.pulsar).subscribe(topic, "sub", initial_position=earliest)
    got = sorted(int(message.data()) for message in receive(consumer, total))
    assert got == list(range(total))


def test_a_program_that_starts_again_goes_on_where_it_was(
    server: BrokerProcess, connect: Connect, topic: str
) -> None:
    producer = connect(server.pulsar).create_producer(topic, producer_name="import")
    # From 1 on: Python's client takes a number 0 for none.
    for number in range(1, 6):
        producer.send(b"%d" % number, sequence_id=number)
    producer.close()
    server.kill9()
    server.start()
    producer = connect(server.pulsar).create_producer(topic, producer_name="import")
    assert producer.last_sequence_id() == 5
    for number in range(1, 9):
        producer.send(b"%d" % number, sequence_id=number)
    earliest = pulsar.InitialPosition.Earliest
    consumer = connect(server.pulsar).subscribe(topic, "sub", initial_position=earliest)
    assert [int(message.data()) for message in receive(consumer, 8)] == list(range(1, 9))
