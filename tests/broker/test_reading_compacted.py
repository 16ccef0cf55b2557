"""Goal: what was read or converted before a compaction is not what readers get after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.broker.broker import Broker
from penstock.broker.reading import conversion_cache
from penstock.broker.reading.conversion_cache import Taken
from penstock.broker.reading.entries import EntryReader
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.iggy.kept import Kept
from penstock.iggy.polling import Polled, Wanted, poll, poll_kept
from penstock.iggy.restated import RestatedPolls, restate
from penstock.iggy.wire.batch import MessageForm
from penstock.log import LogConfig
from penstock.log.header import Magic, walk
from penstock.records import ENCODINGS, Encoding, MessageSetMagic, decode
from running import running
from stored_batches import TIME, Record, iggy_batch, iggy_body, kafka_batch

if TYPE_CHECKING:
    from penstock.session import Buffer

NODE = BrokerSettings(log=LogConfig(segment_bytes=100_000), compaction_check_ms=86_400_000)
ROUNDS = 20
KEYS = 3
VALUE = bytes(8_000)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with running(tmp_path, NODE) as broker:
        broker.compaction.now_ms = lambda: TIME // 1000 + 60_000
        yield broker


@pytest.fixture
async def partition(broker: Broker) -> Partition:
    """Each key many times, in turns of Iggy and Kafka."""
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    partition = topic.partitions[0]
    for number in range(ROUNDS):
        records = [Record(b"%d" % number + VALUE, b"k%d" % key) for key in range(KEYS)]
        made = kafka_batch(records) if number % 2 else iggy_batch(iggy_body(records), count=KEYS)
        partition.append([bytearray(made)])
    await partition.flushed()
    return partition


async def compact(broker: Broker) -> None:
    (topic,) = broker.topics.all()
    asked = {"cleanup_policy": "compact", "compaction_requested_ms": str(TIME // 1000)}
    await broker.topics.configure(topic, lambda _: topic.config.explicit | asked)
    await broker.compaction.check()


def offsets(part: Buffer) -> list[int]:
    return decode(part).offsets.tolist()


async def read(partition: Partition, encoding: Encoding) -> list[bytes]:
    """Read all, some kilobytes at a time."""
    found, offset = [], 0
    while offset < partition.readable_end():
        parts = [bytes(part) for part in await partition.read(offset, 30_000, encoding)]
        found += parts
        if isinstance(encoding, MessageSetMagic):
            return found  # Its batches have other headers, and some of them are enough.
        offset = [header.next_offset for _, header in walk(parts[-1])][-1]
    return found


@pytest.mark.parametrize("read_before", [False, True])
async def test_readers_of_each_encoding(
    broker: Broker, partition: Partition, read_before: bool
) -> None:
    if read_before:
        for encoding in ENCODINGS:
            before = await read(partition, encoding)
            if isinstance(encoding, Magic):
                assert len(list(chain(*map(offsets, before)))) == ROUNDS * KEYS
    await compact(broker)
    for encoding in ENCODINGS:
        after = await read(partition, encoding)
        if isinstance(encoding, Magic):
            assert list(chain(*map(offsets, after))) == [57, 58, 59], encoding
        else:
            assert sum(map(len, after)) < 4 * len(VALUE)


async def test_what_is_converted_meanwhile_is_not_kept(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert, begun, gate = conversion_cache.convert, asyncio.Event(), asyncio.Event()

    async def waiting(*what: object) -> object:
        begun.set()
        await gate.wait()
        return await convert(*what)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(conversion_cache, "convert", waiting)
        reading = asyncio.ensure_future(partition.read(0, 30_000, Magic.PULSAR))
        await begun.wait()
        await compact(broker)
        gate.set()
        assert offsets(b"".join(await reading))[0] == 0
    after = await read(partition, Magic.PULSAR)
    assert list(chain(*map(offsets, after))) == [57, 58, 59]


async def test_entries_that_were_read_ahead(broker: Broker, partition: Partition) -> None:
    skipped: list[tuple[int, int]] = []
    reader = EntryReader(partition, 0, Magic.PULSAR, skipped.extend)
    assert await reader.fill()
    first = reader.take()
    assert first is not None
    assert offsets(first.batch) == [0, 1, 2]
    await compact(broker)
    assert await reader.fill()
    rest = list(iter(reader.take, None))
    assert list(chain(*(offsets(entry.batch) for entry in rest))) == [57, 58, 59]
    assert max(end for _, end in skipped) == 57


async def test_entries_that_are_read_meanwhile(
    broker: Broker, partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = EntryReader(partition, 0, Magic.PULSAR, lambda *_: None)
    read, begun, gate = partition.read_on, asyncio.Event(), asyncio.Event()

    async def waiting(*what: Any) -> Taken:
        found = await read(*what)
        begun.set()
        await gate.wait()
        return found

    monkeypatch.setattr(partition, "read_on", waiting)
    filling = asyncio.ensure_future(reader.fill())
    await begun.wait()
    await compact(broker)
    gate.set()
    assert await filling
    entry = reader.take()
    assert entry is not None
    assert offsets(entry.batch) == [57, 58, 59]


def of_poll(polled: Polled | None) -> int:
    assert polled is not None
    return polled.messages


async def test_polls_that_were_kept(broker: Broker, partition: Partition) -> None:
    kept, restated = Kept(partition.memory), RestatedPolls(partition.memory)
    form = next(form for form in MessageForm if form is not MessageForm.BATCH)
    wanted = Wanted(0, KEYS)
    before = await poll(kept, partition, wanted)
    made = restate(before, form)
    restated.keep(partition, wanted, form, made)
    assert of_poll(poll_kept(kept, partition, Wanted(0, 2))) == 2
    assert restated.find(partition, wanted, form) is made
    await compact(broker)
    assert restated.find(partition, wanted, form) is None
    restated.keep(partition, wanted, form, made)
    assert restated.find(partition, wanted, form) is None, "it was read before"
    after = await poll(kept, partition, wanted)
    assert (after.messages, after.last_offset) == (3, 59)
