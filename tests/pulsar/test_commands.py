"""Commands that the Python client seldom or never sends, as other clients do."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_peer import Command, Peer, batch, entry
from receivers import settled

Id = api.MessageIdData
EARLIEST = api.CommandSubscribe.Earliest
SHARED = api.CommandSubscribe.Shared
EXCLUSIVE = api.CommandSubscribe.Exclusive
FAILOVER = api.CommandSubscribe.Failover


async def written(peer: Peer, count: int, **metadata: Any) -> int:
    """Publish messages to `t` and return the id of its ledger."""
    await peer.producer("t")
    for number in range(count):
        await peer.publish(entry(b"%d" % number, **metadata), sequence_id=number)
    return peer.client.producers[1].partition.id


async def refused(peer: Peer, **options: Any) -> Any:
    request = {
        "topic": "t",
        "subscription": "sub",
        "subType": SHARED,
        "consumer_id": 1,
        "request_id": 2,
        **options,
    }
    command = Command(type=Command.SUBSCRIBE, subscribe=api.CommandSubscribe(**request))
    return await peer.ask(command, Command.ERROR)


async def received(peer: Peer, count: int) -> list[int]:
    return [(await peer.hear(Command.MESSAGE)).message_id.entryId for _ in range(count)]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"read_compacted": True}, api.NotAllowedError),
        ({"subscription": ""}, api.ProducerBusy),
        ({"subscription": "pulsar.dedup"}, api.ProducerBusy),
        ({"force_topic_creation": False}, api.TopicNotFound),
    ],
)
async def test_subscriptions_that_can_not_be(
    peer: Peer, options: dict[str, Any], error: int
) -> None:
    assert (await refused(peer, **options)).error == error


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"consumer_name": "c" * 1025}, api.NotAllowedError),
        ({"subscription": "s" * 20_000}, api.NotAllowedError),
        ({"consumer_id": 3}, api.NotAllowedError),
        ({"subscription": "full"}, api.ConsumerBusy),
    ],
)
async def test_a_client_has_only_so_much(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], error: int
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTION_CONSUMERS", 1)
    await peer.subscribe("t", consumer_id=9, subscription="full", subType=SHARED)
    if "consumer_id" in options:
        monkeypatch.setattr(limits, "PULSAR_CONNECTION_CONSUMERS", 1)
    assert (await refused(peer, **options)).error == error


@pytest.mark.parametrize("options", [{"producer_name": "p" * 1025}, {}])
async def test_a_connection_has_only_so_many_producers(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    await peer.producer("t")
    if not options:
        monkeypatch.setattr(limits, "PULSAR_CONNECTION_PRODUCERS", 1)
    asked = api.CommandProducer(topic="t", producer_id=2, request_id=7, **options)
    answer = await peer.ask(Command(type=Command.PRODUCER, producer=asked), Command.ERROR)
    assert (answer.request_id, answer.error) == (7, api.NotAllowedError)


async def test_a_broker_that_creates_no_topics_says_so(tmp_path: Path) -> None:
    broker = await Broker.open(tmp_path, BrokerSettings(auto_create_topics=False))
    peer = Peer(broker)
    await peer.connect()
    assert (await refused(peer)).error == api.TopicNotFound
    metadata = api.CommandPartitionedTopicMetadata(topic="t", request_id=4)
    command = Command(type=Command.PARTITIONED_METADATA, partitionMetadata=metadata)
    answer = await peer.ask(command, Command.PARTITIONED_METADATA_RESPONSE)
    assert answer.error == api.TopicNotFound
    peer.lose()
    await broker.close()


async def test_a_reader_begins_some_seconds_ago(peer: Peer) -> None:
    now = int(time.time() * 1000)
    await peer.producer("t")
    for number, age in enumerate((90_000, 50_000, 10_000)):
        await peer.publish(entry(publish_time=now - age), sequence_id=number)
    await peer.subscribe("t", durable=False, start_message_rollback_duration_sec=60)
    peer.flow(10)
    assert await received(peer, 2) == [1, 2]


async def test_a_producer_of_dead_letters_makes_their_subscription(
    peer: Peer, broker: Broker
) -> None:
    for producer_id in (1, 2):
        await peer.producer("dead", producer_id, initial_subscription_name="later")
    await peer.publish(entry())
    await peer.subscribe("dead", subscription="later")
    peer.flow(1)
    assert await received(peer, 1) == [0]


async def test_failover_consumers_hear_whose_turn_it_is(peer: Peer, broker: Broker) -> None:
    await broker.topics.create(TopicName("public", "default", "p"), 1)
    options = {"subType": FAILOVER, "topic": "p-partition-0"}
    await peer.subscribe(consumer_id=1, consumer_name="b", **options)
    peer.flow(1)
    change = await peer.hear(Command.ACTIVE_CONSUMER_CHANGE)
    assert (change.consumer_id, change.is_active) == (1, True)
    await peer.subscribe(consumer_id=2, consumer_name="a", **options)
    peer.flow(1, 2)
    changes = [await peer.hear(Command.ACTIVE_CONSUMER_CHANGE) for _ in range(2)]
    assert {(c.consumer_id, c.is_active) for c in changes} == {(1, False), (2, True)}


async def test_old_clients_hear_nothing_of_turns(broker: Broker) -> None:
    peer = Peer(broker)
    await peer.connect(version=11)
    await peer.subscribe("t", subType=FAILOVER)
    peer.flow(1)
    assert peer.silent(Command.ACTIVE_CONSUMER_CHANGE)
    peer.lose()


async def test_redelivery_carries_the_epoch_that_asked_for_it(peer: Peer) -> None:
    """PIP-84: the client drops what was under way when it gave everything back."""
    await written(peer, 2)
    await peer.subscribe("t", initialPosition=EARLIEST, consumer_epoch=0)
    peer.flow(2)
    assert [(await peer.hear(Command.MESSAGE)).consumer_epoch for _ in range(2)] == [0, 0]
    again = api.CommandRedeliverUnacknowledgedMessages(consumer_id=1, consumer_epoch=1)
    peer.say(
        Command(
            type=Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=again
        )
    )
    peer.flow(2)
    messages = [await peer.hear(Command.MESSAGE) for _ in range(2)]
    assert [(m.message_id.entryId, m.consumer_epoch) for m in messages] == [(0, 1), (1, 1)]


async def test_shared_redelivery_is_for_ones_own_messages_of_this_ledger(peer: Peer) -> None:
    ledger = await written(peer, 3)
    await peer.subscribe("t", initialPosition=EARLIEST, subType=SHARED)
    peer.flow(3)
    assert await received(peer, 3) == [0, 1, 2]
    again = api.CommandRedeliverUnacknowledgedMessages(
        consumer_id=1,
        message_ids=[Id(ledgerId=ledger, entryId=1), Id(ledgerId=ledger + 1, entryId=2)],
    )
    peer.say(
        Command(
            type=Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliverUnacknowledgedMessages=again
        )
    )
    peer.flow(3)
    message = await peer.hear(Command.MESSAGE)
    assert (message.message_id.entryId, message.redelivery_count) == (1, 1)
    await settled()
    assert peer.silent(Command.MESSAGE)


async def test_acknowledgements_of_another_ledger_or_of_nothing_are_ignored(peer: Peer) -> None:
    ledger = await written(peer, 2)
    await peer.subscribe("t", initialPosition=EARLIEST)
    cursor = peer.client.consumers[1].subscription.cursor
    peer.acknowledge(Id(ledgerId=ledger + 1, entryId=1), ack_type=api.CommandAck.Cumulative)
    peer.acknowledge(Id(ledgerId=ledger, entryId=2**64 - 1), ack_type=api.CommandAck.Cumulative)
    peer.acknowledge(Id(ledgerId=ledger, entryId=0), consumer_id=99)
    await settled()
    assert cursor.position == 0
    peer.acknowledge(Id(ledgerId=ledger, entryId=1), ack_type=api.CommandAck.Cumulative)
    await settled()
    assert cursor.position == 2


async def test_a_message_that_a_client_could_not_read_is_acknowledged_and_logged(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await written(peer, 1)
    await peer.subscribe("t", initialPosition=EARLIEST)
    peer.acknowledge(
        Id(ledgerId=ledger, entryId=0), validation_error=api.CommandAck.DecompressionError
    )
    await settled()
    assert peer.client.consumers[1].subscription.cursor.position == 1
    assert "DecompressionError" in caplog.text


async def test_an_acknowledgement_is_answered_when_the_log_has_said_what_it_means(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await written(peer, 3)
    await peer.subscribe("t", initialPosition=EARLIEST)
    peer.flow(1)
    assert await received(peer, 1) == [0]
    consumer = peer.client.consumers[1]
    batch_at, gate = consumer.partition.batch_at, asyncio.Event()

    async def slowly(offset: int) -> object:
        await gate.wait()
        return await batch_at(offset)

    monkeypatch.setattr(consumer.partition, "batch_at", slowly)
    peer.acknowledge(*(Id(ledgerId=ledger, entryId=entry) for entry in range(3)), request_id=8)
    await settled()
    assert consumer.subscription.cursor.position == 1
    assert peer.silent(Command.ACK_RESPONSE)
    gate.set()
    answer = await peer.hear(Command.ACK_RESPONSE)
    assert (answer.request_id, consumer.subscription.cursor.position) == (8, 3)


async def test_a_cumulative_acknowledgement_on_shared_is_ignored(peer: Peer) -> None:
    ledger = await written(peer, 2)
    await peer.subscribe("t", initialPosition=EARLIEST, subType=SHARED)
    peer.acknowledge(Id(ledgerId=ledger, entryId=1), ack_type=api.CommandAck.Cumulative)
    await settled()
    assert peer.client.consumers[1].subscription.cursor.position == 0


async def test_seek_into_a_batch_leaves_out_what_its_ack_set_does(peer: Peer) -> None:
    await peer.producer("t")
    payload, count = batch(b"a", b"b", b"c", b"d")
    await peer.publish(entry(payload, num_messages_in_batch=count))
    await peer.subscribe("t")
    ledger = peer.client.producers[1].partition.id
    seek = api.CommandSeek(
        consumer_id=1, request_id=3, message_id=Id(ledgerId=ledger, entryId=0, ack_set=[0b1100])
    )
    peer.say(Command(type=Command.SEEK, seek=seek))
    await peer.hear(Command.SUCCESS)
    await peer.subscribe("t")
    peer.flow(10)
    message = await peer.hear(Command.MESSAGE)
    assert (message.message_id.entryId, list(message.ack_set)) == (0, [0b1100])


async def test_seek_needs_a_consumer_and_a_place(peer: Peer) -> None:
    await peer.subscribe("t")
    for consumer_id in (1, 9):
        seek = api.CommandSeek(consumer_id=consumer_id, request_id=3)
        answer = await peer.ask(Command(type=Command.SEEK, seek=seek), Command.ERROR)
        assert (answer.request_id, answer.error) == (3, api.MetadataError)


async def test_unsubscribe_takes_the_consumer_along(peer: Peer, broker: Broker) -> None:
    await peer.subscribe("t")
    leave = Command(
        type=Command.UNSUBSCRIBE, unsubscribe=api.CommandUnsubscribe(consumer_id=1, request_id=3)
    )
    assert (await peer.ask(leave, Command.SUCCESS)).request_id == 3
    assert peer.silent(Command.CLOSE_CONSUMER)
    assert (await peer.ask(leave, Command.ERROR)).error == api.MetadataError


async def test_a_subscription_that_others_use_is_not_deleted(peer: Peer) -> None:
    for consumer_id in (1, 2):
        await peer.subscribe("t", consumer_id, subType=SHARED)
    leave = api.CommandUnsubscribe(consumer_id=1, request_id=3)
    command = Command(type=Command.UNSUBSCRIBE, unsubscribe=leave)
    assert (await peer.ask(command, Command.ERROR)).error == api.MetadataError
    leave.force = True
    command = Command(type=Command.UNSUBSCRIBE, unsubscribe=leave)
    await peer.ask(command, Command.SUCCESS)
    assert (await peer.hear(Command.CLOSE_CONSUMER)).consumer_id == 2


async def test_a_deleted_topic_closes_what_used_it(peer: Peer, broker: Broker) -> None:
    await written(peer, 1)
    await peer.subscribe("t")
    topic = broker.topics.get(TopicName("public", "default", "t"))
    assert topic is not None
    await broker.topics.delete(topic)
    assert (await peer.hear(Command.CLOSE_PRODUCER)).producer_id == 1
    assert (await peer.hear(Command.CLOSE_CONSUMER)).consumer_id == 1
    await peer.producer("t")
    assert (await peer.publish(entry())).message_id.entryId == 0


async def test_a_namespace_needs_its_tenant(peer: Peer) -> None:
    asked = api.CommandGetTopicsOfNamespace(request_id=1, namespace="default")
    command = Command(type=Command.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked)
    assert (await peer.ask(command, Command.ERROR)).error == api.NotAllowedError


async def test_an_answer_to_a_question_that_was_not_asked_is_ignored(peer: Peer) -> None:
    peer.say(Command(type=Command.AUTH_RESPONSE, authResponse=api.CommandAuthResponse()))
    await peer.ask(Command(type=Command.PING, ping=api.CommandPing()), Command.PONG)


async def test_chunks_of_a_consumer_that_left_begin_anew_with_another(peer: Peer) -> None:
    await peer.subscribe("t", 1, subType=SHARED)
    peer.flow(100, 1)
    await peer.producer("t")
    sizes = {"num_chunks_from_msg": 3, "total_chunk_msg_size": 21}
    for number in range(2):
        await peer.publish(entry(uuid="x", chunk_id=number, **sizes))
    assert await received(peer, 2) == [0, 1]
    await peer.subscribe("t", 2, subType=SHARED)
    close = api.CommandCloseConsumer(consumer_id=1, request_id=9)
    await peer.ask(Command(type=Command.CLOSE_CONSUMER, close_consumer=close), Command.SUCCESS)
    await peer.publish(entry(uuid="x", chunk_id=2, **sizes))
    peer.flow(100, 2)
    messages = [await peer.hear(Command.MESSAGE) for _ in range(3)]
    assert [(m.message_id.entryId, m.consumer_id) for m in messages] == [(0, 2), (1, 2), (2, 2)]


async def test_chunks_that_come_between_each_other_stay_together(peer: Peer) -> None:
    for consumer_id in (1, 2):
        await peer.subscribe("t", consumer_id, subType=SHARED)
        peer.flow(100, consumer_id)
    await peer.producer("t")
    for number in range(3):
        for uuid in ("x", "y"):
            sizes = {"num_chunks_from_msg": 3, "total_chunk_msg_size": 21}
            await peer.publish(entry(uuid=uuid, chunk_id=number, **sizes))
            await settled()
    owners: dict[int, set[int]] = {0: set(), 1: set()}
    for _ in range(6):
        message = await peer.hear(Command.MESSAGE)
        owners[message.message_id.entryId % 2].add(message.consumer_id)
    assert [len(owner) for owner in owners.values()] == [1, 1]
    assert owners[0] != owners[1]
