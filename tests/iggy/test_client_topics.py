"""Streams, topics and partitions, by the real client."""

from __future__ import annotations

import pulsar
import pytest
from apache_iggy import (
    IggyClient,
    IggyExpiry,
    MaxTopicSize,
    Partitioning,
    PollingStrategy,
    SendMessage,
)
from confluent_kafka.admin import AdminClient

from broker_process import BrokerProcess
from iggy_clients import SECONDS, connected, poll, send


async def test_stream_comes_is_renamed_and_goes(client: IggyClient, stream: str) -> None:
    await client.create_stream(stream)
    with pytest.raises(RuntimeError, match=r"(?i)already exists"):
        await client.create_stream(stream)
    created = await client.get_stream(stream)
    assert created is not None
    assert (created.name, created.topics_count, created.messages_count) == (stream, 0, 0)
    assert stream in [listed.name for listed in await client.get_streams()]

    await client.create_topic(stream, "orders", 1)
    await send(client, stream, "orders", "kept")
    await client.update_stream(stream, f"{stream}-new")
    assert await client.get_stream(stream) is None
    renamed = await client.get_stream(created.id)
    assert renamed is not None
    assert (renamed.name, renamed.messages_count) == (f"{stream}-new", 1)

    await client.delete_stream(f"{stream}-new")
    assert await client.get_stream(created.id) is None
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await client.delete_stream(stream)


async def test_stream_of_a_tenant_is_its_namespace(client: IggyClient, stream: str) -> None:
    await client.create_stream(f"acme.{stream}")
    await client.create_topic(f"acme.{stream}", "orders", 1)
    found = await client.get_stream(f"acme.{stream}")
    assert found is not None
    assert found.topics_count == 1
    with pytest.raises(RuntimeError, match=r"(?i)invalid stream name"):
        await client.create_stream(f"public.{stream}")


async def test_topic_comes_changes_and_goes(client: IggyClient, stream: str) -> None:
    await client.create_stream(stream)
    await client.create_topic(
        stream,
        "orders",
        3,
        compression_algorithm="gzip",
        message_expiry=IggyExpiry.NeverExpire(),
        options={"segment_size": "128 MiB"},
    )
    topic = await client.get_topic(stream, "orders")
    assert topic is not None
    assert (topic.name, topic.partitions_count) == ("orders", 3)
    assert topic.compression_algorithm == "gzip"
    explicit, derived = topic.options.to_scalar_dict(), topic.derived_options.to_scalar_dict()
    assert explicit["segment_size"] == 128 << 20
    assert explicit["message_expiry"] == (1 << 64) - 1
    assert "max_topic_size" in derived
    assert not explicit.keys() & derived.keys()
    assert [partition.id for partition in topic.partitions] == [0, 1, 2]

    await client.update_topic(stream, "orders", "bills", max_topic_size=MaxTopicSize.Unlimited())
    assert await client.get_topic(stream, "orders") is None
    changed = await client.get_topic(stream, topic.id)
    assert changed is not None
    assert changed.name == "bills"
    assert changed.options.to_scalar_dict() == explicit | {"max_topic_size": (1 << 64) - 1}

    await client.delete_topic(stream, "bills")
    assert await client.get_topics(stream) == []
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await client.delete_topic(stream, "bills")


async def test_names_are_unique_in_their_stream_only(client: IggyClient, stream: str) -> None:
    for name in (stream, f"{stream}-2"):
        await client.create_stream(name)
        await client.create_topic(name, "orders", 1)
    with pytest.raises(RuntimeError, match=r"(?i)already exists"):
        await client.create_topic(stream, "orders", 1)
    await client.create_topic(stream, "bills", 1)
    with pytest.raises(RuntimeError, match=r"(?i)already exists"):
        await client.update_topic(stream, "bills", "orders")


async def test_bad_topics_are_refused(client: IggyClient, stream: str) -> None:
    await client.create_stream(stream)
    with pytest.raises(RuntimeError, match=r"(?i)too many partitions"):
        await client.create_topic(stream, "orders", 1001)
    with pytest.raises(RuntimeError, match=r"(?i)option"):
        await client.create_topic(stream, "orders", 1, options={"colour": "green"})
    with pytest.raises(RuntimeError, match=r"(?i)invalid option value"):
        await client.create_topic(stream, "orders", 1, options={"segment_size": "1 KiB"})
    with pytest.raises(RuntimeError, match=r"(?i)not found"):
        await client.create_topic(f"{stream}-missing", "orders", 1)
    with pytest.raises(RuntimeError, match=r"(?i)option"):
        await client.update_stream(stream, stream, options={"colour": "green"})
    assert await client.get_topics(stream) == []


