"""Sending and polling with every strategy, by the real client."""

from __future__ import annotations

import random

import pulsar
import pytest
from apache_iggy import (
    Consumer,
    HeaderKey,
    HeaderValue,
    IggyClient,
    Partitioning,
    PollingStrategy,
    SendMessage,
)
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition

from broker_process import BrokerProcess
from iggy_clients import SECONDS, connected, poll, send, until

First, Last, Next = PollingStrategy.First(), PollingStrategy.Last(), PollingStrategy.Next()


@pytest.fixture
async def filled(client: IggyClient, stream: str, topic: str) -> str:
    """Three batches of 1, 3 and 2 messages in partition 0."""
    await send(client, stream, topic, "0")
    await send(client, stream, topic, "1", "2", "3")
    await send(client, stream, topic, "4", "5")
    return topic


def numbered(*offsets: int) -> list[tuple[int, bytes]]:
    return [(offset, str(offset).encode()) for offset in offsets]


async def test_confirmation_says_where_the_batch_went(
    client: IggyClient, stream: str, topic: str
) -> None:
    assert await send(client, stream, topic, "a", "b") == 0
    assert await send(client, stream, topic, "c") == 2
    assert await send(client, stream, topic, "d", partition=1) == 0


async def test_each_strategy_begins_where_it_says(
    client: IggyClient, stream: str, filled: str
) -> None:
    assert await poll(client, stream, filled, First) == numbered(*range(6))
    assert await poll(client, stream, filled, First, 2) == numbered(0, 1)
    assert await poll(client, stream, filled, Last, 3) == numbered(3, 4, 5)
    assert await poll(client, stream, filled, Last, 50) == numbered(*range(6))
    for start in range(8):
        for count in (1, 2, 3, 50):
            found = await poll(client, stream, filled, PollingStrategy.Offset(start), count)
            assert found == numbered(*range(start, 6))[:count]


async def test_poll_from_a_time(client: IggyClient, stream: str, filled: str) -> None:
    messages = await client.poll_messages(
        stream,
        filled,
        consumer=Consumer.Single(1),
        polling_strategy=First,
        count=10,
        auto_commit=False,
        partition_id=0,
    )
    times = [message.timestamp() for message in messages]
    assert times == sorted(times)
    assert len(set(times)) == 3
    for number, time in enumerate(times):
        first = times.index(time)
        assert await poll(client, stream, filled, PollingStrategy.Timestamp(time)) == numbered(
            *range(first, 6)
        ), number
    assert await poll(client, stream, filled, PollingStrategy.Timestamp(0)) == numbered(*range(6))
    assert await poll(client, stream, filled, PollingStrategy.Timestamp(times[-1] + 1)) == []


async def test_next_goes_on_behind_what_was_committed(
    client: IggyClient, stream: str, filled: str
) -> None:
    assert await poll(client, stream, filled, Next, 4) == numbered(0, 1, 2, 3)
    assert await poll(client, stream, filled, Next, 4, auto_commit=True) == numbered(0, 1, 2, 3)
    assert await poll(client, stream, filled, Next, 4, auto_commit=True) == numbered(4, 5)
    assert await poll(client, stream, filled, Next, 4, auto_commit=True) == []
    other = Consumer.Single("by-name")
    assert await poll(client, stream, filled, Next, 1, consumer=other) == numbered(0)


async def test_headers_ids_and_bytes_come_back(client: IggyClient, stream: str, topic: str) -> None:
    headers = {
        HeaderKey.String("text"): HeaderValue.String("Zażółć"),
        HeaderKey.Raw(b"\x00\xff"): HeaderValue.Raw(bytes(255)),
        HeaderKey.Int32(-5): HeaderValue.Float64(0.5),
        HeaderKey.String("number"): HeaderValue.UnsignedInt64(2**64 - 1),
    }
    payload = bytes(range(256)) * 5
    sent = [SendMessage(payload, id=77, user_headers=headers), SendMessage("plain")]
    await client.send_messages(stream, topic, 0, sent)
    with_headers, plain = await client.poll_messages(
        stream,
        topic,
        consumer=Consumer.Single(1),
        polling_strategy=First,
        count=10,
        auto_commit=False,
        partition_id=0,
    )
    assert with_headers.payload() == payload
    assert with_headers.id() == 77
    assert with_headers.length() == len(payload)
    assert dict(with_headers.user_headers() or {}) == headers
    assert plain.id() != 0
    assert not plain.user_headers()
    assert abs(with_headers.timestamp() - with_headers.origin_timestamp()) < 60 * 10**6


async def test_keys_and_turns_choose_partitions(
    client: IggyClient, stream: str, topic: str
) -> None:
    for number in range(4):
        message = [SendMessage(str(number))]
        await client.send_messages(stream, topic, Partitioning.balanced(), message)
    for partition in (0, 1):
        assert len(await poll(client, stream, topic, First, partition=partition)) == 2
    by_key = Partitioning.messages_key("key-1")
    first = await client.send_messages(stream, topic, by_key, [SendMessage("a")])
    second = await client.send_messages(stream, topic, by_key, [SendMessage("b")])
    # XXH32 of the key is 962816521, which is odd.
    assert {found.confirmations[0].partition_id for found in (first, second)} == {1}


