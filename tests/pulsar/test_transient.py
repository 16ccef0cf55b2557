"""Goal: a non-persistent topic passes messages on to those who are there, and keeps nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from patience import wait_until
from penstock.broker.broker import Broker
from penstock.limits import PULSAR_TRANSIENT_SUBSCRIPTIONS, PULSAR_UNREAD_BYTES
from penstock.pulsar.wire import pulsar_api_pb2 as api
from pulsar_messages import RECEIVE_MS
from pulsar_peer import Command, Peer, batch, entry
from receivers import settled

TOPIC = "non-persistent://public/default/t"
SHARED, FAILOVER = api.CommandSubscribe.Shared, api.CommandSubscribe.Failover


@pytest.fixture
async def other(broker: Broker) -> AsyncIterator[Peer]:
    peer = Peer(broker)
    await peer.connect()
    yield peer
    if not peer.lost:
        peer.lose()


def messages(peer: Peer) -> list[tuple[int, bytes]]:
    """Which consumer has heard what; forgets it."""
    found = [f for f in peer.heard if f.command.type == Command.MESSAGE]
    peer.heard = [f for f in peer.heard if f not in found]
    return [(f.command.message.consumer_id, bytes(f.entry)) for f in found]


async def refused(peer: Peer, command: Command) -> api.CommandError:
    error: api.CommandError = await peer.ask(command, Command.ERROR)
    return error


def subscribing(**fields: Any) -> Command:
    asked = {"topic": TOPIC, "subscription": "sub", "consumer_id": 5, "request_id": 6, **fields}
    return Command(type=Command.SUBSCRIBE, subscribe=api.CommandSubscribe(subType=0, **asked))


async def test_a_message_goes_to_who_is_there_and_has_permits(
    peer: Peer, other: Peer, broker: Broker
) -> None:
    made = await peer.producer(TOPIC)
    assert (made.last_sequence_id, made.producer_ready) == (-1, True)
    receipt = await peer.publish(entry(b"nobody"))
    assert (receipt.message_id.ledgerId, receipt.message_id.entryId) == (0, 0)
    await other.subscribe(TOPIC)
    await peer.publish(entry(b"no permits"))
    other.flow(2)
    payload, count = batch(b"a", b"b", b"c")
    body = entry(payload, num_messages_in_batch=count)
    await peer.publish(body)
    await peer.publish(entry(b"too late"))
    assert messages(other) == [(1, body)]
    other.flow(2)
    await peer.publish(entry(b"again"))
    assert messages(other) == [(1, entry(b"again"))]
    assert broker.topics.all() == []


async def test_each_subscription_gets_a_message(peer: Peer, other: Peer) -> None:
    await peer.producer(TOPIC)
    for consumer_id in (1, 2):
        await other.subscribe(TOPIC, consumer_id, subscription=f"sub-{consumer_id}")
        other.flow(1, consumer_id)
    await peer.publish(entry(b"x"))
    assert messages(other) == [(1, entry(b"x")), (2, entry(b"x"))]


async def test_shared_consumers_take_turns(peer: Peer, other: Peer) -> None:
    await peer.producer(TOPIC)
    for consumer_id in (1, 2, 3):
        await other.subscribe(TOPIC, consumer_id, subType=SHARED)
    other.flow(10, 1)
    other.flow(10, 3)
    for _ in range(4):
        await peer.publish(entry(b"x"))
    heard = [consumer_id for consumer_id, _ in messages(other)]
    assert heard in ([1, 3, 1, 3], [3, 1, 3, 1])


async def test_failover_goes_to_the_first_by_name(peer: Peer, other: Peer) -> None:
    await peer.producer(TOPIC)
    await other.subscribe(TOPIC, 1, subType=FAILOVER, consumer_name="b")
    other.flow(10, 1)
    first = await other.hear(Command.ACTIVE_CONSUMER_CHANGE)
    assert (first.consumer_id, first.is_active) == (1, True)
    await other.subscribe(TOPIC, 2, subType=FAILOVER, consumer_name="a")
    other.flow(10, 2)
    changes = [await other.hear(Command.ACTIVE_CONSUMER_CHANGE) for _ in range(2)]
    assert {(c.consumer_id, c.is_active) for c in changes} == {(1, False), (2, True)}
    await peer.publish(entry(b"x"))
    close = api.CommandCloseConsumer(consumer_id=2, request_id=1)
    await other.ask(Command(type=Command.CLOSE_CONSUMER, close_consumer=close), Command.SUCCESS)
    await peer.publish(entry(b"y"))
    assert messages(other) == [(2, entry(b"x")), (1, entry(b"y"))]


async def test_who_can_not_share_is_refused(peer: Peer, other: Peer) -> None:
    await peer.subscribe(TOPIC)
    ping = Command(type=Command.PONG, pong=api.CommandPong())
    other.say(subscribing())
    await peer.hear(Command.PING)
    peer.say(ping)
    error = await other.hear(Command.ERROR)
    assert (error.request_id, error.error) == (6, api.ConsumerBusy)


async def test_who_does_not_answer_makes_room(
    peer: Peer, other: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.limits.PULSAR_LIVENESS_SECONDS", 0.05)
    await peer.subscribe(TOPIC)
    await peer.producer(TOPIC, producer_name="me")
    await other.subscribe(TOPIC)
    await other.producer(TOPIC, producer_name="me")
    other.flow(1)
    await other.publish(entry(b"x"))
    assert (messages(peer), messages(other)) == ([], [(1, entry(b"x"))])


@pytest.mark.parametrize("what", ["asked again", "closed"])
async def test_who_is_not_wanted_any_more_is_not_left_behind(
    peer: Peer, other: Peer, what: str
) -> None:
    """While the one in its place is asked whether it is there."""
    await peer.subscribe(TOPIC)
    other.say(subscribing())
    await peer.hear(Command.PING)
    if what == "closed":
        close = api.CommandCloseConsumer(consumer_id=5, request_id=7)
        other.say(Command(type=Command.CLOSE_CONSUMER, close_consumer=close))
    else:
        other.say(subscribing())
    peer.lose()
    if what == "closed":
        assert (await other.hear(Command.SUCCESS)).request_id == 7
        assert other.client.transient_consumers == {}
        assert TOPIC not in other.client.transient_topics
    else:
        await other.hear(Command.SUCCESS)
        (consumer,) = other.client.transient_consumers.values()
        assert list(consumer.subscription.consumers) == [consumer]


async def test_who_does_not_read_loses_messages_and_costs_little(peer: Peer, other: Peer) -> None:
    await peer.producer(TOPIC)
    await other.subscribe(TOPIC)
    other.flow(1_000_000)
    other.congested = True
    size = PULSAR_UNREAD_BYTES // 8
    for _ in range(20):
        await peer.publish(entry(bytes(size)))
    assert len(messages(other)) <= 9
    other.congested = False
    await other.wake()
    await settled()
    await peer.publish(entry(b"x"))
    assert messages(other) == [(1, entry(b"x"))]


async def test_acknowledgements_are_answered_and_the_rest_is_refused(peer: Peer) -> None:
    await peer.subscribe(TOPIC)
    peer.acknowledge(api.MessageIdData(ledgerId=0, entryId=0), request_id=4)
    answer = await peer.hear(Command.ACK_RESPONSE)
    assert (answer.request_id, answer.HasField("error")) == (4, False)
    seek = api.CommandSeek(consumer_id=1, request_id=5, message_publish_time=1)
    error = await refused(peer, Command(type=Command.SEEK, seek=seek))
    assert (error.request_id, error.error) == (5, api.NotAllowedError)
    last = api.CommandGetLastMessageId(consumer_id=1, request_id=6)
    command = Command(type=Command.GET_LAST_MESSAGE_ID, getLastMessageId=last)
    assert (await refused(peer, command)).error == api.NotAllowedError
    unsubscribe = api.CommandUnsubscribe(consumer_id=1, request_id=7)
    command = Command(type=Command.UNSUBSCRIBE, unsubscribe=unsubscribe)
    assert (await peer.ask(command, Command.SUCCESS)).request_id == 7
    assert not peer.client.transient_consumers


async def test_messages_are_checked_as_others_are(peer: Peer) -> None:
    await peer.producer(TOPIC)
    sent = api.CommandSend(producer_id=1, sequence_id=1)
    body = bytearray(entry())
    body[-1] ^= 1
    command = Command(type=Command.SEND, send=sent)
    assert (await peer.ask(command, Command.SEND_ERROR, bytes(body))).error == api.ChecksumError
    marker = entry(marker_type=10)
    assert (await peer.ask(command, Command.SEND_ERROR, marker)).error == api.NotAllowedError


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_access_mode": api.Exclusive},
        {"topic": "non-persistent://one/two"},
    ],
)
async def test_what_there_is_not_is_refused(peer: Peer, fields: dict[str, Any]) -> None:
    made = api.CommandProducer(**{"topic": TOPIC, "producer_id": 1, "request_id": 2, **fields})
    error = await refused(peer, Command(type=Command.PRODUCER, producer=made))
    assert (error.request_id, error.error) == (2, api.NotAllowedError)


async def test_subscriptions_are_bounded(peer: Peer) -> None:
    for number in range(PULSAR_TRANSIENT_SUBSCRIPTIONS):
        await peer.subscribe(TOPIC, number, subscription=f"sub-{number}")
    error = await refused(peer, subscribing(consumer_id=1000, subscription="one more"))
    assert error.error == api.NotAllowedError


async def listed(peer: Peer, mode: int) -> list[str]:
    asked = api.CommandGetTopicsOfNamespace(request_id=1, namespace="public/default")
    asked.mode = mode  # type: ignore[assignment]
    answer = await peer.ask(
        Command(type=Command.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked),
        Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    )
    return list(answer.topics)


async def test_a_topic_is_there_as_long_as_it_is_used(peer: Peer, other: Peer) -> None:
    await peer.producer("kept", 2)
    await other.producer(TOPIC)
    await other.subscribe(TOPIC)
    modes = api.CommandGetTopicsOfNamespace
    assert await listed(peer, modes.NON_PERSISTENT) == [TOPIC]
    assert await listed(peer, modes.ALL) == [TOPIC, "persistent://public/default/kept"]
    assert await listed(peer, modes.PERSISTENT) == ["persistent://public/default/kept"]
    held = other.client.held.size
    other.lose()
    assert other.client.held.size < held
    assert await listed(peer, modes.NON_PERSISTENT) == []


async def test_metadata_and_lookup_know_it(peer: Peer) -> None:
    metadata = api.CommandPartitionedTopicMetadata(topic=TOPIC, request_id=4)
    answer = await peer.ask(
        Command(type=Command.PARTITIONED_METADATA, partitionMetadata=metadata),
        Command.PARTITIONED_METADATA_RESPONSE,
    )
    assert (answer.response, answer.partitions) == (answer.Success, 0)
    lookup = api.CommandLookupTopic(topic=TOPIC, request_id=4)
    answer = await peer.ask(
        Command(type=Command.LOOKUP, lookupTopic=lookup), Command.LOOKUP_RESPONSE
    )
    assert answer.response == answer.Connect


def test_a_real_client_sends_and_receives(
    client: pulsar.Client, topic: str, tmp_path: Path, connect: Callable[[str], pulsar.Client]
) -> None:
    name = f"non-persistent://public/default/{topic}"
    producer = client.create_producer(name, batching_enabled=True)
    producer.send(b"to nobody")
    consumers = [client.subscribe(name, sub, pulsar.ConsumerType.Shared) for sub in ("one", "two")]
    heard: list[bytes] = []

    def sent_and_received() -> bool:
        producer.send(b"%d" % len(heard))  # The consumer's permits may be on their way.
        try:
            heard.append(consumers[0].receive(200).data())
        except pulsar.Timeout:
            return False
        return True

    wait_until(sent_and_received)
    assert b"to nobody" not in heard
    message = consumers[1].receive(RECEIVE_MS)
    assert message.topic_name() == name
    consumers[1].acknowledge(message)
    consumers[1].unsubscribe()
