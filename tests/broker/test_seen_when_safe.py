"""What readers of all protocols see ends where a crash can take nothing back."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faulty_files import FaultyFileSystem, Survival
from patience import PATIENCE_SECONDS, until
from penstock import records
from penstock.broker.reading.conversion_cache import ConversionCache
from penstock.broker.settings import BrokerSettings
from penstock.broker.subscriptions.cursor import Cursor
from penstock.broker.subscriptions.selectors.key_shared import AS_THEY_SPREAD
from penstock.broker.subscriptions.subscription import Subscription, SubscriptionKind
from penstock.broker.topics import settling
from penstock.broker.topics.config import TopicConfig
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.settling import settled
from penstock.broker.transactions.isolation import Isolation
from penstock.iggy.kept import Kept
from penstock.iggy.offsets import current_offset
from penstock.iggy.polling import Wanted, poll
from penstock.kafka.handlers.api_02_list_offsets import find_largest_timestamp, find_time
from penstock.log import Flusher, LocalLog, LogConfig, OffsetOutOfRangeError
from penstock.log.header import Magic, walk
from penstock.memory import Memory
from penstock.pulsar.positions import last_message_id, position_at, position_at_time
from penstock.pulsar.wire.message_ids import EARLIEST, LATEST
from penstock.pulsar.wire.pulsar_api_pb2 import MessageIdData
from receivers import consumer, receiver_of
from stored_batches import Record, kafka_batch

FOLDER = Path("/data/0")
DEFAULT = LogConfig()
SLOW = LogConfig(segment_bytes=4_000, checkpoint_bytes=8_000, flush_interval_seconds=3_600)

Open = Callable[..., Any]


class Gate:
    """Holds flushes up while it is shut."""

    def __init__(self, disk: FaultyFileSystem) -> None:
        self._open = threading.Event()
        self._open.set()
        disk.hook = self._pass
        self.flushes = 0

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def _pass(self, operation: str, path: Path) -> None:
        if operation == "fdatasync" and path.suffix == ".log":
            self.flushes += 1
            assert self._open.wait(PATIENCE_SECONDS)


@pytest.fixture
def gate(disk: FaultyFileSystem) -> Iterator[Gate]:
    gate = Gate(disk)
    yield gate
    gate.open()


@pytest.fixture
def open_partition(flusher: Flusher, disk: FaultyFileSystem) -> Open:
    async def opened(
        files: FaultyFileSystem = disk, config: LogConfig = DEFAULT, flush: str = "acknowledged"
    ) -> Partition:
        topic: Any = SimpleNamespace(
            name=TopicName.from_kafka("t"),
            config=TopicConfig.of({"flush": flush}, BrokerSettings()),
            partitioned=True,
        )
        log = LocalLog.open(FOLDER, config, files, flusher)
        return await Partition.open(topic, 0, 7, log, ConversionCache(Memory()))

    return opened


@pytest.fixture
async def partition(open_partition: Open, gate: Gate) -> AsyncIterator[Partition]:
    await records.prepare()
    opened = await open_partition()
    yield opened
    gate.open()
    opened.close()


def batch(count: int = 10, ms: int = 1_000) -> list[bytearray]:
    return [bytearray(kafka_batch([Record(bytes(50), time=ms * 1000)] * count))]


async def seen(partition: Partition, magic: Magic) -> list[int]:
    """Read all there is as a client does; return the base offsets."""
    found: list[int] = []
    offset = partition.start_offset
    while parts := await partition.read(offset, 300, magic):
        headers = [header for part in parts for _, header in walk(part)]
        found += [header.base_offset for header in headers]
        offset = headers[-1].next_offset
    return found


async def test_no_reader_sees_a_batch_before_it_is_flushed(
    partition: Partition, gate: Gate
) -> None:
    partition.append(batch(ms=1_000))
    await partition.flushed()
    gate.shut()
    flushed = partition.durable(partition.append(batch(ms=2_000)))
    for isolation in Isolation:
        assert partition.readable_end(isolation) == 10
    for magic in Magic:
        assert await seen(partition, magic) == [0]
        assert await partition.read(10, 1_000, magic) == []
    assert partition.end_offset == 20
    assert await partition.batch_at(15) is None
    assert await partition.at_time(2_000) is None
    assert await partition.at_time(2_000, 0) is None
    assert (await find_time(partition, 2_000)).offset == -1
    assert (await find_largest_timestamp(partition)).timestamp == 1_000
    assert partition.epoch_end(0).end_offset == 10
    with pytest.raises(OffsetOutOfRangeError):
        await partition.trim(15)
    assert (await last_message_id(partition)).entryId == 0
    for entry in (LATEST, 15):
        assert await position_at(partition, MessageIdData(ledgerId=7, entryId=entry)) == 10
    assert await position_at(partition, MessageIdData(ledgerId=7, entryId=EARLIEST)) == 0
    assert await position_at_time(partition, 2_000) == 10
    assert current_offset(partition) == 9
    assert (await poll(Kept(partition.memory), partition, Wanted(0, 100))).messages == 10
    gate.open()
    await flushed
    for magic in Magic:
        assert await seen(partition, magic) == [0, 10]
    assert (await last_message_id(partition)).entryId == 10
    assert (await find_largest_timestamp(partition)).timestamp == 2_000


async def test_waiting_readers_are_woken_once_a_round(partition: Partition, gate: Gate) -> None:
    woken: list[int] = []
    partition.add_listener(lambda: woken.append(partition.readable_end()))
    gate.shut()
    for _ in range(100):
        flushed = partition.durable(partition.append(batch(1)))
    await until(lambda: gate.flushes == 1)
    late = [partition.durable(partition.append(batch(1))) for _ in range(100)]
    assert woken == []
    gate.open()
    await asyncio.gather(flushed, *late)
    assert woken == [100, 200]


async def test_a_consumer_that_is_pushed_to_gets_nothing_before_its_producer_has_its_receipt(
    partition: Partition, gate: Gate
) -> None:
    subscription = Subscription(
        partition, "s", Cursor(0), durable=False, properties={}, changed=lambda _: None
    )
    member = consumer()
    subscription.attach(member, SubscriptionKind.EXCLUSIVE, Magic.PULSAR, AS_THEY_SPREAD)
    subscription.add_permits(member, 100)
    gate.shut()
    receipt = partition.durable(partition.append(batch(1)))
    order: list[str] = []
    receipt.add_done_callback(lambda _: order.append("receipt"))
    deliver = receiver_of(member).deliver

    def delivered(deliveries: Any) -> None:
        order.append("message")
        deliver(deliveries)

    receiver_of(member).deliver = delivered  # type: ignore[method-assign]
    await asyncio.sleep(0.05)
    assert order == []
    gate.open()
    await until(lambda: "message" in order)
    assert order == ["receipt", "message"]
    subscription.detach(member)


async def test_what_nobody_waits_for_is_flushed_at_once_on_a_quiet_topic(
    open_partition: Open, gate: Gate
) -> None:
    partition = await open_partition(config=SLOW)
    changed = asyncio.Event()
    partition.add_listener(changed.set)
    partition.written(partition.append(batch()))
    await asyncio.wait_for(changed.wait(), PATIENCE_SECONDS)
    assert partition.readable_end() == 10
    partition.remove_listener(changed.set)
    # The interval of an hour has only begun, so that this one waits.
    partition.written(partition.append(batch()))
    await asyncio.sleep(0.05)
    assert (partition.readable_end(), gate.flushes) == (10, 1)
    # Whoever waits for a flush does not wait for the interval.
    await partition.durable(partition.append(batch()))
    assert (partition.readable_end(), gate.flushes) == (30, 2)
    partition.close()


async def test_a_reader_at_the_end_does_not_wait_for_the_interval(open_partition: Open) -> None:
    partition = await open_partition(config=SLOW)
    changed = asyncio.Event()
    partition.add_listener(changed.set)
    for end in (10, 20, 30):
        changed.clear()
        partition.written(partition.append(batch()))
        await asyncio.wait_for(changed.wait(), PATIENCE_SECONDS)
        assert partition.readable_end() == end
    partition.close()


async def test_a_reader_that_comes_to_the_end_does_not_wait_for_the_interval(
    open_partition: Open, gate: Gate
) -> None:
    partition = await open_partition(config=SLOW)
    heard = asyncio.Event()
    for end in (10, 20, 30):
        await partition.written(partition.append(batch()))
        partition.add_listener(heard.set)
        await until(lambda end=end: partition.readable_end() == end)  # type: ignore[misc]
        partition.remove_listener(heard.set)
    # There is nothing to flush for whoever waits where all is safe.
    flushes = gate.flushes
    partition.add_listener(heard.set)
    await asyncio.sleep(0)
    await partition.flushed()
    assert gate.flushes == flushes
    partition.close()


async def test_writes_without_a_waiter_share_the_flush_of_their_interval(
    open_partition: Open, gate: Gate
) -> None:
    partition = await open_partition(config=LogConfig(flush_interval_seconds=0.05))
    began = time.monotonic()
    for _ in range(40):
        partition.written(partition.append(batch(1)))
        await asyncio.sleep(0.005)
    await until(lambda: partition.readable_end() == 40)
    assert gate.flushes <= 2 + (time.monotonic() - began) / 0.05
    partition.close()


async def test_a_topic_that_is_safe_when_written_shows_what_is_written(
    open_partition: Open, gate: Gate
) -> None:
    partition = await open_partition(flush="written")
    gate.shut()
    woken: list[int] = []
    partition.add_listener(lambda: woken.append(partition.readable_end()))
    await partition.durable(partition.append(batch()))
    assert woken == [10]
    assert await seen(partition, Magic.KAFKA) == [0]
    # What is to be flushed from now on is flushed without another write.
    gate.open()
    partition.topic.config = TopicConfig.of({"flush": "acknowledged"}, BrokerSettings())
    partition.reconfigured()
    await until(lambda: partition.readable_end() == 10)
    partition.close()


@pytest.mark.parametrize("magic", Magic)
async def test_what_a_reader_saw_is_there_after_the_power_is_cut(
    open_partition: Open, disk: FaultyFileSystem, magic: Magic
) -> None:
    await records.prepare()
    chance = random.Random(magic)
    partition = await open_partition(config=SLOW)
    shown: list[int] = []
    crashes: list[tuple[list[int], FaultyFileSystem]] = []

    def crash(operation: str, path: Path) -> None:
        if operation != "pread":
            crashes.append((list(shown), disk.after_crash(Survival.NONE)))

    disk.hook = crash
    for _ in range(25):
        offset = partition.append(batch(chance.randint(1, 4)))
        if chance.random() < 0.3:
            await partition.durable(offset)
        else:
            partition.written(offset)
        if chance.random() < 0.3:
            await asyncio.sleep(0)
        shown[:] = await seen(partition, magic)
    assert len(shown) > 8
    partition.close()
    for before, crashed in crashes:
        if not before:
            continue
        again = await open_partition(crashed)
        assert (await seen(again, magic))[: len(before)] == before
        again.close()


async def test_who_asks_for_the_end_waits_for_what_was_written(
    open_partition: Open, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = await open_partition(config=SLOW)
    for _ in range(2):
        await partition.written(partition.append(batch()))
    await settled([partition])
    assert partition.readable_end() == 20
    gate.shut()
    await partition.written(partition.append(batch()))
    monkeypatch.setattr(settling, "SETTLING_SECONDS", 0.01)
    await settled([partition])
    assert partition.readable_end() == 20, "a slow disk keeps nobody for long"
    gate.open()
    await settled([partition])
    assert partition.readable_end() == 30
    partition.close()