async def test_options_that_are_not_in_effect_are_refused(
    client: IggyClient, stream: str, topic: str
) -> None:
    for asked in (
        {"options": {"preallocate_segments": "true"}},
        {"options": {"segment_size": "2 GiB"}},
    ):
        with pytest.raises(RuntimeError, match=r"(?i)invalid option value"):
            await client.create_topic(stream, "bills", 1, **asked)
    assert [found.name for found in await client.get_topics(stream)] == [topic]
    # The two defaults of the server, which say what happens.
    await client.create_topic(
        stream,
        "bills",
        1,
        message_expiry=IggyExpiry.ServerDefault(),
        max_topic_size=MaxTopicSize.ServerDefault(),
    )


async def test_a_topic_is_no_smaller_than_one_of_its_segments(
    client: IggyClient, stream: str, topic: str
) -> None:
    small = MaxTopicSize.Custom(10 << 20)
    with pytest.raises(RuntimeError, match="lower than segment size"):
        await client.create_topic(stream, "bills", 1, max_topic_size=small)
    with pytest.raises(RuntimeError, match="lower than segment size"):
        await client.update_topic(stream, topic, topic, max_topic_size=small)
    await client.create_topic(
        stream, "bills", 1, max_topic_size=small, options={"segment_size": "10 MiB"}
    )
    await client.update_topic(stream, "bills", "bills", max_topic_size=small)


async def test_topic_may_have_no_partitions(
    client: IggyClient, stream: str, shared_server: BrokerProcess
) -> None:
    await client.create_stream(stream)
    await client.create_topic(stream, "later", 0)
    found = await client.get_topic(stream, "later")
    assert found is not None
    assert found.partitions_count == 0
    for partitioning in (Partitioning.balanced(), Partitioning.messages_key("key")):
        with pytest.raises(RuntimeError, match=r"(?i)not found"):
            await client.send_messages(stream, "later", partitioning, [SendMessage("lost")])
    with pytest.raises(RuntimeError, match=r"(?i)partition.* not found"):
        await send(client, stream, "later", "lost")
    with pytest.raises(RuntimeError, match=r"(?i)partition.* not found"):
        await poll(client, stream, "later", PollingStrategy.First())
    with pytest.raises(RuntimeError, match=r"(?i)too many partitions"):
        await client.create_partitions(stream, "later", 0)
    await client.create_consumer_group(stream, "later", "readers")

    name = f"{stream}.later"
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    in_kafka = admin.list_topics(name, timeout=SECONDS).topics[name]
    assert (in_kafka.error, in_kafka.partitions) == (None, {})
    pulsar_client = pulsar.Client(shared_server.pulsar)
    with pytest.raises(pulsar.TopicNotFound):
        pulsar_client.create_producer(f"public/{stream}/later")
    pulsar_client.close()

    await client.create_partitions(stream, "later", 1)
    assert await send(client, stream, "later", "first") == 0
    assert set(admin.list_topics(name, timeout=SECONDS).topics[name].partitions) == {0}


async def test_partitions_are_added_and_taken_away(
    client: IggyClient, stream: str, topic: str, shared_server: BrokerProcess
) -> None:
    await client.create_partitions(stream, topic, 2)
    found = await client.get_topic(stream, topic)
    assert found is not None
    assert found.partitions_count == 4
    assert await send(client, stream, topic, "last", partition=3) == 0
    await client.delete_partitions(stream, topic, 3)
    found = await client.get_topic(stream, topic)
    assert found is not None
    assert [partition.id for partition in found.partitions] == [0]
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    name = f"{stream}.{topic}"
    assert set(admin.list_topics(name, timeout=SECONDS).topics[name].partitions) == {0}
    pulsar_client = pulsar.Client(shared_server.pulsar)
    assert len(pulsar_client.get_topic_partitions(f"public/{stream}/{topic}")) == 1
    pulsar_client.close()
    for count, refusal in ((2, "Invalid partitions count"), (0, "Too many partitions")):
        with pytest.raises(RuntimeError, match=refusal):
            await client.delete_partitions(stream, topic, count)


async def test_options_are_described(client: IggyClient) -> None:
    by_key = {option.key: option for option in await client.describe_options("topic")}
    assert by_key["segment_size"].default_value.value == 1 << 30
    assert by_key["segment_size"].description
    assert await client.describe_options("stream") == []
    assert await client.describe_options("user") == []


async def test_everything_is_there_after_a_restart(server: BrokerProcess) -> None:
    client = await connected(server.iggy)
    await client.create_stream("empty")
    await client.create_stream("shop")
    await client.create_topic("shop", "later", 0)
    await client.create_topic("shop", "orders", 2, options={"segment_size": "128 MiB"})
    await client.update_topic("shop", "orders", "bills")
    await client.update_stream("shop", "store")
    await send(client, "store", "bills", "kept", partition=1)
    server.restart()

    again = await connected(server.iggy)
    assert [(found.id, found.name) for found in await again.get_streams()] == [
        (0, "empty"),
        (1, "store"),
    ]
    later = await again.get_topic("store", "later")
    assert later is not None
    assert later.partitions_count == 0
    topic = await again.get_topic("store", "bills")
    assert topic is not None
    assert topic.messages_count == 1
    assert topic.options.to_scalar_dict()["segment_size"] == 128 << 20
