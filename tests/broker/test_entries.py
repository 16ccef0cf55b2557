"""Reading ahead: order, gaps, and what can't be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partition_logs import log_of
from penstock.broker.broker import Broker
from penstock.broker.reading import visible
from penstock.broker.reading.entries import EntryReader
from penstock.broker.reading.unseen import Unseen
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.log import OffsetOutOfRangeError
from penstock.log.header import ATTRIBUTE_CONTROL, Magic, build_header
from penstock.memory import Memory
from penstock.records.pulsar.entry import ChecksumMismatchError, read_entry
from receivers import message_batch


@pytest.fixture
async def partition(tmp_path: Path) -> AsyncIterator[Partition]:
    broker = await Broker.open(tmp_path, BrokerSettings())
    topic = await broker.topics.create(TopicName("public", "default", "t"), 1)
    yield topic.partition(0)
    await broker.close()


def foreign(body: bytes, count: int = 1, attributes: int = 0) -> list[bytearray | bytes]:
    header = build_header(
        Magic.KAFKA,
        body,
        record_count=count,
        base_timestamp=0,
        max_timestamp=0,
        attributes=attributes,
    )
    return [header, body]


def reader_of(partition: Any, position: int = 0) -> tuple[EntryReader, list[tuple[int, int]]]:
    skipped: list[tuple[int, int]] = []
    return EntryReader(partition, position, Magic.PULSAR, skipped.extend), skipped


async def taken(reader: EntryReader, max_bytes: int = 1 << 20) -> list[int]:
    offsets = []
    while await reader.fill(max_bytes):
        while (entry := reader.take()) is not None:
            offsets.append(entry.header.base_offset)
    return offsets


@pytest.mark.parametrize("max_bytes", [1, 200, 1 << 20])
async def test_batches_come_in_order_from_the_one_around_the_position(
    partition: Partition, max_bytes: int
) -> None:
    for count in (3, 1, 5):
        partition.append(message_batch(count))
    await partition.flushed()
    reader, skipped = reader_of(partition, position=2)
    assert await taken(reader, max_bytes) == [0, 3, 4]
    assert (reader.position, skipped) == (9, [])
    assert not await reader.fill()
    partition.append(message_batch())
    await partition.flushed()
    assert await taken(reader) == [9]


async def test_the_body_is_a_view_of_what_was_read(partition: Partition) -> None:
    partition.append(message_batch(body=b"the body"))
    await partition.flushed()
    reader, _ = reader_of(partition)
    await reader.fill()
    entry = reader.take()
    assert entry is not None
    assert entry.body == b"the body"
    assert entry.body.obj is entry.batch.obj


async def test_a_rewind_begins_anew_even_while_a_read_is_on_its_way(partition: Partition) -> None:
    partition.append(message_batch(2))
    partition.append(message_batch(2))
    await partition.flushed()
    reader, _ = reader_of(partition)
    read = partition.read_on

    async def interrupted(*arguments: Any) -> Any:
        buffers = await read(*arguments)
        partition.read_on = read  # type: ignore[method-assign]
        reader.rewind(2)
        return buffers

    partition.read_on = interrupted  # type: ignore[method-assign]
    assert await taken(reader) == [2]


async def test_damage_costs_its_own_batch_only(partition: Partition) -> None:
    for _ in range(3):
        partition.append(message_batch(2))
    await partition.flushed()
    await partition.flushed()
    (segment,) = log_of(partition).directory.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    reader, skipped = reader_of(partition)
    assert await taken(reader) == [0, 2, 4]
    assert skipped == []


async def test_a_damaged_batch_fails_the_checksum_of_whoever_gets_it(partition: Partition) -> None:
    partition.append(foreign(b"no record at all", 3))
    await partition.flushed()
    reader, _ = reader_of(partition)
    await reader.fill()
    entry = reader.take()
    assert entry is not None
    assert (entry.header.base_offset, entry.header.next_offset) == (0, 3)
    assert entry.header.record_count == 1, "a client returns one permit for what it drops"
    with pytest.raises(ChecksumMismatchError):
        read_entry(entry.body)


async def test_a_foreign_batch_that_can_not_be_read_is_damaged_alone(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.append(message_batch(2))
    partition.append(foreign(b"no record at all", 3))
    partition.append(message_batch(1))
    await partition.flushed()
    reader, skipped = reader_of(partition)
    assert await taken(reader) == [0, 2, 5]
    assert skipped == []
    assert "messages 2 to 4 are damaged" in caplog.text


async def test_what_holds_no_messages_is_skipped_at_the_end_too(partition: Partition) -> None:
    control = foreign(bytes.fromhex("0c000000080000000000"), attributes=ATTRIBUTE_CONTROL)
    partition.append(message_batch(1))
    partition.append(control)
    partition.append(message_batch(1))
    partition.append(list(map(bytearray, control)))
    await partition.flushed()
    reader, skipped = reader_of(partition)
    assert await taken(reader) == [0, 2]
    assert skipped == [(1, 2), (3, 4)]
    assert reader.position == 4


async def test_others_run_while_many_markers_are_passed(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible, "SEEN_TOGETHER", 2)
    control = foreign(bytes.fromhex("0c000000080000000000"), attributes=ATTRIBUTE_CONTROL)
    for _ in range(20):
        partition.append(list(map(bytearray, control)))
    partition.append(message_batch())
    await partition.flushed()
    reader, skipped = reader_of(partition)
    filling = asyncio.ensure_future(reader.fill())
    turns = 0
    while not filling.done():
        turns += 1
        await asyncio.sleep(0)
    assert await filling
    assert turns >= 10
    assert (reader.position, skipped) == (20, [(0, 20)])


async def test_a_rewind_among_markers_begins_anew(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible, "SEEN_TOGETHER", 2)
    control = foreign(bytes.fromhex("0c000000080000000000"), attributes=ATTRIBUTE_CONTROL)
    partition.append(message_batch())
    for _ in range(8):
        partition.append(list(map(bytearray, control)))
    partition.append(message_batch())
    await partition.flushed()
    reader, skipped = reader_of(partition, position=1)
    filling = asyncio.ensure_future(reader.fill())
    for _ in range(2):
        await asyncio.sleep(0)
    assert not filling.done()
    reader.rewind(0)
    assert await filling
    assert (reader.position, skipped) == (0, [])
    assert await taken(reader) == [0, 9]
    assert skipped == [(1, 9)]


async def test_a_reader_stands_at_the_message_that_it_found(partition: Partition) -> None:
    control = foreign(bytes.fromhex("0c000000080000000000"), attributes=ATTRIBUTE_CONTROL)
    partition.append(control)
    partition.append(message_batch(3))
    await partition.flushed()
    reader, skipped = reader_of(partition)
    assert await reader.fill()
    assert (reader.position, skipped) == (1, [(0, 1)])
    reader.rewind(2)
    assert await reader.fill()
    assert reader.position == 2


async def test_what_fell_to_retention_is_skipped() -> None:
    async def read(offset: int, *_: object) -> list[bytes]:
        raise OffsetOutOfRangeError(offset, 7, 7)

    memory = Memory()
    stub = SimpleNamespace(
        start_offset=7,
        readable_end=lambda: 7,
        bytes_from=lambda offset: 100,
        deleted=False,
        edition=(0, 0),
        read_on=read,
        memory=memory,
        unseen=Unseen(memory.producers),
    )
    reader, skipped = reader_of(stub)
    assert await taken(reader) == []
    assert skipped == [(0, 7)]


async def test_a_deleted_partition_has_nothing(partition: Partition) -> None:
    partition.append(message_batch())
    await partition.flushed()
    reader, _ = reader_of(partition)
    partition.deleted = True
    partition.forget()
    assert not await reader.fill()
