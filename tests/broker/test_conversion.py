"""Which conversions the event loop does itself, and how many run beside it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from cramjam import zstd

from patience import PATIENCE_SECONDS, until
from penstock import limits, records
from penstock.broker.reading import conversion
from penstock.limits import (
    CHUNK_RUNS,
    CONVERSION_THREADS,
    CONVERTED_AT_ONCE_BATCHES,
    CONVERTED_AT_ONCE_BYTES,
    CONVERTED_AT_ONCE_RECORDS,
)
from penstock.log.header import HEADER_SIZE, BatchHeader, Magic, set_transaction, stamp, walk
from penstock.memory import Memory, MemoryShortError
from penstock.records import MalformedBatchError, Wanted, join_in_steps
from penstock.records.pulsar.metadata_pb2 import SingleMessageMetadata
from penstock.session import Buffer
from stored_batches import (
    Record,
    at_offset,
    batched,
    chunk_batch,
    entry,
    kafka_batch,
    metadata,
    pulsar_batch,
)

LOG: Any = None
"""Nothing here is read from a log."""
HELD = Memory().reading()
MIB = 1 << 20


def zstd_entry() -> bytes:
    payload = batched([(SingleMessageMetadata(), bytes(1000))])
    fields = {"compression": 3, "uncompressed_size": len(payload), "num_messages_in_batch": 1}
    return pulsar_batch(entry(metadata(**fields), bytes(zstd.compress(payload))))


SMALL = {
    "one record": kafka_batch([Record(b"v")]),
    "many bytes": kafka_batch([Record(bytes(CONVERTED_AT_ONCE_BYTES - 200))]),
    "an entry": pulsar_batch(entry(metadata(), b"v")),
}
LARGE = {
    "compressed": kafka_batch([Record(b"v")], codec=4),
    "a compressed entry": zstd_entry(),
    "more bytes": kafka_batch([Record(bytes(CONVERTED_AT_ONCE_BYTES))]),
    "more records": kafka_batch([Record(None)] * (CONVERTED_AT_ONCE_RECORDS + 1)),
    "more batches": b"".join(
        at_offset(kafka_batch([Record(None)]), offset)
        for offset in range(CONVERTED_AT_ONCE_BATCHES + 1)
    ),
}


@pytest.fixture
def converting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that conversions run in."""
    names: list[str] = []
    convert = records.convert

    def watched(batches: memoryview, target: Magic) -> object:
        names.append(threading.current_thread().name)
        return convert(batches, target)

    monkeypatch.setattr(records, "convert", watched)
    return names


@pytest.mark.parametrize("stored", SMALL.values(), ids=SMALL)
async def test_what_is_small_is_converted_at_once(stored: bytes, converting: list[str]) -> None:
    assert await conversion.convert(LOG, memoryview(stored), Magic.IGGY, HELD)
    assert converting == [threading.main_thread().name]


@pytest.mark.parametrize("stored", LARGE.values(), ids=LARGE)
async def test_what_may_be_large_inside_is_converted_beside_the_loop(
    stored: bytes, converting: list[str]
) -> None:
    target = Magic.PULSAR if stored[16] != Magic.PULSAR else Magic.IGGY
    assert await conversion.convert(LOG, memoryview(stored), target, HELD)
    assert len(converting) == 1
    assert converting[0].startswith("conversion")


async def test_few_conversions_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    running = most = 0
    lock = threading.Lock()
    together = threading.Barrier(CONVERSION_THREADS)

    def slow(_pieces: object, _target: Magic) -> list[bytes]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(PATIENCE_SECONDS)
        with lock:
            running -= 1
        return [b"converted"]

    await records.prepare()
    monkeypatch.setattr(conversion, "_convert", slow)
    stored = memoryview(LARGE["compressed"])
    waiting = [conversion.convert(LOG, stored, Magic.PULSAR, Memory().reading()) for _ in range(10)]
    assert len(waiting) % CONVERSION_THREADS == 0
    await asyncio.gather(*waiting)
    assert most == CONVERSION_THREADS


@pytest.fixture
def reserved(monkeypatch: pytest.MonkeyPatch) -> tuple[Memory, list[int]]:
    """A budget, and what readers had reserved of it whenever a conversion ran."""
    budget, sizes = Memory(256 * MIB), []

    def convert(_pieces: object, _target: Magic) -> list[bytes]:
        time.sleep(0.02)
        sizes.append(budget.reads.used)
        return [b"converted"]

    monkeypatch.setattr(conversion, "_convert", convert)
    return budget, sizes


async def convert_together(budget: Memory, stored: bytes, count: int) -> None:
    async def one() -> None:
        with budget.reading() as held:
            await conversion.convert(LOG, memoryview(stored), Magic.PULSAR, held)

    await records.prepare()
    await asyncio.gather(*[one() for _ in range(count)])
    assert budget.reads.used == 0


async def test_what_inflates_is_reserved_before_it_begins(
    reserved: tuple[Memory, list[int]],
) -> None:
    budget, sizes = reserved
    bomb = zstd_batch(60 * MIB)
    assert len(bomb) < MIB // 16
    await convert_together(budget, bomb, 4)
    assert len(sizes) == 4
    assert 120 * MIB <= min(sizes) <= max(sizes) < 256 * MIB, "one after the other"


