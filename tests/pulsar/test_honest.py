"""Goal: what a client asks for has its effect, or the client hears that it has none. Nothing is
accepted and ignored.
"""

from __future__ import annotations

import dataclasses
import logging

import pytest

from penstock.broker.advertised import advertised_listeners
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.records.pulsar.metadata_pb2 import KeyValue
from penstock.session import PeerError
from pulsar_peer import Command, Peer, entry

JSON = api.Schema(name="JSON", schema_data=b"{}", type=api.Schema.Json)
BYTES = api.Schema(name="", schema_data=b"", type=api.Schema.Type.Value("None"))
ANYTHING = api.Schema(name="", schema_data=b"", type=api.Schema.AutoConsume)


async def refused_connect(broker: Broker, **fields: object) -> tuple[api.CommandError, str]:
    peer = Peer(broker)
    connect = api.CommandConnect(client_version="x", **fields)  # type: ignore[arg-type]
    error = await peer.ask(Command(type=Command.CONNECT, connect=connect), Command.ERROR)
    return error, peer.close_reason


@pytest.mark.parametrize(
    "fields",
    [
        {"auth_method_name": "token", "auth_data": b"secret-token"},
        {"original_principal": "me"},
        {"original_auth_data": "secret-token"},
    ],
)
async def test_credentials_have_no_effect_and_the_log_says_so(
    broker: Broker, caplog: pytest.LogCaptureFixture, fields: dict[str, object]
) -> None:
    peer = Peer(broker)
    with caplog.at_level(logging.WARNING):
        connect = api.CommandConnect(client_version="x", **fields)  # type: ignore[arg-type]
        await peer.ask(Command(type=Command.CONNECT, connect=connect), Command.CONNECTED)
    assert "have no effect" in caplog.text
    assert "secret-token" not in caplog.text
    peer.lose()


