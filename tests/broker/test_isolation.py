"""Nobody who reads what is committed sees a message of an open or aborted transaction, whoever
wrote it and in which encoding; who reads all sees all. Random histories against a plain model.
"""

from __future__ import annotations

import random
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from faulty_files import FaultyFileSystem, Survival
from penstock import records
from penstock.broker.reading.entries import Entry, EntryReader
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.isolation import Isolation
from penstock.iggy.kept import Kept
from penstock.iggy.polling import Wanted, poll
from penstock.iggy.wire.batch import BATCH_HEADER_SIZE
from penstock.limits import ABORTED_TRANSACTIONS_READ
from penstock.log import Flusher, LogConfig
from penstock.log.errors import OffsetOutOfRangeError
from penstock.log.header import (
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_TRANSACTIONAL,
    Magic,
    walk,
)
from penstock.memory import Memory
from penstock.pulsar.positions import last_message_id
from penstock.pulsar.wire.message_ids import EARLIEST
from penstock.records.iggy.batch import stamp_iggy_batch
from penstock.records.kafka.control import is_commit
from stored_batches import (
    Record,
    chunk_batch,
    entry,
    iggy_batch,
    iggy_body,
    join,
    kafka_batch,
    metadata,
    pulsar_batch,
)
from transactional import as_part_of, end, open_partition

SOUND = LogConfig(segment_bytes=20_000, checkpoint_bytes=5_000)
TINY = LogConfig(segment_bytes=4_000, checkpoint_bytes=1_500)

Messages = list[tuple[int, bytes]]


@pytest.fixture
async def partition(flusher: Flusher, disk: FaultyFileSystem) -> AsyncIterator[Partition]:
    await records.prepare()
    opened = await open_partition(flusher, disk, config=SOUND)
    yield opened
    opened.close()


def made(magic: Magic, values: list[bytes], partition: Partition) -> bytes:
    """Return a batch of messages in one of the encodings, for the end of a partition."""
    found = [Record(value) for value in values]
    if magic is Magic.KAFKA:
        return kafka_batch(found)
    if magic is Magic.PULSAR:
        return pulsar_batch(entry(metadata(), values[0]))
    body = bytearray(iggy_body(found))
    stamp_iggy_batch(memoryview(body), 0, partition.end_offset, 1)
    return iggy_batch(bytes(body), count=len(values))


def write(
    partition: Partition, magic: Magic, values: list[bytes], producer_id: int | None = None
) -> int:
    batch = made(magic, values, partition)
    sent = bytearray(batch) if producer_id is None else as_part_of(batch, producer_id)
    return partition.append([sent])


class History:
    """What was done to a partition, and what readers are to see of it."""

    def __init__(self, partition: Partition, seed: int) -> None:
        self.partition = partition
        self._random = random.Random(seed)
        self._written: list[tuple[int, int | None, list[bytes]]] = []
        """Offset, number of the transaction if any, and values."""
        self._open: dict[int, int] = {}
        self._outcomes: list[bool | None] = []
        self._markers: list[int] = []

    def run(self, steps: int, magics: list[Magic]) -> None:
        for _ in range(steps):
            producer_id = self._random.randrange(6)
            choice = self._random.random()
            if choice < 0.35 and producer_id in self._open:
                self._end(producer_id, committed=self._random.random() < 0.5)
            else:
                self._write(None if choice > 0.85 else producer_id, self._random.choice(magics))

    def finish(self) -> None:
        """End what is open."""
        for producer_id in list(self._open):
            self._end(producer_id, committed=False)

    def _end(self, producer_id: int, *, committed: bool) -> None:
        number = self._open.pop(producer_id)
        self._outcomes[number] = committed
        self._markers[number] = end(self.partition, producer_id, committed=committed)

    def transactions(self) -> Iterator[tuple[set[int], int, bool]]:
        """Yield the offsets of each transaction that ended, its marker's, and how it ended."""
        for number, marker in enumerate(self._markers):
            offsets = {
                offset + at
                for offset, of, values in self._written
                if of == number
                for at in range(len(values))
            }
            yield offsets, marker, bool(self._outcomes[number])

    def committed(self) -> Messages:
        end = self.partition.readable_end()
        return [
            (offset + at, value)
            for offset, number, values in self._written
            for at, value in enumerate(values)
            if offset < end and (number is None or self._outcomes[number])
        ]

    def all(self) -> Messages:
        return [
            (offset + at, value)
            for offset, _, values in self._written
            for at, value in enumerate(values)
        ]

    def first_open(self) -> int:
        """Return the first offset of a transaction that is open, else the end."""
        open_numbers = set(self._open.values())
        offsets = [offset for offset, number, _ in self._written if number in open_numbers]
        return min(offsets, default=self.partition.end_offset)

    def _write(self, producer_id: int | None, magic: Magic) -> None:
        number = None
        if producer_id is not None:
            number = self._open.get(producer_id)
            if number is None:
                number = self._open[producer_id] = len(self._outcomes)
                self._outcomes.append(None)
                self._markers.append(-1)
        count = 1 if magic is Magic.PULSAR else self._random.randint(1, 3)
        values = [b"%d/%d" % (len(self._written), at) for at in range(count)]
        offset = write(self.partition, magic, values, producer_id)
        self._written.append((offset, number, values))


