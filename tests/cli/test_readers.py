"""Goal: groups and subscriptions of all protocols are listed with what they have left to read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest
from apache_iggy import Consumer as IggyReader
from apache_iggy import IggyClient, PollingStrategy
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from broker_process import BrokerProcess
from command_line import Penstock
from iggy_clients import connected, poll
from patience import PATIENCE_SECONDS, wait_until


@pytest.fixture
def readers(shared_server: BrokerProcess, penstock: Penstock, topic: str) -> Iterator[str]:
    """One reader of each protocol of this name, in a topic with 7 messages in partition 0."""
    name = f"readers-of-{topic}"
    for letter in "abcdefg":  # Each a batch, of which Pulsar's clients acknowledge no part.
        penstock("produce", topic, "-p", "0", stdin=letter)
    client = pulsar.Client(shared_server.pulsar)
    first = client.subscribe(
        topic, name, pulsar.ConsumerType.Shared, initial_position=pulsar.InitialPosition.Earliest
    )
    messages = [first.receive(timeout_millis=1000 * PATIENCE_SECONDS) for _ in range(7)]
    for message in messages[1:4]:
        first.acknowledge(message)
    kafka = Consumer(
        {
            "bootstrap.servers": shared_server.kafka,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    kafka.subscribe([topic])
    read = kafka.consume(5, timeout=PATIENCE_SECONDS)
    kafka.commit(message=read[-1], asynchronous=False)
    iggy = asyncio.run(iggy_group(shared_server.iggy, topic, name))
    # A Pulsar client sends its acknowledgements together, after a while.
    wait_until(lambda: listed(penstock, name)["pulsar"]["lag"] == 4)
    yield name
    del iggy
    kafka.close()
    client.close()


async def iggy_group(address: str, topic: str, name: str) -> IggyClient:
    client = await connected(address)
    await client.create_consumer_group("default", topic, name)
    await client.join_consumer_group("default", topic, name)
    # Polled in the group, with the offset of the last of two messages stored.
    group = IggyReader.Group(name)
    await poll(
        client, "default", topic, PollingStrategy.Next(), 2, consumer=group, auto_commit=True
    )
    return client


def listed(penstock: Penstock, name: str) -> dict[str, dict[str, Any]]:
    rows = json.loads(penstock("group", "list", "-f", "json").stdout)
    return {row["protocol"]: row for row in rows if row["group"] == name}


def test_every_kind_is_listed_with_its_lag(penstock: Penstock, topic: str, readers: str) -> None:
    rows = listed(penstock, readers)
    common = {"group": readers, "topic": topic, "topics": [topic], "members": 1}
    assert rows == {
        "kafka": {**common, "protocol": "kafka", "type": "consumer", "state": "Stable", "lag": 2},
        "pulsar": {
            **common,
            "protocol": "pulsar",
            "type": "subscription",
            "state": "Shared",
            "lag": 4,
        },
        "iggy": {**common, "protocol": "iggy", "type": "group", "state": "Stable", "lag": 5},
    }
    heading = penstock("group", "list").stdout.splitlines()[0].split()
    assert heading == ["GROUP", "PROTOCOL", "TYPE", "STATE", "TOPIC", "MEMBERS", "LAG"]


def test_a_name_is_described_for_all_protocols(
    penstock: Penstock, topic: str, readers: str
) -> None:
    told = json.loads(penstock("group", "describe", readers, "-f", "json").stdout)
    assert [row["lag"] for row in told["partitions"] if row["committed"] is not None] == [2]
    others = {each["protocol"]: each for each in told["others"]}
    (place,) = [each for each in others["pulsar"]["partitions"] if each["lag"]]
    assert place == {"topic": topic, "partition": 0, "committed": 0, "next_offset": 7, "lag": 4}
    assert [each["lag"] for each in others["iggy"]["partitions"]] == [5]
    table = penstock("group", "describe", readers).stdout
    assert f"{readers}: Pulsar subscription of {topic}, shared, 1 member" in table
    assert f"{readers}: Iggy group of {topic}, stable, 1 member" in table


def test_kafka_clients_see_groups_of_kafka_alone(
    readers: str, shared_server: BrokerProcess
) -> None:
    admin = AdminClient({"bootstrap.servers": shared_server.kafka})
    groups = admin.list_consumer_groups().result(timeout=PATIENCE_SECONDS).valid
    assert [each.group_id for each in groups].count(readers) == 1
