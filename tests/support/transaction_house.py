"""A coordinator over a database in memory and over partitions that are lists.

The database and the partitions outlive a crash. What a crash may come between is counted: each
write of the database, and each batch of a partition.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple, TypeAlias

from penstock.broker.errors import BrokerError
from penstock.broker.groups.offsets import CommittedOffset, CommittedOffsets, OffsetOwner
from penstock.broker.groups.pending_offsets import PendingOffsets
from penstock.broker.producers.ids import ProducerIds
from penstock.broker.transactions.coordinator import Coordinator
from penstock.broker.transactions.epochs import Epochs
from penstock.broker.transactions.markers import Markers
from penstock.broker.transactions.settings import TransactionSettings
from penstock.broker.transactions.states import Producer
from penstock.broker.transactions.store import TransactionStore
from penstock.log.errors import LogFailedError
from penstock.log.interface import Outcome
from penstock.memory import Memory
from penstock.metadata.database import Row
from penstock.metadata.epochs import EpochRepository
from penstock.metadata.errors import MetadataError
from penstock.metadata.migrations import migrate
from penstock.metadata.offsets import OffsetRepository
from penstock.metadata.pending_offsets import PendingOffsetRepository
from penstock.metadata.properties import PropertyRepository
from penstock.metadata.sqlite import SqliteDatabase
from penstock.metadata.statements import Statement
from penstock.metadata.store import Change, MetadataStore
from penstock.metadata.transactions import TransactionRepository

PARTITIONS = range(1, 5)
GROUP = OffsetOwner("kafka", "readers")
NAME = "group:readers"
TIMEOUT_MS = 60_000
COORDINATOR_EPOCH = 7


class Data(NamedTuple):
    """A batch of a transaction."""

    producer_id: int
    epoch: int
    value: int


class Marker(NamedTuple):
    """A control batch."""

    producer_id: int
    epoch: int
    committed: bool


Entry: TypeAlias = Data | Marker


class FakePartition:
    """A log without bytes; while it is broken it takes nothing."""

    is_open = True
    start_offset = 0

    def __init__(self, house: House, number: int) -> None:
        self.id = number
        self.name = f"orders-{number}"
        self.entries: list[Entry] = []
        self.broken = False
        self.failure: LogFailedError | None = None
        self._house = house

    @property
    def end_offset(self) -> int:
        return len(self.entries)

    async def opened(self) -> None:
        raise AssertionError("it is open")

    def durable(self, _offset: int) -> Outcome:
        return Outcome.known(self.failure)

    def end_transaction(
        self, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
    ) -> int:
        assert coordinator_epoch == COORDINATOR_EPOCH
        return self.append(Marker(producer_id, producer_epoch, committed))

    def append(self, entry: Entry) -> int:
        if self.broken or self._house.step():
            raise LogFailedError("the disk is gone")
        self.entries.append(entry)
        return len(self.entries) - 1

    def visible(self) -> list[int]:
        """The values that a reader sees who reads what is committed."""
        seen: list[int] = []
        for at, entry in enumerate(self.entries):
            if isinstance(entry, Data):
                ends = (
                    later.committed
                    for later in self.entries[at:]
                    if isinstance(later, Marker) and later.producer_id == entry.producer_id
                )
                if next(ends, False):
                    seen.append(entry.value)
        return seen


class CountingStore(MetadataStore):
    """Freezes where a crash comes: nobody hears of what was asked for then, or after it."""

    house: House

    async def write(self, *changes: Change) -> list[Row]:
        if self.house.step():
            await asyncio.Future()
        if self.house.database_fails:
            raise MetadataError("no space is left")
        return await super().write(*changes)


class House:
    """All that one node has. `crash_at`: at so many steps from the start it is frozen."""

    def __init__(self) -> None:
        self.partitions = {each: FakePartition(self, each) for each in PARTITIONS}
        self.now_ms = 1_000_000
        self.memory = Memory()
        self.settings = TransactionSettings()
        self.crash_at: int | None = None
        self.steps = 0
        self.frozen = asyncio.Event()
        self.database_fails = False
        self.database = SqliteDatabase(Path(":memory:"))
        migrate(self.database, "memory")
        topic = """INSERT INTO "topics" VALUES ('t', 'public', 'default', 'orders', 'orders', 1,
            0, '{}', 0)"""
        self.database.execute(Statement("", topic))
        for each in PARTITIONS:
            self.database.execute(
                Statement("", f"""INSERT INTO "partitions" VALUES ({each}, 't', {each})""")
            )

    def step(self) -> bool:
        """Count a step; whether the crash has come."""
        self.steps += 1
        if self.crash_at is not None and self.steps > self.crash_at:
            self.frozen.set()
        return self.frozen.is_set()

    def start(self) -> None:
        """Open the coordinator over what the last one left."""
        self.frozen = asyncio.Event()
        self.crash_at = None
        self.store = store = CountingStore(self.database)
        store.house = self
        self.offsets = CommittedOffsets(OffsetRepository(store), self.has_partition, self.memory)
        self.pending = PendingOffsets(
            PendingOffsetRepository(store), self.offsets, self.has_partition, self.memory
        )
        self.rows = TransactionStore(TransactionRepository(store))
        self.coordinator = Coordinator(
            self.rows,
            Markers(self.partitions.get, COORDINATOR_EPOCH),
            ProducerIds(PropertyRepository(store)),
            self.has_partition,
            self.settings,
            self.memory,
            lambda: self.now_ms,
        )
        self.coordinator.add_participant(self.pending)
        self.epochs = Epochs(
            EpochRepository(store), self.coordinator, self.memory, lambda: self.now_ms
        )
        self.pending.load()
        self.coordinator.load()

    def has_partition(self, partition_id: int) -> bool:
        return partition_id in self.partitions

    async def restart(self) -> None:
        """End without a word, and start again."""
        self.frozen.set()
        await self._abandon()
        self.start()
        await self.coordinator.loaded()

    async def settled(self) -> None:
        """Return when nothing is half done, whoever has left."""
        self.now_ms += 2 * self.settings.max_timeout_ms
        await self.restart()
        async with asyncio.timeout(30):
            while any(row.state.startswith("Prepare") for row in self.coordinator.all().values()):
                await asyncio.sleep(0)
            await self.coordinator.check_times()

    async def close(self) -> None:
        self.frozen.set()
        await self._abandon()
        self.store.close_now()

    async def _abandon(self) -> None:
        """End all tasks and timers, as a kill does; a commit that has begun ends."""
        while self.store._committing is not None:
            await self.store._committing
        timers = [self.coordinator._next_check, self.rows._timer]
        for timer in [*timers, *self.coordinator._endings._retries.values()]:
            if timer is not None:
                timer.cancel()
        current = asyncio.current_task()
        left = [task for task in asyncio.all_tasks() if task is not current]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def write(self, producer: Producer, partition_id: int, value: int) -> None:
        """Write as a partition does. Raises BrokerError and LogError."""
        self.coordinator.verify(producer.id, producer.epoch, partition_id)
        self.partitions[partition_id].append(Data(*producer, value))

    async def commit_offset(self, name: str, producer: Producer, partition: int, at: int) -> None:
        """Commit an offset of the group in a transaction."""
        offsets = {partition: self._offset(at)}
        await self.coordinator.add_name(
            name,
            producer,
            NAME,
            lambda: self.pending.rows(producer.id, GROUP, offsets),
            lambda: self.pending.put(producer.id, GROUP, offsets),
        )

    async def commit_offset_at_once(self, partition: int, at: int) -> None:
        """Commit an offset of the group outside of any transaction."""
        await self.offsets.commit(GROUP, {partition: self._offset(at)})

    def _offset(self, at: int) -> CommittedOffset:
        return CommittedOffset(at, committed_at_ms=self.offsets.next_time_ms())

    def committed(self, partition_id: int) -> int | None:
        """The offset of the group, if it has one."""
        found = self.offsets.get(GROUP, partition_id)
        return None if found is None else found.offset


async def refused(work: object) -> type[BaseException] | None:
    """Return what kind of refusal something ends with."""
    try:
        await work  # type: ignore[misc]  # whatever it is
    except (BrokerError, MetadataError, LogFailedError) as error:
        return type(error)
    return None