def messages_of(batches: bytes) -> Messages:
    columns = records.decode(batches)
    return [(int(offset), columns.value(row) or b"") for row, offset in enumerate(columns.offsets)]


async def kafka_sees(partition: Partition, isolation: Isolation, max_bytes: int) -> Messages:
    """Read as a client of Kafka does, which leaves aborted ones out by what the broker names."""
    found: Messages = []
    offset = partition.start_offset
    while offset < partition.readable_end(isolation):
        aborted = []
        if isolation is Isolation.READ_COMMITTED:
            aborted = partition.aborted(offset, partition.read_end(offset))
            assert aborted == sorted(aborted, key=lambda each: each.first_offset)
        parts = await partition.read(offset, max_bytes, Magic.KAFKA, isolation)
        found += _as_a_client(join(parts), [(each[1], each[0]) for each in aborted])
        *_, (_, last) = walk(parts[-1])
        assert last.next_offset > offset
        offset = last.next_offset
    return found


def _as_a_client(batches: bytes, named: list[tuple[int, int]]) -> Messages:
    """See org.apache.kafka.clients.consumer.internals.CompletedFetch."""
    found: Messages = []
    aborting: set[int] = set()
    for position, header in walk(batches):
        batch = batches[position : position + header.size]
        while named and named[0][0] <= header.last_offset:
            aborting.add(named.pop(0)[1])
        if header.attributes & ATTRIBUTE_CONTROL:
            if not is_commit(batch):
                aborting.discard(header.producer_id)
        elif not (header.attributes & ATTRIBUTE_TRANSACTIONAL and header.producer_id in aborting):
            found += messages_of(batch)
    return found


async def pulsar_sees(partition: Partition, max_bytes: int) -> Messages:
    found: Messages = []
    skipped: list[tuple[int, int]] = []
    reader = EntryReader(partition, 0, Magic.PULSAR, skipped.extend)
    seen: list[tuple[int, int]] = []
    while await reader.fill(max_bytes):
        while (taken := reader.take()) is not None:
            seen.append((taken.header.base_offset, taken.header.next_offset))
            if isinstance(taken, Entry):
                found += messages_of(bytes(taken.batch))
    assert reader.position == partition.readable_end()
    # Each offset was handed out or passed over, none was both: so subscriptions move on.
    expected = 0
    for start, until in sorted({*seen, *skipped}):
        assert start == expected
        expected = until
    assert expected == partition.readable_end()
    return found


async def iggy_sees(partition: Partition, count: int) -> list[bytes]:
    found: list[bytes] = []
    kept = Kept(Memory())
    offset = 0
    while True:
        polled = await poll(kept, partition, Wanted(offset, count))
        if not polled.messages:
            return found
        found += _payloads(b"".join(bytes(part) for part in polled.parts))  # type: ignore[arg-type]  # read
        offset = polled.last_offset + 1


