"""Goal: what a consumer hears without having asked comes once its client knows it, and only to
clients that understand it: whose turn it is, where an entry is, and that a topic has ended.
"""

from __future__ import annotations

import asyncio
import itertools
import time

import pulsar
import pytest

from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.records.pulsar.metadata_pb2 import BrokerEntryMetadata
from pulsar_messages import publish, receive
from pulsar_peer import Command, Peer, batch, entry
from receivers import settled

ORDERS = TopicName("public", "default", "t")
JAVA = "Pulsar-Java-v4.0.4"
EARLIEST = api.CommandSubscribe.Earliest


async def connected(broker: Broker, *, flag: bool = True, version: int = 20) -> Peer:
    peer = Peer(broker)
    flags = api.FeatureFlags(supports_broker_entry_metadata=flag)
    connect = api.CommandConnect(
        client_version="test", protocol_version=version, feature_flags=flags
    )
    said = await peer.ask(Command(type=Command.CONNECT, connect=connect), Command.CONNECTED)
    assert said.feature_flags.supports_broker_entry_metadata
    return peer


@pytest.mark.parametrize("topic", ["t", "non-persistent://public/default/t"])
async def test_a_client_knows_a_consumer_before_it_hears_whose_turn_it_is(
    peer: Peer, topic: str
) -> None:
    for consumer_id in (1, 2):
        await peer.subscribe(topic, consumer_id, subType=api.CommandSubscribe.Failover)
    await settled()
    assert peer.silent(Command.ACTIVE_CONSUMER_CHANGE)
    for consumer_id in (1, 2):
        peer.flow(1, consumer_id)
        change = await peer.hear(Command.ACTIVE_CONSUMER_CHANGE)
        assert change.consumer_id == consumer_id
        peer.flow(1, consumer_id)
    await settled()
    assert peer.silent(Command.ACTIVE_CONSUMER_CHANGE)


async def test_who_asks_for_no_messages_hears_whose_turn_it_is_a_moment_later(peer: Peer) -> None:
    await peer.subscribe("t", subType=api.CommandSubscribe.Failover)
    change = await peer.hear(Command.ACTIVE_CONSUMER_CHANGE)
    assert change.is_active


async def test_an_entry_says_where_in_the_log_it_is_to_who_asked_for_it(broker: Broker) -> None:
    peer = await connected(broker)
    await peer.producer("t")
    payload, count = batch(b"a", b"b", b"c")
    await peer.publish(entry())
    await peer.publish(entry(payload, num_messages_in_batch=count))
    await peer.subscribe("t", initialPosition=EARLIEST)
    peer.flow(10)
    for index, body in [(0, entry()), (3, entry(payload, num_messages_in_batch=count))]:
        told = bytes((await peer.hear_frame(Command.MESSAGE)).entry)
        assert told[:2] == b"\x0e\x02"
        size = int.from_bytes(told[2:6])
        assert BrokerEntryMetadata.FromString(told[6 : 6 + size]).index == index
        assert told[6 + size :] == body
    peer.lose()


async def test_an_entry_says_when_it_was_stored_where_its_topic_keeps_that(broker: Broker) -> None:
    topic = await broker.topics.get_or_create(ORDERS, 1)
    await broker.topics.configure(topic, lambda _: {"message_timestamp_type": "LogAppendTime"})
    peer = await connected(broker)
    await peer.producer("t-partition-0")
    before = time.time_ns() // 1_000_000
    await peer.publish(entry(publish_time=1))
    await peer.subscribe("t-partition-0", initialPosition=EARLIEST)
    peer.flow(1)
    told = bytes((await peer.hear_frame(Command.MESSAGE)).entry)
    metadata = BrokerEntryMetadata.FromString(told[6 : 6 + int.from_bytes(told[2:6])])
    assert before <= metadata.broker_timestamp <= time.time_ns() // 1_000_000
    assert told.endswith(entry(publish_time=1))
    peer.lose()


@pytest.mark.parametrize(("flag", "version"), [(False, 20), (True, 17)])
async def test_others_get_the_entry_alone(broker: Broker, flag: bool, version: int) -> None:
    peer = await connected(broker, flag=flag, version=version)
    await peer.producer("t")
    await peer.publish(entry())
    await peer.subscribe("t", initialPosition=EARLIEST)
    peer.flow(1)
    assert bytes((await peer.hear_frame(Command.MESSAGE)).entry) == entry()
    peer.lose()


def test_a_real_client_reads_behind_entry_metadata(client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=True)
    publish(producer, [b"one", b"two", b"three"])
    earliest = pulsar.InitialPosition.Earliest
    received = receive(client.subscribe(topic, "sub", initial_position=earliest), 3)
    assert [message.data() for message in received] == [b"one", b"two", b"three"]


async def terminated(broker: Broker) -> None:
    topic = broker.topics.get(ORDERS)
    assert topic is not None
    await broker.topics.configure(topic, lambda _: {"terminated": "true"})


async def test_nobody_sends_to_a_topic_that_was_terminated(peer: Peer, broker: Broker) -> None:
    await peer.producer("t")
    ending = asyncio.create_task(terminated(broker))
    for number in itertools.count():
        sent = api.CommandSend(producer_id=1, sequence_id=number)
        peer.say(Command(type=Command.SEND, send=sent), entry())
        if ending.done():
            break
        await settled()
    await ending
    closed = await peer.hear(Command.CLOSE_PRODUCER)
    assert closed.producer_id == 1
    made = api.CommandProducer(topic="t", producer_id=2, request_id=3)
    error = await peer.ask(Command(type=Command.PRODUCER, producer=made), Command.ERROR)
    assert (error.request_id, error.error) == (3, api.TopicTerminatedError)
    assert peer.silent(Command.SEND_ERROR)  # On which the Go client does nothing any more.


@pytest.mark.parametrize("ended_first", [False, True])
async def test_who_has_everything_hears_that_the_topic_has_ended(
    broker: Broker, ended_first: bool
) -> None:
    peer = Peer(broker)
    await peer.connect(client=JAVA)
    await peer.producer("t")
    sent = [(await peer.publish(entry(), sequence_id=n)).message_id for n in range(2)]
    if ended_first:
        await terminated(broker)
    await peer.subscribe("t", initialPosition=EARLIEST)
    peer.flow(10)
    for _ in range(2):
        await peer.hear(Command.MESSAGE)
    peer.acknowledge(sent[0])
    await settled()
    assert peer.silent(Command.REACHED_END_OF_TOPIC)
    peer.acknowledge(sent[1])
    if not ended_first:
        await settled()
        assert peer.silent(Command.REACHED_END_OF_TOPIC)
        await terminated(broker)
    assert (await peer.hear(Command.REACHED_END_OF_TOPIC)).consumer_id == 1
    peer.flow(1)
    await settled()
    assert peer.silent(Command.REACHED_END_OF_TOPIC)
    peer.lose()


async def test_clients_that_do_not_know_of_ends_are_spared(broker: Broker) -> None:
    """C++ and Go close their connection on a command that they don't know, and come back."""
    for client, version in [("Pulsar-CPP-v4.2.0", 20), ("Pulsar Go 0.14", 20), (JAVA, 8)]:
        peer = Peer(broker)
        await peer.connect(client=client, version=version)
        await peer.subscribe("t")
        await terminated(broker)
        peer.flow(1)
        await settled()
        assert peer.silent(Command.REACHED_END_OF_TOPIC)
        peer.lose()
