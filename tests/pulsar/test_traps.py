"""Where other brokers failed their clients: each trap of the protocol has a test of its name."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partition_logs import log_of
from penstock import limits
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.pulsar.wire.message_ids import EARLIEST
from penstock.records.pulsar.metadata_pb2 import EncryptionKeys
from pulsar_peer import Command, Peer, batch, entry

Id = api.MessageIdData
SHARED = api.CommandSubscribe.Shared
FAILOVER = api.CommandSubscribe.Failover
REFUSED = Command.ERROR


async def other_peer(broker: Broker) -> Peer:
    peer = Peer(broker)
    await peer.connect()
    return peer


def subscribe_command(**options: Any) -> Command:
    request = {
        "topic": "t",
        "subscription": "sub",
        "subType": api.CommandSubscribe.Exclusive,
        "consumer_id": 9,
        "request_id": 77,
    }
    return Command(type=Command.SUBSCRIBE, subscribe=api.CommandSubscribe(**{**request, **options}))


async def a_batch(peer: Peer, count: int, sequence_id: int = 0) -> int:
    payload, count = batch(*(b"m%d" % number for number in range(count)))
    receipt = await peer.publish(
        entry(payload, num_messages_in_batch=count), sequence_id=sequence_id
    )
    return int(receipt.message_id.entryId)


async def test_trap_2_commands_that_close_connections_are_never_sent(peer: Peer) -> None:
    """C++ and Go clients close on REACHED_END_OF_TOPIC, WATCH_* and types they don't know."""
    connected = await Peer(peer.client.broker).connect()
    assert connected.feature_flags == api.FeatureFlags(
        supports_broker_entry_metadata=True,
        supports_topic_watchers=True,
        supports_get_partitioned_metadata_without_auto_creation=True,
    )
    await peer.producer("t")
    await peer.subscribe("t")
    await peer.ask(Command(type=Command.PING, ping=api.CommandPing()), Command.PONG)
    assert peer.silent(Command.WATCH_TOPIC_UPDATE)


async def test_trap_3_seek_sends_consumers_away(peer: Peer, broker: Broker) -> None:
    await peer.producer("t")
    await peer.publish(entry())
    await peer.subscribe("t", durable=False, start_message_id=Id(ledgerId=EARLIEST, entryId=0))
    seek = api.CommandSeek(
        consumer_id=1, request_id=3, message_id=Id(ledgerId=EARLIEST, entryId=EARLIEST)
    )
    peer.say(Command(type=Command.SEEK, seek=seek))
    closed = await peer.hear(Command.CLOSE_CONSUMER)
    assert (closed.consumer_id, closed.request_id) == (1, 2**64 - 1)
    assert (await peer.hear(Command.SUCCESS)).request_id == 3
    # What comes back has no start message, and counts on the position of the seek.
    await peer.subscribe("t", durable=False)
    peer.flow(10)
    assert (await peer.hear(Command.MESSAGE)).message_id.entryId == 0


