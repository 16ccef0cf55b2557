"""Goal: a producer's schema is kept and its version written beside its messages, and a consumer
that could not read them hears so before it gets any.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.broker.broker import Broker
from penstock.broker.topics.names import TopicName
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.records.pulsar.metadata_pb2 import KeyValue
from pulsar_peer import Command, Peer, entry

FIRST, SECOND = (version.to_bytes(8) for version in (0, 1))
NUMBER = b'{"name":"id","type":"long"}'
MORE = b',{"name":"more","type":["null","long"],"default":null}'


def avro(more: bytes = b"", **fields: Any) -> api.Schema:
    data = b'{"type":"record","name":"Order","fields":[' + NUMBER + more + b"]}"
    return api.Schema(**{"name": "Order", "schema_data": data, "type": api.Schema.Avro, **fields})


STRING = api.Schema(name="String", schema_data=b"", type=api.Schema.String)
PLAIN = api.Schema(name="Bytes", schema_data=b"", type=api.Schema.Type.Value("None"))  # type: ignore[arg-type]
ANYTHING = api.Schema(name="", schema_data=b"", type=api.Schema.AutoConsume)


async def refused_producer(peer: Peer, topic: str, schema: api.Schema) -> int:
    made = api.CommandProducer(topic=topic, producer_id=9, request_id=3, schema=schema)
    error = await peer.ask(Command(type=Command.PRODUCER, producer=made), Command.ERROR)
    return int(error.error)


async def refused_consumer(peer: Peer, topic: str, schema: api.Schema) -> int:
    subscribe = api.CommandSubscribe(
        topic=topic,
        subscription="s",
        subType=api.CommandSubscribe.Shared,
        consumer_id=9,
        request_id=4,
        schema=schema,
    )
    error = await peer.ask(Command(type=Command.SUBSCRIBE, subscribe=subscribe), Command.ERROR)
    return int(error.error)


async def asked_for(peer: Peer, topic: str, **fields: Any) -> Any:
    asked = api.CommandGetSchema(topic=topic, request_id=4, **fields)
    command = Command(type=Command.GET_SCHEMA, getSchema=asked)
    return await peer.ask(command, Command.GET_SCHEMA_RESPONSE)


async def made(peer: Peer, topic: str, schema: api.Schema) -> Any:
    asked = api.CommandGetOrCreateSchema(request_id=5, topic=topic, schema=schema)
    command = Command(type=Command.GET_OR_CREATE_SCHEMA, getOrCreateSchema=asked)
    return await peer.ask(command, Command.GET_OR_CREATE_SCHEMA_RESPONSE)


async def test_a_producer_is_told_the_version_that_it_writes(peer: Peer) -> None:
    assert (await peer.producer("t", 1, schema=avro())).schema_version == FIRST
    assert (await peer.producer("t", 2, schema=avro(MORE))).schema_version == SECOND
    assert (await peer.producer("t", 3, schema=avro())).schema_version == FIRST
    assert (await peer.producer("t", 2, schema=avro(MORE))).schema_version == SECOND
    assert (await peer.producer("t", 4)).schema_version == b""


async def test_versions_come_with_messages(peer: Peer) -> None:
    await peer.producer("t", schema=avro())
    await peer.subscribe("t", schema=avro())
    peer.flow(1)
    await peer.publish(entry(schema_version=FIRST))
    frame = await peer.hear_frame(Command.MESSAGE)
    assert bytes(frame.entry) == entry(schema_version=FIRST)


async def test_a_schema_is_asked_for(peer: Peer) -> None:
    properties = [KeyValue(key="a", value="b")]
    await peer.producer("t", 1, schema=avro(properties=properties))
    await peer.producer("t", 2, schema=avro(MORE))
    newest = await asked_for(peer, "t")
    assert (newest.schema, newest.schema_version) == (avro(MORE), SECOND)
    first = await asked_for(peer, "t", schema_version=FIRST)
    assert (first.schema, first.schema_version) == (avro(properties=properties), FIRST)
    for version in (b"", b"\0", (2).to_bytes(8), b"\xff" * 8):
        missing = await asked_for(peer, "t", schema_version=version)
        assert missing.error_code == api.TopicNotFound
    assert (await asked_for(peer, "nowhere")).error_code == api.TopicNotFound


async def test_the_schema_of_partitions_is_that_of_their_topic(broker: Broker, peer: Peer) -> None:
    await broker.topics.get_or_create(TopicName("public", "default", "t"), 2)
    assert (await peer.producer("t-partition-1", schema=avro())).schema_version == FIRST
    assert (await asked_for(peer, "t-partition-0")).schema == avro()
    assert await refused_producer(peer, "t-partition-0", STRING) == api.IncompatibleSchema


async def test_what_would_break_readers_is_refused(peer: Peer) -> None:
    await peer.producer("t", schema=avro())
    broken = avro(schema_data=b"{}")
    other = avro(b',{"name":"more","type":"long"}')
    for schema in (STRING, broken, other):
        assert await refused_producer(peer, "t", schema) == api.IncompatibleSchema
    for schema in (STRING, other):
        assert await refused_consumer(peer, "t", schema) == api.IncompatibleSchema
    assert (await asked_for(peer, "t")).schema_version == FIRST
    # And nothing is left of them.
    assert set(peer.client.producers) == {1}
    assert not peer.client.opening_producers
    assert not peer.client.consumers


async def test_a_topic_that_nobody_used_gets_its_first_readers_schema(peer: Peer) -> None:
    await peer.subscribe("t", 1, schema=avro())
    assert (await asked_for(peer, "t")).schema == avro()
    assert await refused_producer(peer, "t", STRING) == api.IncompatibleSchema


@pytest.mark.parametrize("used", ["producer", "messages"])
async def test_a_topic_in_use_without_a_schema_is_read_with_any(peer: Peer, used: str) -> None:
    await peer.producer("t")
    if used == "messages":
        await peer.publish(entry())
        peer.client.close_producer(1)
    await peer.subscribe("t", schema=STRING)
    assert (await asked_for(peer, "t")).error_code == api.TopicNotFound


async def test_a_reader_of_anything_is_always_welcome(peer: Peer) -> None:
    await peer.producer("t", schema=avro())
    await peer.subscribe("t", 1, schema=ANYTHING)
    await peer.subscribe("t", 2, subscription="other")


async def test_a_producer_may_go_on_with_another_schema(peer: Peer) -> None:
    assert (await made(peer, "t", avro())).error_code == api.TopicNotFound
    await peer.producer("t", schema=avro())
    assert (await made(peer, "t", avro(MORE))).schema_version == SECOND
    assert (await made(peer, "t", avro())).schema_version == FIRST
    refused = await made(peer, "t", STRING)
    assert (refused.request_id, refused.error_code) == (5, api.IncompatibleSchema)


async def test_plain_bytes_are_a_schema_where_a_producer_says_so(peer: Peer) -> None:
    assert (await peer.producer("t", 1, schema=PLAIN)).schema_version == FIRST
    kept = await asked_for(peer, "t", schema_version=FIRST)
    assert kept.schema.type == PLAIN.type
    assert await refused_producer(peer, "t", avro()) == api.IncompatibleSchema
    assert (await peer.producer("t", 2)).schema_version == b""
    assert (await peer.producer("other", 3, schema=avro())).schema_version == FIRST
    assert await refused_producer(peer, "other", PLAIN) == api.IncompatibleSchema


async def test_some_messages_and_readers_may_be_of_plain_bytes_on_any_topic(peer: Peer) -> None:
    await peer.producer("t", schema=avro())
    assert (await made(peer, "t", PLAIN)).schema_version == b""
    await peer.subscribe("t", 1, schema=PLAIN)
    assert not (await asked_for(peer, "t", schema_version=SECOND)).HasField("schema")


async def test_many_producers_that_come_at_once_make_one_version(broker: Broker) -> None:
    peers = [Peer(broker) for _ in range(5)]
    for peer in peers:
        await peer.connect()
    made = await asyncio.gather(*(peer.producer("t", schema=avro()) for peer in peers))
    assert {answer.schema_version for answer in made} == {FIRST}
    for peer in peers:
        peer.lose()


async def test_a_type_of_tomorrow_is_refused(peer: Peer) -> None:
    made = Command(
        type=Command.PRODUCER,
        producer=api.CommandProducer(topic="t", producer_id=1, request_id=3),
    )
    made.producer.schema.MergeFromString(b"\x0a\x01x\x1a\x00\x20\x63")
    peer.say_bytes(_partial(made))
    error = await peer.hear(Command.ERROR)
    assert (error.request_id, error.error) == (3, api.IncompatibleSchema)


def _partial(command: Command) -> bytes:
    encoded = command.SerializePartialToString()
    size = len(encoded)
    return (4 + size).to_bytes(4) + size.to_bytes(4) + encoded
