"""A connection's life: greeting, keeping alive, refusing, and giving back what it held."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from group_house import VirtualClock
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.pulsar import keep_alive
from penstock.pulsar.handlers import HANDLERS
from penstock.pulsar.handlers.unsupported import UNSUPPORTED
from penstock.pulsar.session import NEXT_STATE, SessionEvent, SessionState
from penstock.pulsar.topic_lists import topics_hash
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.session import PeerError
from pulsar_golden import GOLDEN
from pulsar_peer import Command, Peer, entry, frame_of
from receivers import settled

PING = Command(type=Command.PING, ping=api.CommandPing())
PONG = Command(type=Command.PONG, pong=api.CommandPong())


async def test_versions_meet_at_the_lower_one(broker: Broker) -> None:
    assert (await Peer(broker).connect(version=17)).protocol_version == 17
    assert (await Peer(broker).connect(version=99)).protocol_version == 21


async def test_nothing_is_said_before_connect(broker: Broker) -> None:
    with pytest.raises(PeerError, match="CONNECT first"):
        Peer(broker).say(PING)


async def test_connect_is_said_once(peer: Peer) -> None:
    with pytest.raises(PeerError, match="CONNECT first and once"):
        peer.say(Command(type=Command.CONNECT, connect=api.CommandConnect(client_version="x")))


def test_only_what_the_table_says_goes_on() -> None:
    assert set(NEXT_STATE) == {
        (SessionState.NEW, SessionEvent.CONNECT),
        (SessionState.NEW, SessionEvent.LOST),
        (SessionState.CONNECTED, SessionEvent.OTHER_COMMAND),
        (SessionState.CONNECTED, SessionEvent.LOST),
    }


def test_every_command_of_a_client_is_known() -> None:
    """Answers, and what only a broker sends, are no requests."""
    unasked = {
        *("CONNECTED", "SEND_RECEIPT", "SEND_ERROR", "MESSAGE", "SUCCESS", "ERROR"),
        *("PRODUCER_SUCCESS", "REACHED_END_OF_TOPIC", "ACTIVE_CONSUMER_CHANGE", "AUTH_CHALLENGE"),
        *("WATCH_TOPIC_LIST_SUCCESS", "WATCH_TOPIC_UPDATE", "TOPIC_MIGRATED"),
    }
    unannounced = {
        *("SCALABLE_TOPIC_LOOKUP", "SCALABLE_TOPIC_CLOSE", "SCALABLE_TOPIC_UPDATE"),
        *("SCALABLE_TOPIC_ASSIGNMENT_UPDATE", "WATCH_SCALABLE_TOPICS"),
        *("WATCH_SCALABLE_TOPICS_UPDATE", "WATCH_SCALABLE_TOPICS_CLOSE"),
        *("WATCH_TC_ASSIGNMENTS", "WATCH_TC_ASSIGNMENTS_UPDATE", "WATCH_TC_ASSIGNMENTS_CLOSE"),
    }
    names = {value.name for value in Command.DESCRIPTOR.enum_types_by_name["Type"].values}
    names = {name for name in names if not name.endswith("_RESPONSE")}
    names.add("AUTH_RESPONSE")
    assert {Command.Type.Name(kind) for kind in HANDLERS} == names - unasked - unannounced


def test_each_handler_is_called_with_its_own_request() -> None:
    for kind, handler in HANDLERS.items():
        assert Command.DESCRIPTOR.fields_by_name[handler.field].number == kind


async def test_a_command_of_tomorrow_is_ignored(peer: Peer) -> None:
    peer.say_bytes(b"\0\0\0\7\0\0\0\3\x08\xff\x01")
    await peer.ask(PING, Command.PONG)


@pytest.mark.parametrize("kind", UNSUPPORTED, ids=Command.Type.Name)
async def test_what_is_not_there_is_refused(peer: Peer, kind: int) -> None:
    command = Command(type=kind)
    getattr(command, HANDLERS[kind].field).request_id = 12
    encoded = command.SerializePartialToString()
    peer.say_bytes((len(encoded) + 4).to_bytes(4) + len(encoded).to_bytes(4) + encoded)
    refused = await peer.hear(Command.ERROR)
    assert (refused.request_id, refused.error) == (12, api.NotAllowedError)


async def test_an_answer_that_is_there_leaves_in_the_same_turn(peer: Peer) -> None:
    peer.say(PING)
    assert not peer.silent(Command.PONG)


async def test_send_without_a_producer_closes_the_connection(peer: Peer) -> None:
    sent = Command(type=Command.SEND, send=api.CommandSend(producer_id=5, sequence_id=0))
    with pytest.raises(PeerError, match="producer 5"):
        peer.say(sent, entry())


async def test_what_was_sent_before_a_close_was_seen_is_dropped(peer: Peer, broker: Broker) -> None:
    await peer.producer("t")
    topic = broker.topics.get(TopicName("public", "default", "t"))
    assert topic is not None
    await broker.topics.delete(topic)
    assert (await peer.hear(Command.CLOSE_PRODUCER)).producer_id == 1
    late = api.CommandSend(producer_id=1, sequence_id=0)
    peer.say(Command(type=Command.SEND, send=late), entry())
    await peer.ask(PING, Command.PONG)


@pytest.mark.parametrize(
    ("request_fields", "body", "error"),
    [
        ({"sequence_id": 5, "highest_sequence_id": 4}, entry(), api.MetadataError),
        ({"sequence_id": 0, "txnid_least_bits": 1}, entry(), api.NotAllowedError),
        ({"sequence_id": 0}, b"", api.MetadataError),
        ({"sequence_id": 0}, entry(num_messages_in_batch=10**6), api.MetadataError),
    ],
)
async def test_an_entry_that_can_not_be_is_refused(
    peer: Peer, request_fields: dict[str, int], body: bytes, error: int
) -> None:
    await peer.producer("t")
    sent = api.CommandSend(producer_id=1, **request_fields)
    refused = await peer.ask(Command(type=Command.SEND, send=sent), Command.SEND_ERROR, body)
    assert refused.error == error
    assert peer.client.producers[1].partition.end_offset == 0


@pytest.mark.parametrize(
    ("client", "error"),
    [
        ("Pulsar-CPP-v4.2.0", api.ChecksumError),
        ("Pulsar-Java-v4.0.0", api.NotAllowedError),
        ("", api.NotAllowedError),
    ],
)
@pytest.mark.parametrize("sent_ahead", [False, True])
async def test_what_a_topic_does_not_take_fails_in_the_words_of_each_client(
    broker: Broker, client: str, error: int, sent_ahead: bool
) -> None:
    limits = {"max_message_bytes": "200", "message_timestamp_after_max_ms": "60000"}
    await broker.topics.create(TopicName("public", "default", "t"), 1, config=limits)
    peer = Peer(broker)
    await peer.connect(client=client)
    await peer.producer("t-partition-0")
    later = {"event_time": time.time_ns() // 1_000_000 + 120_000}
    bad = entry(**later) if sent_ahead else entry(bytes(200))
    await peer.publish(entry(), sequence_id=0)
    sent = api.CommandSend(producer_id=1, sequence_id=1)
    refused = await peer.ask(Command(type=Command.SEND, send=sent), Command.SEND_ERROR, bad)
    assert (refused.sequence_id, refused.error) == (1, error)
    assert (await peer.publish(entry(), sequence_id=2)).message_id.entryId == 1
    peer.lose()


@pytest.mark.parametrize(
    ("metadata", "stored"),
    [
        ({"publish_time": 1_700_000_000_000}, 1_700_000_000_000),
        ({"publish_time": 5, "event_time": 77}, 77),
    ],
)
async def test_the_event_is_the_time_of_a_record(
    peer: Peer, metadata: dict[str, int], stored: int
) -> None:
    await peer.producer("t")
    await peer.publish(entry(**metadata))
    header = await peer.client.producers[1].partition.batch_at(0)
    assert header is not None
    assert (header.base_timestamp, header.max_timestamp) == (metadata["publish_time"], stored)


async def test_a_time_that_is_none_becomes_now(peer: Peer) -> None:
    await peer.producer("t")
    await peer.publish(entry(publish_time=2**64 - 1))
    header = await peer.client.producers[1].partition.batch_at(0)
    assert header is not None
    assert 1_700_000_000_000 < header.max_timestamp < 10_000_000_000_000


async def test_repeated_requests_get_the_same_answer(peer: Peer) -> None:
    first = await peer.producer("t")
    assert (await peer.producer("t")).producer_name == first.producer_name
    await peer.subscribe("t")
    await peer.subscribe("t")
    assert len(peer.client.consumers) == 1


async def test_closing_what_is_not_there_succeeds(peer: Peer) -> None:
    close = api.CommandCloseProducer(producer_id=8, request_id=1)
    command = Command(type=Command.CLOSE_PRODUCER, close_producer=close)
    assert (await peer.ask(command, Command.SUCCESS)).request_id == 1
    close_consumer = api.CommandCloseConsumer(consumer_id=8, request_id=2)
    command = Command(type=Command.CLOSE_CONSUMER, close_consumer=close_consumer)
    assert (await peer.ask(command, Command.SUCCESS)).request_id == 2


async def test_a_lost_connection_gives_back_its_names(peer: Peer, broker: Broker) -> None:
    await peer.producer("t", producer_name="mine")
    await peer.subscribe("t")
    peer.lose()
    again = Peer(broker)
    await again.connect()
    await again.producer("t", producer_name="mine")
    await again.subscribe("t")
    again.lose()


async def test_a_connection_that_is_lost_while_it_subscribes_leaves_no_consumer(
    peer: Peer, broker: Broker
) -> None:
    subscribe = api.CommandSubscribe(
        topic="t",
        subscription="sub",
        subType=api.CommandSubscribe.Exclusive,
        consumer_id=1,
        request_id=1,
    )
    peer.say(Command(type=Command.SUBSCRIBE, subscribe=subscribe))
    producer = api.CommandProducer(topic="t", producer_id=1, request_id=1, producer_name="mine")
    peer.say(Command(type=Command.PRODUCER, producer=producer))
    await asyncio.sleep(0)
    peer.lose()
    again = Peer(broker)
    await again.connect()
    await again.producer("t", producer_name="mine")
    await again.subscribe("t")
    again.lose()


async def test_what_is_closed_before_it_is_open_does_not_open(peer: Peer, broker: Broker) -> None:
    subscribe = api.CommandSubscribe(
        topic="t",
        subscription="sub",
        subType=api.CommandSubscribe.Exclusive,
        consumer_id=1,
        request_id=1,
    )
    close = api.CommandCloseConsumer(consumer_id=1, request_id=2)
    peer.say(Command(type=Command.SUBSCRIBE, subscribe=subscribe))
    await asyncio.sleep(0)
    answer = await peer.ask(
        Command(type=Command.CLOSE_CONSUMER, close_consumer=close), Command.SUCCESS
    )
    assert answer.request_id == 2
    again = Peer(broker)
    await again.connect()
    await again.subscribe("t")
    again.lose()


async def test_a_producer_that_waits_may_not_send(peer: Peer) -> None:
    waiting = api.WaitForExclusive
    assert (await peer.producer("t")).producer_ready
    made = await peer.producer("t", producer_id=2, producer_access_mode=waiting)
    assert not made.producer_ready
    with pytest.raises(PeerError, match="waits for its turn"):
        peer.say(
            Command(type=Command.SEND, send=api.CommandSend(producer_id=2, sequence_id=0)), entry()
        )
    close = api.CommandCloseProducer(producer_id=1, request_id=3)
    peer.say(Command(type=Command.CLOSE_PRODUCER, close_producer=close))
    made = await peer.hear(Command.PRODUCER_SUCCESS)
    assert (made.request_id, made.producer_ready, made.topic_epoch) == (1, True, 0)


async def test_exclusive_owners_are_counted(peer: Peer, broker: Broker) -> None:
    fencing = api.ExclusiveWithFencing
    assert (await peer.producer("t", producer_access_mode=fencing)).topic_epoch == 0
    other = Peer(broker)
    await other.connect()
    assert (await other.producer("t", producer_access_mode=fencing)).topic_epoch == 1
    assert (await peer.hear(Command.CLOSE_PRODUCER)).producer_id == 1
    late = api.CommandProducer(
        topic="t", producer_id=1, request_id=9, producer_access_mode=fencing, topic_epoch=0
    )
    refused = await peer.ask(Command(type=Command.PRODUCER, producer=late), Command.ERROR)
    assert (refused.request_id, refused.error) == (9, api.ProducerFenced)
    other.lose()


async def test_a_topic_that_is_given_partitions_has_them(peer: Peer, broker: Broker) -> None:
    await peer.producer("t")
    await peer.publish(entry())
    topic = broker.topics.get(TopicName("public", "default", "t"))
    assert topic is not None
    assert not topic.partitioned
    await broker.topics.add_partitions(topic, 2)
    await peer.subscribe("t-partition-0", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(1)
    assert (await peer.hear(Command.MESSAGE)).message_id.partition == 0


async def test_silence_ends_a_connection(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(keep_alive, "Deadlines", lambda: clock)
    talking, silent, mute = Peer(broker), Peer(broker), Peer(broker)
    await talking.connect()
    await silent.connect()
    clock.advance(limits.PULSAR_KEEP_ALIVE_SECONDS)
    assert "CONNECT" in await mute.closed()
    assert silent.close_reason == ""
    for _ in range(3):
        await talking.hear(Command.PING)
        talking.say(PONG)
        clock.advance(limits.PULSAR_KEEP_ALIVE_SECONDS)
    assert "PING" in await silent.closed()
    assert talking.close_reason == ""
    for peer in (talking, silent, mute):
        peer.lose()


async def consumer_stats(peer: Peer) -> api.CommandConsumerStatsResponse:
    asked = api.CommandConsumerStats(consumer_id=1, request_id=1)
    command = Command(type=Command.CONSUMER_STATS, consumerStats=asked)
    return await peer.ask(command, Command.CONSUMER_STATS_RESPONSE)


async def test_consumer_stats(peer: Peer) -> None:
    await peer.producer("t")
    for sequence_id in range(3):
        await peer.publish(entry(), sequence_id=sequence_id)
    await peer.subscribe("t", consumer_name="me", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(2)
    await peer.hear(Command.MESSAGE)
    stats = await consumer_stats(peer)
    assert (stats.consumerName, stats.type) == ("me", "Exclusive")
    assert (stats.msgBacklog, stats.unackedMessages, stats.availablePermits) == (3, 2, 0)
    connected = datetime.fromisoformat(stats.connectedSince)
    assert abs(datetime.now(UTC) - connected) < timedelta(minutes=10)


async def test_rates_of_a_consumer(peer: Peer) -> None:
    await peer.producer("t")
    for sequence_id in range(4):
        await peer.publish(entry(), sequence_id=sequence_id)
    earliest = api.CommandSubscribe.Earliest
    await peer.subscribe("t", subType=api.CommandSubscribe.Shared, initialPosition=earliest)
    peer.flow(4)
    ids = [(await peer.hear(Command.MESSAGE)).message_id for _ in range(4)]
    stats = await consumer_stats(peer)
    assert stats.msgThroughputOut / stats.msgRateOut == pytest.approx(len(entry()))
    assert (stats.msgRateRedeliver, stats.messageAckRate, stats.msgRateExpired) == (0, 0, 0)
    peer.acknowledge(ids[0])
    again = api.CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=ids[1:])
    kind = Command.REDELIVER_UNACKNOWLEDGED_MESSAGES
    peer.say(Command(type=kind, redeliverUnacknowledgedMessages=again))
    peer.flow(4)
    for _ in range(3):
        await peer.hear(Command.MESSAGE)
    stats = await consumer_stats(peer)
    assert stats.msgRateRedeliver / stats.msgRateOut == pytest.approx(3 / 7)
    assert stats.messageAckRate / stats.msgRateOut == pytest.approx(1 / 7)


async def test_topics_of_a_namespace_and_their_hash(peer: Peer, broker: Broker) -> None:
    await broker.topics.create(TopicName("public", "default", "parts"), 2)
    await peer.producer("plain")
    await peer.producer("acme/shop/elsewhere", producer_id=2)
    listed = await topics_of(peer)
    assert list(listed.topics) == [
        "persistent://public/default/parts-partition-0",
        "persistent://public/default/parts-partition-1",
        "persistent://public/default/plain",
    ]
    same = await topics_of(peer, topics_hash=listed.topics_hash)
    assert (same.changed, list(same.topics)) == (False, [])
    none = await topics_of(peer, mode=api.CommandGetTopicsOfNamespace.NON_PERSISTENT)
    assert (list(none.topics), none.topics_hash) == ([], "00000000")


async def test_names_of_before_pulsar_2_have_a_cluster(peer: Peer, broker: Broker) -> None:
    topic = "persistent://acme/us-west/shop/orders"
    await peer.producer(topic)
    await peer.publish(entry())
    await peer.subscribe(topic, initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(1)
    await peer.hear(Command.MESSAGE)
    await broker.topics.create(TopicName("acme", "us-west/shop", "parts"), 2)
    await peer.producer("persistent://acme/us-west/shop/parts-partition-1", producer_id=2)
    listed = await topics_of(peer, namespace="acme/us-west/shop")
    assert list(listed.topics) == [
        topic,
        "persistent://acme/us-west/shop/parts-partition-0",
        "persistent://acme/us-west/shop/parts-partition-1",
    ]
    assert broker.topics.by_kafka_name("acme.us-west_2Fshop.orders") is not None


def test_the_hash_of_topics_is_that_of_the_real_broker() -> None:
    names = [f"persistent://my-property/my-ns/pattern-topic-{n}" for n in (1, 2, 3)]
    assert topics_hash(names[:1]) == "0d0602ed"
    assert topics_hash(reversed(names)) == "90d4a04a"


async def test_what_the_real_client_said_can_be_said_again(broker: Broker) -> None:
    """In the order of kinds: nothing of it is refused or breaks anything."""
    peer = Peer(broker)
    answers = {
        "CONNECT": Command.CONNECTED,
        "PARTITIONED_METADATA": Command.PARTITIONED_METADATA_RESPONSE,
        "LOOKUP": Command.LOOKUP_RESPONSE,
        "PRODUCER": Command.PRODUCER_SUCCESS,
        "SEND": Command.SEND_RECEIPT,
        "SUBSCRIBE": Command.SUCCESS,
        "FLOW": Command.MESSAGE,
    }
    for kind, answer in answers.items():
        for frame in (golden.frame for golden in GOLDEN if golden.command == kind):
            peer.say_bytes(frame)
            if kind != "FLOW":
                await peer.hear(answer)
    await peer.hear(Command.MESSAGE)
    peer.lose()


@pytest.mark.parametrize("seed", range(4))
async def test_damaged_requests_end_in_an_answer_or_in_a_closed_connection(
    broker: Broker, seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        frame = bytearray(chance.choice(GOLDEN).frame)
        for _ in range(chance.randint(1, 3)):
            frame[chance.randrange(8, len(frame))] = chance.randrange(256)
        peer = Peer(broker)
        await peer.connect()
        await peer.producer("golden", producer_id=0)
        await peer.subscribe("golden", consumer_id=0, subType=api.CommandSubscribe.Shared)
        peer.flow(10, consumer_id=0)
        with contextlib.suppress(PeerError):
            peer.say_bytes(bytes(frame))
        await settled()
        peer.lose()
        await settled()
        assert not peer.failures, (frame.hex(), peer.failures)
    other = Peer(broker)
    await other.connect()
    await other.producer("another")
    assert (await other.publish(entry())).message_id.entryId == 0
    other.lose()


async def topics_of(peer: Peer, **options: object) -> api.CommandGetTopicsOfNamespaceResponse:
    asked = api.CommandGetTopicsOfNamespace(
        **{"request_id": 1, "namespace": "public/default", **options}  # type: ignore[arg-type]
    )
    answer: api.CommandGetTopicsOfNamespaceResponse = await peer.ask(
        Command(type=Command.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked),
        Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    )
    return answer


def test_frames_are_what_the_peer_thinks() -> None:
    assert frame_of(PING).hex() == "00000009000000050812920100"