async def test_bad_requests_are_refused_one_by_one(
    client: IggyClient, stream: str, topic: str
) -> None:
    with pytest.raises(RuntimeError, match=r"(?i)partition"):
        await send(client, stream, topic, "x", partition=2)
    with pytest.raises(RuntimeError, match=r"(?i)partition"):
        await poll(client, stream, topic, First, partition=9)
    with pytest.raises(RuntimeError, match=r"(?i)messages count"):
        await poll(client, stream, topic, First, 0)
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await poll(client, stream, "missing", First)
    assert await poll(client, stream, topic, First) == []


async def test_large_batches_and_long_polls(client: IggyClient, stream: str, topic: str) -> None:
    payloads = [bytes([number % 256]) * 3000 for number in range(1500)]
    for start in range(0, 1500, 500):
        assert await send(client, stream, topic, *payloads[start : start + 500]) == start
    found = await poll(client, stream, topic, First, 1500)
    assert [payload for _, payload in found] == payloads
    assert [offset for offset, _ in found] == list(range(1500))


async def test_large_answers_come_from_the_file_and_are_what_was_sent(
    client: IggyClient, stream: str, topic: str
) -> None:
    block = random.Random(5).randbytes(1 << 20)
    payloads = [block[n * 301 : n * 301 + 1_000 * (1 + n % 3)] for n in range(3_000)]
    batch_sizes = [500, 3, 700, 297, 100, 1, 1, 1, 1_397]
    start = 0
    for size in batch_sizes:
        await send(client, stream, topic, *payloads[start : start + size])
        start += size
    for count in (3_000, 1_203, 500, 333):
        found: list[tuple[int, bytes]] = []
        while len(found) < len(payloads):
            strategy = PollingStrategy.Offset(len(found))
            polled = await poll(client, stream, topic, strategy, count)
            assert len(polled) == min(count, len(payloads) - len(found))
            found += polled
        assert found == list(enumerate(payloads))


async def test_high_level_producer_sends_to_all_partitions(client: IggyClient, stream: str) -> None:
    producer = await client.producer(stream, "orders", topic_partitions_count=3)
    for number in range(9):
        await producer.send_one(SendMessage(str(number)))
    await producer.shutdown()
    found = [await poll(client, stream, "orders", First, partition=p) for p in range(3)]
    assert [len(messages) for messages in found] == [3, 3, 3]
    assert sorted(int(payload) for part in found for _, payload in part) == list(range(9))


async def test_messages_are_there_after_a_crash(server: BrokerProcess) -> None:
    client = await connected(server.iggy)
    await client.create_stream("shop")
    await client.create_topic("shop", "orders", 1)
    await send(client, "shop", "orders", "0", "1")
    await poll(client, "shop", "orders", Next, 1, auto_commit=True)
    server.kill9()
    server.start()

    again = await connected(server.iggy)
    assert await poll(again, "shop", "orders", First) == numbered(0, 1)
    assert await poll(again, "shop", "orders", Next) == numbered(1)
    assert await send(again, "shop", "orders", "2") == 2


async def test_client_reconnects_by_itself(server: BrokerProcess) -> None:
    soon = "reconnection_interval=100ms&reestablish_after=100ms"
    client = IggyClient.from_connection_string(f"iggy+tcp://iggy:iggy@{server.iggy}?{soon}")
    await client.connect()
    await client.create_stream("shop")
    await client.create_topic("shop", "orders", 1)
    await send(client, "shop", "orders", "0")
    server.restart()

    async def is_back() -> bool:
        try:
            return await poll(client, "shop", "orders", First) == numbered(0)
        except RuntimeError:
            return False

    # While it has no connection the client refuses calls at once; it logs in again by itself.
    await until(is_back)


async def test_purged_topic_is_empty_for_every_protocol(
    client: IggyClient, stream: str, topic: str, shared_server: BrokerProcess
) -> None:
    name = f"{stream}.{topic}"
    for _ in range(3):
        await send(client, stream, topic, "old")
    await poll(client, stream, topic, PollingStrategy.Next(), auto_commit=True)
    pulsar_client = pulsar.Client(shared_server.pulsar)
    pulsar_reader = pulsar_client.subscribe(
        f"public/{stream}/{topic}-partition-0",
        "readers",
        initial_position=pulsar.InitialPosition.Earliest,
        receiver_queue_size=1,
    )
    assert pulsar_reader.receive(SECONDS * 1000).data() == b"old"
    await client.purge_topic(stream, topic)
    found = await client.get_topic(stream, topic)
    assert found is not None
    assert (found.messages_count, found.size) == (0, 0)
    assert await poll(client, stream, topic, PollingStrategy.First()) == []

    # Offsets go on: what a reader of any protocol has noted never means another message.
    assert await send(client, stream, topic, "new") == 3
    for strategy in (PollingStrategy.First(), PollingStrategy.Offset(0), PollingStrategy.Next()):
        assert await poll(client, stream, topic, strategy) == [(3, b"new")]
    while (received := pulsar_reader.receive(SECONDS * 1000)).data() == b"old":
        assert received.message_id().entry_id() < 3, "it was on its way before the purge"
    assert received.data() == b"new"
    pulsar_client.close()
    kafka = KafkaConsumer(
        {
            "bootstrap.servers": shared_server.kafka,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    kafka.assign([TopicPartition(name, 0, 0)])  # An offset that is gone: out of range.
    message = kafka.poll(SECONDS)
    assert message is not None
    assert (message.offset(), message.value()) == (3, b"new")
    kafka.close()

    await client.purge_stream(stream)
    assert await poll(client, stream, topic, PollingStrategy.First()) == []
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await client.purge_stream(f"{stream}-missing")
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await client.purge_topic(stream, "missing")
