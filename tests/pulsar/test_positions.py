"""Message ids and topic names, and what they mean in the log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from penstock.broker.broker import Broker
from penstock.broker.errors import BrokerError
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log.header import Magic, build_header
from penstock.pulsar.client import Client
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.positions import entry_before, position_at, position_at_time
from penstock.pulsar.topics import TopicAddress, open_partition, parse_topic
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.pulsar.wire.message_ids import EARLIEST, LATEST


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    """Three batches of four messages, one second apart."""
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = topic.partition(0)
    for second in range(3):
        header = build_header(
            Magic.PULSAR,
            b"body",
            record_count=4,
            base_timestamp=second * 1000,
            max_timestamp=second * 1000,
        )
        partition.append([header, b"body"])
    await partition.flushed()
    return partition


@pytest.mark.parametrize(
    ("ledger", "entry", "position"),
    [
        (EARLIEST, EARLIEST, 0),
        (LATEST, LATEST, 12),
        (0, 0, 0),
        (0, EARLIEST, 0),
        (0, 4, 4),
        (0, 6, 4),
        (0, 11, 8),
        (0, 12, 12),
        (0, 10**15, 12),
        (-1, 8, 0),
        (1, 0, 12),
    ],
)
async def test_an_id_is_the_start_of_its_entry(
    partition: Partition, ledger: int, entry: int, position: int
) -> None:
    special = ledger in {EARLIEST, LATEST}
    ledger_id = ledger if special else partition.id + ledger
    message_id = api.MessageIdData(ledgerId=ledger_id, entryId=entry)
    assert await position_at(partition, message_id) == position


@pytest.mark.parametrize(("time", "position"), [(0, 0), (1, 4), (1000, 4), (2000, 8), (2001, 12)])
async def test_a_time_is_the_first_entry_not_before_it(
    partition: Partition, time: int, position: int
) -> None:
    assert await position_at_time(partition, time) == position


@pytest.mark.parametrize(
    ("position", "entry"), [(0, EARLIEST), (1, EARLIEST), (4, 0), (6, 0), (8, 4), (12, 8)]
)
async def test_the_entry_before_a_position_is_wholly_acknowledged(
    partition: Partition, position: int, entry: int
) -> None:
    assert await entry_before(partition, position) == entry


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("t", ("public", "default", "t"), None),
        ("acme/shop/t", ("acme", "shop", "t"), None),
        ("persistent://acme/shop/t-partition-12", ("acme", "shop", "t"), 12),
        ("t-partition-0", ("public", "default", "t"), 0),
        ("t-partition-00", ("public", "default", "t-partition-00"), None),
        ("t-partition-0-partition-1", ("public", "default", "t-partition-0"), 1),
        ("-partition-3", ("public", "default", "-partition-3"), None),
        ("t%2Fu", ("public", "default", "t%2Fu"), None),
    ],
)
def test_topic_names(text: str, name: tuple[str, str, str], number: int | None) -> None:
    assert parse_topic(text) == TopicAddress(TopicName(*name), number)


@pytest.mark.parametrize(
    "text",
    ["", "a/b", "persistent://a/b", "a/b/c/d", "a b/c/d", "x://a/b/c", "y" * 1025],
)
def test_what_is_no_topic_name(text: str) -> None:
    with pytest.raises(BrokerError):
        parse_topic(text)


async def test_partitions_are_named_where_there_are_any(
    broker: Broker, partition: Partition
) -> None:
    client = cast(Client, SimpleNamespace(broker=broker, address=None))
    assert await open_partition(client, "t-partition-0") is partition
    for name in ("t", "t-partition-1", "other-partition-0"):
        with pytest.raises((RefusedError, BrokerError)):
            await open_partition(client, name)
    plain = await open_partition(client, "plain")
    assert await open_partition(client, "plain") is plain
    with pytest.raises(RefusedError):
        await open_partition(client, "missing", may_create=False)
    with pytest.raises(RefusedError):
        await open_partition(client, "plain-partition-0")