async def test_one_conversion_goes_beyond_the_budget_at_a_time(
    reserved: tuple[Memory, list[int]],
) -> None:
    budget, sizes = reserved
    budget.answers.take(150 * MIB)
    await convert_together(budget, zstd_batch(60 * MIB), 3)
    assert len(sizes) == 3
    assert max(sizes) < 130 * MIB


async def test_where_memory_stays_short_a_conversion_is_given_up(
    reserved: tuple[Memory, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RESERVED_SECONDS", 0.05)
    budget, sizes = reserved
    budget.answers.take(budget.budget)
    with pytest.raises(MemoryShortError):
        await convert_together(budget, zstd_batch(60 * MIB), 1)
    assert sizes == []
    assert budget.reads.used == 0


async def test_what_a_thread_works_on_is_held_until_its_end_though_nobody_waits(
    reserved: tuple[Memory, list[int]],
) -> None:
    budget, sizes = reserved
    converting = asyncio.ensure_future(convert_together(budget, zstd_batch(60 * MIB), 1))
    await until(lambda: budget.reads.used > 0)
    converting.cancel()
    await asyncio.gather(converting, return_exceptions=True)
    await until(lambda: not budget.reads.used)
    assert [size >= 120 * MIB for size in sizes] == [True]


async def test_a_body_that_can_not_be_read_leaves_nothing_inflated_behind() -> None:
    gc.disable()
    tracemalloc.start()
    try:
        with pytest.raises(MalformedBatchError) as kept:
            await conversion.convert(LOG, memoryview(zstd_batch(60 * MIB)), Magic.PULSAR, HELD)
        assert tracemalloc.get_traced_memory()[0] < MIB, kept
    finally:
        tracemalloc.stop()
        gc.enable()


def zstd_batch(size: int) -> bytes:
    """A small batch of Kafka that inflates to so much."""
    plain = kafka_batch([Record(b"v")])
    body = bytes(zstd.compress(bytes(size)))
    batch = bytearray(plain[:HEADER_SIZE] + body)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] |= 4
    return bytes(batch)


def test_last_chunks_of_nothing_are_not_looked_for_without_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lie = chunk_batch([b"", b"x"], 1)
    run = b"".join(at_offset(lie, 1_000_000 + index) for index in range(500))
    earlier = at_offset(kafka_batch([Record(b"v")]), 0)
    joining = join_in_steps(memoryview(run))
    asked, step = 0, next(joining, None)
    while isinstance(step, Wanted):
        asked += 1
        try:
            step = joining.send(earlier)
        except StopIteration:
            break
    assert asked <= CHUNK_RUNS
    assert len(caplog.messages) == 2
    assert "499 messages behind it" in caplog.messages[1]


@pytest.mark.parametrize("epochs", [(4, 4, 4, 4), (0, 3, 3, 5)])
@pytest.mark.parametrize("target", [Magic.KAFKA, Magic.PULSAR, Magic.IGGY])
async def test_batches_keep_their_leader_epochs(target: Magic, epochs: tuple[int, ...]) -> None:
    """A Kafka consumer that saw an older epoch reads again from its end after every restart."""
    stored = b""
    for offset, epoch in enumerate(epochs):
        of_kafka = kafka_batch([Record(b"value")], offset)
        of_pulsar = pulsar_batch(entry(metadata(), b"value"), offset)
        batch = bytearray(of_kafka if offset % 2 else of_pulsar)
        stamp(batch, offset, epoch)
        stored += batch
    converted = await conversion.convert(LOG, memoryview(stored), target, HELD)
    found = epochs_of(converted)
    assert found.keys() == set(range(len(epochs)))
    if target is Magic.KAFKA:
        assert found == dict(enumerate(epochs))


def epochs_of(batches: Sequence[Buffer]) -> dict[int, int]:
    """The leader epoch that each offset is said to be of."""
    return {
        offset: header.leader_epoch
        for part in batches
        for _, header in walk(part)
        for offset in range(header.base_offset, header.last_offset + 1)
    }


@pytest.mark.parametrize("target", [Magic.KAFKA, Magic.PULSAR, Magic.IGGY])
async def test_many_small_batches_are_looked_at_a_few_times_each(
    target: Magic, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 400
    stored = b""
    for offset in range(count):
        of_kafka = bytearray(kafka_batch([Record(b"value")], offset))
        set_transaction(memoryview(of_kafka), 7, 0)
        of_pulsar = pulsar_batch(entry(metadata(), b"value"), offset)
        batch = bytearray(of_kafka if offset % 2 else of_pulsar)
        stamp(batch, offset, 3)
        stored += batch
    looked_at = 0

    def counted(batches: Buffer) -> Iterator[tuple[int, BatchHeader]]:
        nonlocal looked_at
        for each in walk(batches):
            looked_at += 1
            yield each

    monkeypatch.setattr(conversion, "walk", counted)
    converted = await conversion.convert(LOG, memoryview(stored), target, HELD)
    assert len(epochs_of(converted)) == count
    assert looked_at < 10 * count, "not as often as there are others"