def _payloads(batches: bytes) -> list[bytes]:
    found = []
    while batches:
        size = int.from_bytes(batches[32:40], "little")
        frames, batches = batches[BATCH_HEADER_SIZE:size], batches[size:]
        while frames:
            headers, payload = struct.unpack_from("<II", frames, 32)
            found.append(frames[48 : 48 + payload])
            frames = frames[48 + payload + headers :]
    return found


@pytest.mark.parametrize("magics", [[Magic.KAFKA], [Magic.PULSAR], [*Magic]], ids=str)
@pytest.mark.parametrize("seed", range(2))
async def test_readers_see_what_is_committed(
    partition: Partition, seed: int, magics: list[Magic]
) -> None:
    history = History(partition, seed)
    for _ in range(2):
        history.run(40, magics)
        await partition.flushed()
        assert partition.readable_end() == history.first_open()
        for max_bytes in (1, 700, 1 << 20):
            sees = await kafka_sees(partition, Isolation.READ_COMMITTED, max_bytes)
            assert sees == history.committed()
            sees = await kafka_sees(partition, Isolation.READ_UNCOMMITTED, max_bytes)
            assert sees == history.all()
            assert await pulsar_sees(partition, max_bytes) == history.committed()
        values = [value for _, value in history.committed()]
        for count in (1, 7, 1000):
            assert await iggy_sees(partition, count) == values


@pytest.mark.parametrize("seed", range(3))
async def test_a_crash_in_the_middle_changes_nothing(
    flusher: Flusher, disk: FaultyFileSystem, seed: int
) -> None:
    """Each of these starts has a checkpoint of its own age, and replays what came after it."""
    await records.prepare()
    history = History(await open_partition(flusher, disk, config=SOUND), seed)
    for epoch in range(1, 6):
        history.run(30, [Magic.KAFKA, Magic.PULSAR])
        await history.partition.flushed()
        crashed = disk.after_crash(Survival.NONE)
        history.partition.close()
        disk = crashed
        partition = history.partition = await open_partition(flusher, disk, epoch, config=SOUND)
        assert partition.readable_end() == history.first_open()
        sees = await kafka_sees(partition, Isolation.READ_COMMITTED, 700)
        assert sees == history.committed()
    history.partition.close()


@pytest.mark.parametrize("survival", [*Survival], ids=lambda each: each.name)
async def test_a_transaction_is_whole_or_absent_wherever_a_crash_comes(
    flusher: Flusher, disk: FaultyFileSystem, survival: Survival
) -> None:
    """Each operation on the disk is a crash point: batches, markers, checkpoints, new segments."""
    await records.prepare()
    crashed: list[tuple[int, FaultyFileSystem]] = []
    history = History(await open_partition(flusher, disk, config=TINY), seed=4)

    def hook(operation: str, _path: Path) -> None:
        if operation in {"pwritev", "fdatasync", "rename", "open"}:
            crashed.append((acknowledged, disk.after_crash(survival, seed=len(crashed))))

    acknowledged = 0
    disk.hook = hook
    for _ in range(25):
        history.run(5, [Magic.KAFKA])
        end_offset = history.partition.end_offset
        await history.partition.flushed()
        acknowledged = end_offset
    history.finish()
    await history.partition.flushed()
    disk.hook = None
    history.partition.close()
    assert len(crashed) > 60
    for acknowledged_then, left in crashed[::3]:
        partition = await open_partition(flusher, left, 1, config=TINY)
        assert partition.end_offset >= acknowledged_then
        seen = {offset for offset, _ in await kafka_sees(partition, Isolation.READ_COMMITTED, 4000)}
        for offsets, last, committed in history.transactions():
            is_there = committed and last < partition.readable_end()
            assert not is_there or offsets <= seen
            assert committed or not offsets & seen
            # One whose marker did not survive is open, and nothing of it is seen.
            assert last < partition.end_offset or not offsets & seen
        partition.close()