async def test_trap_4_a_subscribe_that_would_hang_closes_the_connection(
    peer: Peer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.metadata.errors import MetadataError

    async def fail(*_: object) -> None:
        raise MetadataError("the disk is full")

    monkeypatch.setattr(broker.subscriptions._cursors, "insert", fail)
    peer.say(subscribe_command())
    assert "disk is full" in await peer.closed()


@pytest.mark.parametrize("name", ["", "a://b", "persistent://one/two", "x" * 70_000])
async def test_trap_4_a_bad_topic_name_is_told_at_once(peer: Peer, name: str) -> None:
    """InvalidTopicName would be retried until the client's timeout."""
    refused = await peer.ask(subscribe_command(topic=name), REFUSED)
    assert refused.error == api.NotAllowedError


async def test_trap_5_errors_come_in_the_answer_of_their_request(peer: Peer) -> None:
    """One id may be outstanding twice: in a look-up and in a request about a consumer."""
    name = "persistent://public/t"
    metadata = api.CommandPartitionedTopicMetadata(topic=name, request_id=4)
    failed = await peer.ask(
        Command(type=Command.PARTITIONED_METADATA, partitionMetadata=metadata),
        Command.PARTITIONED_METADATA_RESPONSE,
    )
    assert (failed.request_id, failed.error) == (4, api.NotAllowedError)
    assert failed.response == api.CommandPartitionedTopicMetadataResponse.Failed
    lookup = api.CommandLookupTopic(topic=name, request_id=4)
    failed = await peer.ask(
        Command(type=Command.LOOKUP, lookupTopic=lookup), Command.LOOKUP_RESPONSE
    )
    assert (failed.request_id, failed.error) == (4, api.NotAllowedError)
    stats = api.CommandConsumerStats(consumer_id=8, request_id=4)
    failed = await peer.ask(
        Command(type=Command.CONSUMER_STATS, consumerStats=stats), Command.CONSUMER_STATS_RESPONSE
    )
    assert (failed.request_id, failed.error_code) == (4, api.ConsumerNotFound)
    schema = api.CommandGetSchema(topic="t", request_id=4)
    failed = await peer.ask(
        Command(type=Command.GET_SCHEMA, getSchema=schema), Command.GET_SCHEMA_RESPONSE
    )
    assert (failed.request_id, failed.error_code) == (4, api.TopicNotFound)


async def test_trap_6_a_producer_comes_back_before_its_old_connection_is_missed(
    peer: Peer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PULSAR_LIVENESS_SECONDS", 0.05)
    await peer.producer("t", producer_name="mine")
    again = await other_peer(broker)
    # The old one does not answer the PING.
    made = await again.producer(
        "t", producer_name="mine", epoch=1, user_provided_producer_name=False
    )
    assert made.producer_name == "mine"
    assert (await peer.hear(Command.CLOSE_PRODUCER)).producer_id == 1
    assert (await again.publish(entry())).message_id.entryId == 0
    again.lose()


async def test_trap_6_the_name_of_a_living_producer_is_taken(peer: Peer, broker: Broker) -> None:
    await peer.producer("t", producer_name="mine")
    again = await other_peer(broker)
    made = api.CommandProducer(topic="t", producer_id=1, request_id=1, producer_name="mine")
    again.say(Command(type=Command.PRODUCER, producer=made))
    await peer.hear(Command.PING)
    peer.say(Command(type=Command.PONG, pong=api.CommandPong()))
    assert (await again.hear(REFUSED)).error == api.ProducerBusy
    again.lose()


async def test_trap_6_an_exclusive_consumer_comes_back_the_same_way(
    peer: Peer, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PULSAR_LIVENESS_SECONDS", 0.05)
    await peer.subscribe("t")
    again = await other_peer(broker)
    await again.subscribe("t")
    assert (await peer.hear(Command.CLOSE_CONSUMER)).consumer_id == 1
    again.lose()


async def test_trap_7_permits_count_messages_and_a_batch_is_never_split(peer: Peer) -> None:
    await peer.producer("t")
    for sequence_id in range(3):
        await a_batch(peer, 4, sequence_id)
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(5)
    assert (await peer.hear(Command.MESSAGE)).message_id.entryId == 0
    assert (await peer.hear(Command.MESSAGE)).message_id.entryId == 4
    peer.flow(3)  # Five and three less eight is nothing.
    await _settle(peer)
    assert peer.silent(Command.MESSAGE)
    peer.flow(1)
    assert (await peer.hear(Command.MESSAGE)).message_id.entryId == 8


async def test_trap_7_acknowledged_messages_of_a_batch_cost_no_permit(peer: Peer) -> None:
    await peer.producer("t")
    await a_batch(peer, 4)
    await peer.publish(entry(), sequence_id=4)
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    ledger = peer.client.consumers[1].partition.id
    # Set means not acknowledged: messages 0 and 2 are. The same entry comes twice in one ACK.
    peer.acknowledge(
        Id(ledgerId=ledger, entryId=0, ack_set=[0b1110]),
        Id(ledgerId=ledger, entryId=0, ack_set=[0b1011]),
    )
    peer.flow(3)
    message = await peer.hear(Command.MESSAGE)
    assert (message.message_id.entryId, list(message.ack_set)) == (0, [0b1010])
    message = await peer.hear(Command.MESSAGE)
    assert (message.message_id.entryId, list(message.ack_set)) == (4, [])


async def test_trap_7_an_empty_ack_set_means_the_whole_batch(peer: Peer) -> None:
    await peer.producer("t")
    await a_batch(peer, 4)
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    consumer = peer.client.consumers[1]
    peer.acknowledge(Id(ledgerId=consumer.partition.id, entryId=0, ack_set=[0]))
    await _settle(peer)
    assert consumer.subscription.cursor.position == 4


async def test_trap_8_receipts_keep_their_order(peer: Peer) -> None:
    await peer.producer("t")
    for sequence_id in range(50):
        sent = api.CommandSend(producer_id=1, sequence_id=sequence_id)
        body = entry(b"x" * (sequence_id % 7), sequence_id=sequence_id)
        peer.say(Command(type=Command.SEND, send=sent), body)
    for sequence_id in range(50):
        receipt = await peer.hear(Command.SEND_RECEIPT)
        assert (receipt.sequence_id, receipt.message_id.entryId) == (sequence_id, sequence_id)


async def test_trap_8_a_bad_checksum_fails_one_message_in_its_turn(peer: Peer) -> None:
    await peer.producer("t")
    damaged = bytearray(entry())
    damaged[-1] ^= 1
    for sequence_id, body in enumerate([entry(), bytes(damaged), entry()]):
        sent = api.CommandSend(producer_id=1, sequence_id=sequence_id)
        peer.say(Command(type=Command.SEND, send=sent), body)
    assert (await peer.hear(Command.SEND_RECEIPT)).sequence_id == 0
    failed = await peer.hear(Command.SEND_ERROR)
    assert (failed.sequence_id, failed.error) == (1, api.ChecksumError)
    receipt = await peer.hear(Command.SEND_RECEIPT)
    assert (receipt.sequence_id, receipt.message_id.entryId) == (2, 1)


async def test_trap_9_a_reader_begins_with_its_start_message(peer: Peer) -> None:
    await peer.producer("t")
    await a_batch(peer, 5)
    second = await a_batch(peer, 5, 5)
    ledger = peer.client.producers[1].partition.id
    start = Id(ledgerId=ledger, entryId=second, batch_index=3)
    await peer.subscribe("t", durable=False, start_message_id=start)
    peer.flow(10)
    assert (await peer.hear(Command.MESSAGE)).message_id.entryId == second


async def test_trap_10_the_last_message_id(peer: Peer) -> None:
    await peer.producer("t")
    await peer.subscribe("t")
    empty = await last_message_id(peer)
    assert (empty.ledgerId, empty.entryId) == (EARLIEST, EARLIEST)
    await a_batch(peer, 1)
    assert (await last_message_id(peer)).batch_index == 0
    await a_batch(peer, 3, 1)
    last = await last_message_id(peer)
    assert (last.entryId, last.batch_index) == (1, 2)
    await peer.publish(entry(), sequence_id=4)
    last = await last_message_id(peer)
    assert (last.entryId, last.batch_index) == (4, -1)


@pytest.mark.parametrize("checksum", [True, False])
async def test_trap_11_stored_bytes_are_delivered_untouched(peer: Peer, checksum: bool) -> None:
    """Whatever the payload is: here it says it is encrypted, and nobody could look inside."""
    await peer.producer("t")
    body = entry(
        b"\x00\xff sealed",
        checksum=checksum,
        encryption_keys=[EncryptionKeys(key="k", value=b"v")],
        encryption_algo="AES",
        encryption_param=b"nonce",
        compression=4,
        uncompressed_size=9_000,
    )
    await peer.publish(body)
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(1)
    assert (await peer.hear_frame(Command.MESSAGE)).entry == body


async def test_trap_11_clients_of_before_checksums_get_none(broker: Broker) -> None:
    peer = Peer(broker)
    assert (await peer.connect(version=10)).protocol_version == 10
    await peer.producer("t")
    await peer.publish(entry(b"x"))
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(1)
    assert (await peer.hear_frame(Command.MESSAGE)).entry == entry(b"x", checksum=False)
    peer.lose()


async def test_trap_12_every_message_has_an_offset_and_a_chunk_is_one(peer: Peer) -> None:
    await peer.producer("t")
    assert await a_batch(peer, 5) == 0
    chunk = entry(uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=14)
    assert (await peer.publish(chunk)).message_id.entryId == 5
    assert await a_batch(peer, 2, 6) == 6
    log = log_of(peer.client.producers[1].partition)
    assert [header.next_offset async for header in log.headers(0)] == [5, 6, 8]


async def test_trap_14_failover_takes_consumers_by_name(peer: Peer, broker: Broker) -> None:
    from penstock.broker.topics.names import TopicName

    await broker.topics.create(TopicName("public", "default", "four"), 4)
    for consumer_id, name in enumerate(["b", "a"]):
        for partition in range(4):
            await peer.subscribe(
                f"four-partition-{partition}",
                consumer_id=10 * consumer_id + partition,
                subType=FAILOVER,
                consumer_name=name,
            )
    active = {
        consumer.member.name + str(consumer.partition.index)
        for consumer in peer.client.consumers.values()
        if consumer.subscription._push.selector.active is consumer.member  # type: ignore[union-attr]
    }
    assert active == {"a0", "b1", "a2", "b3"}


async def test_trap_15_lookup_tells_the_address_that_the_client_came_to(peer: Peer) -> None:
    lookup = api.CommandLookupTopic(topic="t", request_id=1)
    found = await peer.ask(
        Command(type=Command.LOOKUP, lookupTopic=lookup), Command.LOOKUP_RESPONSE
    )
    assert found.brokerServiceUrl == "pulsar://127.0.0.1:6650"
    assert found.response == api.CommandLookupTopicResponse.Connect
    assert found.authoritative


async def test_trap_16_one_message_size_for_every_connection(broker: Broker) -> None:
    sizes = {(await Peer(broker).connect()).max_message_size for _ in range(2)}
    assert sizes == {5 * 1024 * 1024}


async def test_trap_17_asking_for_partitions_creates_only_topics_that_have_some(
    tmp_path: Path, peer: Peer, broker: Broker
) -> None:
    assert await partitions_of(peer, "t") == 0
    assert broker.topics.all() == []
    four = await Broker.open(tmp_path / "four", BrokerSettings(default_partitions=4))
    other = await other_peer(four)
    assert await partitions_of(other, "t") == 4
    assert len(four.topics.all()[0].partitions) == 4
    other.lose()
    await four.close()


async def test_an_acknowledgement_with_a_request_id_is_durable_when_answered(
    tmp_path: Path, peer: Peer, broker: Broker
) -> None:
    await peer.producer("t")
    await peer.publish(entry())
    await peer.subscribe("t", initialPosition=api.CommandSubscribe.Earliest)
    peer.flow(1)
    message = await peer.hear(Command.MESSAGE)
    ack = api.CommandAck(
        consumer_id=1,
        ack_type=api.CommandAck.Individual,
        message_id=[message.message_id],
        request_id=12,
    )
    answer = await peer.ask(Command(type=Command.ACK, ack=ack), Command.ACK_RESPONSE)
    assert (answer.request_id, answer.HasField("error")) == (12, False)
    # A crash: nothing is closed, and the database is read by somebody else.
    with closing(sqlite3.connect(tmp_path / "metadata.sqlite")) as database:
        rows = database.execute("SELECT name, mark_delete FROM subscriptions").fetchall()
    assert rows == [("sub", 1)]


async def last_message_id(peer: Peer) -> Any:
    request = api.CommandGetLastMessageId(consumer_id=1, request_id=1)
    answer = await peer.ask(
        Command(type=Command.GET_LAST_MESSAGE_ID, getLastMessageId=request),
        Command.GET_LAST_MESSAGE_ID_RESPONSE,
    )
    return answer.last_message_id


async def partitions_of(peer: Peer, topic: str) -> int:
    request = api.CommandPartitionedTopicMetadata(topic=topic, request_id=1)
    answer = await peer.ask(
        Command(type=Command.PARTITIONED_METADATA, partitionMetadata=request),
        Command.PARTITIONED_METADATA_RESPONSE,
    )
    assert answer.response == api.CommandPartitionedTopicMetadataResponse.Success
    return int(answer.partitions)


async def _settle(peer: Peer) -> None:
    """Let the dispatcher do whatever it would do."""
    for _ in range(20):
        await asyncio.sleep(0)
    await peer.ask(Command(type=Command.PING, ping=api.CommandPing()), Command.PONG)