async def test_who_sends_no_credentials_is_not_warned_of(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer(broker)
    connect = api.CommandConnect(client_version="x", auth_method_name="none", auth_data=b"")
    with caplog.at_level(logging.WARNING):
        await peer.ask(Command(type=Command.CONNECT, connect=connect), Command.CONNECTED)
    assert not caplog.records
    peer.lose()


@pytest.mark.parametrize("wanted", ["127.0.0.1:6650", "pulsar://127.0.0.1:6650"])
async def test_a_client_may_name_this_broker_as_the_one_behind_the_proxy(
    broker: Broker, wanted: str
) -> None:
    peer = Peer(broker)
    connect = api.CommandConnect(client_version="x", proxy_to_broker_url=wanted)
    await peer.ask(Command(type=Command.CONNECT, connect=connect), Command.CONNECTED)
    peer.lose()


async def test_the_broker_is_no_proxy(broker: Broker) -> None:
    error, closed = await refused_connect(broker, proxy_to_broker_url="10.0.0.7:6650")
    assert (error.request_id, error.error) == (2**64 - 1, api.ServiceNotReady)
    assert "10.0.0.7:6650" in closed


async def test_the_largest_message_is_a_setting(broker: Broker) -> None:
    small = dataclasses.replace(broker.settings, pulsar_message_bytes=20_000)
    broker.settings = small
    peer = Peer(broker)
    assert (await peer.connect()).max_message_size == 20_000
    head = (20_000 + 10_241).to_bytes(4) + bytes(4)
    with pytest.raises(PeerError, match="allowed"):
        peer.session.frame_size(memoryview(head))
    assert peer.session.frame_size(memoryview((20_000 + 10_240).to_bytes(4))) == 30_244
    assert BrokerSettings().pulsar_message_bytes == 5 * 1024 * 1024
    peer.lose()


@pytest.mark.parametrize(
    ("client", "error"),
    [("Pulsar-CPP-v4.2.0", api.ChecksumError), ("Pulsar-Java-v4.0.0", api.NotAllowedError)],
)
@pytest.mark.parametrize("what", ["marker", "marker type"])
async def test_a_message_that_would_be_taken_for_another_is_refused(
    broker: Broker, client: str, error: int, what: str
) -> None:
    """With a code on which the client gives up that message, and sends those behind it."""
    metadata = {"marker type": {"marker_type": 10}}
    peer = Peer(broker)
    await peer.connect(client=client)
    await peer.producer("t")
    sent = api.CommandSend(producer_id=1, sequence_id=0, marker=what == "marker")
    body = entry(**metadata.get(what, {}))
    refused = await peer.ask(Command(type=Command.SEND, send=sent), Command.SEND_ERROR, body)
    assert (refused.sequence_id, refused.error) == (0, error)
    assert (await peer.publish(entry(), sequence_id=1)).message_id.entryId == 0
    peer.lose()


async def test_a_schema_that_is_not_kept_is_refused(peer: Peer) -> None:
    topic = "non-persistent://public/default/t"
    made = api.CommandProducer(topic=topic, producer_id=1, request_id=3, schema=JSON)
    error = await peer.ask(Command(type=Command.PRODUCER, producer=made), Command.ERROR)
    assert (error.request_id, error.error) == (3, api.NotAllowedError)
    subscribe = api.CommandSubscribe(
        topic=topic,
        subscription="s",
        subType=api.CommandSubscribe.Shared,
        consumer_id=1,
        request_id=4,
        schema=JSON,
    )
    error = await peer.ask(Command(type=Command.SUBSCRIBE, subscribe=subscribe), Command.ERROR)
    assert (error.request_id, error.error) == (4, api.NotAllowedError)


async def test_messages_of_plain_bytes_need_no_schema(peer: Peer) -> None:
    assert (await peer.producer("t")).schema_version == b""
    await peer.subscribe("t", schema=ANYTHING)
    asked = api.CommandGetOrCreateSchema(request_id=5, topic="t", schema=BYTES)
    command = Command(type=Command.GET_OR_CREATE_SCHEMA, getOrCreateSchema=asked)
    answer = await peer.ask(command, Command.GET_OR_CREATE_SCHEMA_RESPONSE)
    assert (answer.HasField("error_code"), answer.schema_version) == (False, b"")


async def test_a_consumer_has_no_more_metadata_than_with_pulsar(peer: Peer) -> None:
    half = KeyValue(key="k" * 12, value="v" * 500)
    await peer.subscribe("t", metadata=[half, half])
    subscribe = api.CommandSubscribe(
        topic="t",
        subscription="s",
        subType=api.CommandSubscribe.Shared,
        consumer_id=2,
        request_id=4,
        metadata=[half, KeyValue(key="k" * 12, value="ü" * 250 + "v")],
    )
    error = await peer.ask(Command(type=Command.SUBSCRIBE, subscribe=subscribe), Command.ERROR)
    assert (error.request_id, error.error) == (4, api.NotAllowedError)


LISTENERS = (
    "inside:pulsar://10.0.0.7:6650, outside:pulsar://broker.example.com:6650,"
    "outside:pulsar+ssl://broker.example.com:6651,"
)


async def looked_up(peer: Peer, name: str) -> api.CommandLookupTopicResponse:
    lookup = api.CommandLookupTopic(topic="t", request_id=6, advertised_listener_name=name)
    command = Command(type=Command.LOOKUP, lookupTopic=lookup)
    answer = await peer.ask(command, Command.LOOKUP_RESPONSE)
    assert isinstance(answer, api.CommandLookupTopicResponse)
    return answer


async def test_a_listener_is_asked_for_by_its_name(broker: Broker) -> None:
    listeners = advertised_listeners(LISTENERS)
    broker.settings = dataclasses.replace(broker.settings, pulsar_advertised_listeners=listeners)
    peer = Peer(broker)
    # As a proxy that was told to go there does.
    connect = api.CommandConnect(client_version="x", proxy_to_broker_url="10.0.0.7:6650")
    await peer.ask(Command(type=Command.CONNECT, connect=connect), Command.CONNECTED)
    told = {name: await looked_up(peer, name) for name in ("", "inside", "outside")}
    assert {
        name: (each.brokerServiceUrl, each.brokerServiceUrlTls) for name, each in told.items()
    } == {
        "": ("pulsar://127.0.0.1:6650", ""),
        "inside": ("pulsar://10.0.0.7:6650", ""),
        "outside": ("pulsar://broker.example.com:6650", "pulsar+ssl://broker.example.com:6651"),
    }
    peer.lose()


async def test_a_listener_that_there_is_not_is_refused_at_once(peer: Peer) -> None:
    answer = await looked_up(peer, "outside")
    assert (answer.response, answer.error) == (answer.Failed, api.NotAllowedError)


@pytest.mark.parametrize(
    "text",
    [
        "pulsar://h:1",
        "a:http://h:1",
        "a:pulsar://h",
        "a:pulsar://h:0",
        "a:pulsar://h:65536",
        "a:pulsar://h:1,a:pulsar://g:1",
    ],
)
def test_listeners_that_can_not_be_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"NAME:pulsar|one address"):
        advertised_listeners(text)


async def test_a_shared_subscription_has_no_cumulative_acknowledgement(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    await peer.producer("t")
    first = (await peer.publish(entry(), sequence_id=0)).message_id
    last = (await peer.publish(entry(), sequence_id=1)).message_id
    shared = api.CommandSubscribe.Shared
    earliest = api.CommandSubscribe.Earliest
    await peer.subscribe("t", subType=shared, initialPosition=earliest)
    peer.flow(2)
    await peer.hear(Command.MESSAGE)
    cumulative = api.CommandAck.Cumulative
    peer.acknowledge(last, ack_type=cumulative, request_id=8)
    answer = await peer.hear(Command.ACK_RESPONSE)
    assert (answer.request_id, answer.error) == (8, api.NotAllowedError)
    peer.acknowledge(last, ack_type=cumulative)
    assert "one by one" in caplog.text
    assert peer.silent(Command.ACK_RESPONSE)
    assert peer.client.consumers[1].subscription.cursor.position == first.entryId