async def test_chunks_of_an_aborted_transaction_are_no_message(partition: Partition) -> None:
    parts = [b"one ", b"message"]
    for producer_id, uuid in ((1, "a"), (2, "b")):
        for number in range(2):
            batch = chunk_batch(parts, number, uuid)
            partition.append([as_part_of(batch, producer_id)])
    end(partition, 1, committed=False)
    end(partition, 2, committed=True)
    await partition.flushed()
    whole = b"one message"
    assert await kafka_sees(partition, Isolation.READ_COMMITTED, 1 << 20) == [(3, whole)]
    assert await kafka_sees(partition, Isolation.READ_UNCOMMITTED, 1 << 20) == [
        (1, whole),
        (3, whole),
    ]
    assert await iggy_sees(partition, 10) == [whole]


async def test_the_last_message_of_a_pulsar_topic_is_a_committed_one(
    partition: Partition,
) -> None:
    assert (await last_message_id(partition)).entryId == EARLIEST
    write(partition, Magic.PULSAR, [b"aborted"], 1)
    end(partition, 1, committed=False)
    await partition.flushed()
    assert (await last_message_id(partition)).entryId == EARLIEST
    write(partition, Magic.PULSAR, [b"committed"], 1)
    end(partition, 1, committed=True)
    write(partition, Magic.KAFKA, [b"aborted"], 1)
    write(partition, Magic.PULSAR, [b"aborted"], 2)
    end(partition, 2, committed=False)
    end(partition, 1, committed=False)
    write(partition, Magic.PULSAR, [b"open"], 1)
    await partition.flushed()
    assert (await last_message_id(partition)).entryId == 2


async def test_a_reader_hears_of_few_aborted_transactions_at_once(
    partition: Partition,
) -> None:
    count = ABORTED_TRANSACTIONS_READ + 500
    for producer_id in range(count):
        write(partition, Magic.KAFKA, [b"aborted"], producer_id)
        end(partition, producer_id, committed=False)
    write(partition, Magic.KAFKA, [b"seen"])
    await partition.flushed()
    named = partition.aborted(0, partition.read_end(0))
    assert len(named) == ABORTED_TRANSACTIONS_READ
    assert await kafka_sees(partition, Isolation.READ_COMMITTED, 1 << 20) == [(2 * count, b"seen")]
    assert await pulsar_sees(partition, 1 << 20) == [(2 * count, b"seen")]


async def test_what_is_given_up_holds_nobody_back(partition: Partition) -> None:
    write(partition, Magic.KAFKA, [b"open"], 1)
    write(partition, Magic.KAFKA, [b"seen"])
    await partition.flushed()
    assert partition.readable_end() == 0
    await partition.trim(1)
    assert partition.readable_end() == 1
    end(partition, 1, committed=False)
    await partition.flushed()
    assert await kafka_sees(partition, Isolation.READ_COMMITTED, 1 << 20) == [(1, b"seen")]


async def test_nobody_knows_what_was_aborted_where_it_was_given_up_meanwhile(
    partition: Partition,
) -> None:
    write(partition, Magic.PULSAR, [b"aborted"], 1)
    end(partition, 1, committed=False)
    await partition.flushed()
    found = await partition.read_on(0, 1 << 20, Magic.PULSAR)
    await partition.trim(2)
    for knows in (partition.named_in, partition.committed_in):
        with pytest.raises(OffsetOutOfRangeError):
            knows(0, found.next_offset)


async def test_markers_make_nobody_convert_what_its_own_clients_wrote(partition: Partition) -> None:
    for value in (b"one", b"two"):
        write(partition, Magic.PULSAR, [value], 1)
        end(partition, 1, committed=True)
    await partition.flushed()
    stored = await partition.read_stored(0, 1 << 20)
    assert join(await partition.read(0, 1 << 20, Magic.PULSAR)) == join(stored.parts)
    assert await pulsar_sees(partition, 1 << 20) == [(0, b"one"), (2, b"two")]
