"""What a partition makes of transactions: markers, last stable offset, aborted ones, refusals."""

from __future__ import annotations

import errno
from array import array
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_files import FaultyFileSystem, failing
from penstock.broker.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TooManyProducersError,
)
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.aborted import AbortedTransactions
from penstock.broker.transactions.aborted_stretch import AbortedTransaction
from penstock.broker.transactions.isolation import Isolation
from penstock.broker.transactions.on_partition import PartitionTransactions
from penstock.broker.transactions.verification import Verification
from penstock.log import Flusher, LogWriteError
from penstock.log.header import HEADER_SIZE, Magic, checksum_matches, read_header
from penstock.memory import Memory
from penstock.records.kafka.control import end_marker, is_commit
from transactional import batch, end, open_partition, write, write_outside

COMMITTED = Isolation.READ_COMMITTED
UNCOMMITTED = Isolation.READ_UNCOMMITTED


@pytest.fixture
async def partition(flusher: Flusher, disk: FaultyFileSystem) -> AsyncIterator[Partition]:
    opened = await open_partition(flusher, disk)
    yield opened
    opened.close()


def ends(partition: Partition) -> tuple[int, int]:
    """How far those see who read what is committed, and those who read all."""
    return partition.readable_end(COMMITTED), partition.readable_end(UNCOMMITTED)


# Markers


def test_a_marker_is_the_control_batch_that_kafka_writes() -> None:
    marker = end_marker(7, 3, committed=True, coordinator_epoch=5)
    header = read_header(marker)
    # EndTransactionMarker and ControlRecordType: version and type, version and coordinator epoch.
    assert marker[HEADER_SIZE:].hex(" ") == "20 00 00 00 08 00 00 00 01 0c 00 00 00 00 00 05 00"
    assert (header.attributes, header.producer_id, header.producer_epoch) == (0x30, 7, 3)
    assert (header.base_sequence, header.record_count, header.magic) == (-1, 1, Magic.KAFKA)
    assert header.size == len(marker) == 78
    assert checksum_matches(marker)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_says_how_its_transaction_ended(committed: bool) -> None:
    assert is_commit(end_marker(7, 3, committed=committed, coordinator_epoch=5)) is committed


# The last stable offset


async def test_what_is_committed_ends_at_the_first_open_transaction(partition: Partition) -> None:
    write_outside(partition, 2)
    write(partition, 1)
    write_outside(partition)
    write(partition, 2, 3)
    await partition.flushed()
    assert ends(partition) == (2, 7)
    end(partition, 1, committed=True)
    await partition.flushed()
    assert ends(partition) == (4, 8)
    end(partition, 2, committed=False)
    await partition.flushed()
    assert ends(partition) == (9, 9)


async def test_a_transaction_is_open_until_its_marker_is_safe(
    partition: Partition, disk: FaultyFileSystem
) -> None:
    write(partition, 1)
    await partition.flushed()
    end(partition, 1, committed=True)
    assert ends(partition) == (0, 1)
    await partition.flushed()
    assert ends(partition) == (2, 2)


async def test_what_ended_takes_no_memory_though_nobody_reads(partition: Partition) -> None:
    for number in range(20):
        write(partition, 1)
        end(partition, 1, committed=number % 2 == 0)
        await partition.flushed()
        assert not partition.transactions.ended
    assert len(partition.aborted(0, 40)) == 10


async def test_the_next_transaction_of_a_producer_is_another_one(partition: Partition) -> None:
    write(partition, 1)
    end(partition, 1, committed=False)
    write(partition, 1)
    await partition.flushed()
    assert ends(partition) == (2, 3)
    assert partition.aborted(0, 2) == [AbortedTransaction(1, 0, 1)]
    end(partition, 1, committed=True)
    await partition.flushed()
    assert partition.aborted(0, 4) == [AbortedTransaction(1, 0, 1)]


async def test_listeners_are_called_when_a_transaction_ends(partition: Partition) -> None:
    seen: list[int] = []
    write(partition, 1)
    await partition.flushed()
    partition.add_listener(lambda: seen.append(partition.readable_end(COMMITTED)))
    await partition.durable(end(partition, 1, committed=True))
    assert seen == [2]


async def test_a_marker_without_a_transaction_is_written_and_means_nothing(
    partition: Partition,
) -> None:
    assert end(partition, 9, committed=False) == 0
    await partition.flushed()
    assert ends(partition) == (1, 1)
    assert partition.aborted(0, 1) == []


async def test_a_marker_that_could_not_be_written_leaves_the_transaction_open(
    partition: Partition, disk: FaultyFileSystem
) -> None:
    write(partition, 1)
    write(partition, 2)
    await partition.flushed()
    disk.hook = failing(1, "pwritev", error=errno.ENOSPC)
    marker = end(partition, 1, committed=False)
    write(partition, 3)
    with pytest.raises(LogWriteError):
        await partition.durable(marker)
    assert ends(partition) == (0, 2)
    assert list(partition.transactions.open) == [1, 2]
    disk.hook = None
    end(partition, 1, committed=False)
    await partition.flushed()
    assert ends(partition) == (1, 3)
    assert partition.aborted(0, 1) == [AbortedTransaction(1, 0, 2)]


# Aborted transactions


async def test_aborted_transactions_are_those_with_messages_in_the_range(
    partition: Partition,
) -> None:
    write(partition, 1)  # 0
    write(partition, 2)  # 1
    end(partition, 1, committed=False)  # 2
    write(partition, 3)  # 3
    end(partition, 2, committed=False)  # 4
    end(partition, 3, committed=True)  # 5
    write(partition, 3)  # 6
    end(partition, 3, committed=False)  # 7
    await partition.flushed()
    first, second, third = (
        AbortedTransaction(1, 0, 2),
        AbortedTransaction(2, 1, 4),
        AbortedTransaction(3, 6, 7),
    )
    assert partition.aborted(0, 8) == [first, second, third]
    assert partition.aborted(0, 1) == [first]
    assert partition.aborted(3, 6) == [second]
    assert partition.aborted(5, 6) == []
    await partition.trim(5)
    assert partition.aborted(5, 8) == [third]


# Refusals


async def test_nobody_writes_in_a_transaction_that_the_coordinator_does_not_know(
    partition: Partition,
) -> None:
    asked: list[tuple[int, ...]] = []

    def verify(*what: int) -> None:
        asked.append(what)
        raise InvalidTransactionStateError

    partition._verification.verify = verify
    with pytest.raises(InvalidTransactionStateError):
        partition.append([batch(5, epoch=2)])
    write_outside(partition)
    assert asked == [(5, 2, partition.id)]
    assert partition.end_offset == 1


def test_without_a_coordinator_there_are_no_transactions() -> None:
    with pytest.raises(InvalidTransactionStateError):
        Verification().verify(5, 0, 7)


async def test_who_has_a_transaction_open_writes_nothing_outside_of_it(
    partition: Partition,
) -> None:
    partition.append([batch(5, sequence=0)])
    with pytest.raises(InvalidTransactionStateError):
        partition.append([batch(5, sequence=1, transactional=False)])
    end(partition, 5, committed=True)
    partition.append([batch(5, sequence=1, transactional=False)])


async def test_what_is_repeated_after_the_end_is_where_it_was(partition: Partition) -> None:
    first = partition.append([batch(5, sequence=0)])
    end(partition, 5, committed=True)
    partition._verification.verify = Verification().verify
    assert partition.append([batch(5, sequence=0)]) == first


async def test_a_transaction_needs_a_producer(partition: Partition) -> None:
    with pytest.raises(InvalidTransactionStateError):
        partition.append([batch(-1)])


async def test_a_marker_of_a_higher_epoch_fences_what_was_on_its_way(
    partition: Partition,
) -> None:
    partition.append([batch(5, sequence=0)])
    end(partition, 5, committed=True, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        partition.append([batch(5, sequence=1)])
    with pytest.raises(OutOfOrderSequenceError):
        partition.append([batch(5, sequence=1, epoch=1)])
    partition.append([batch(5, sequence=0, epoch=1)])
    end(partition, 5, committed=True, epoch=1)
    partition.append([batch(5, sequence=1, epoch=1)])


async def test_a_fence_that_could_not_be_written_is_none(
    partition: Partition, disk: FaultyFileSystem
) -> None:
    partition.append([batch(5, sequence=0)])
    await partition.flushed()
    disk.hook = failing(1, "pwritev", error=errno.ENOSPC)
    with pytest.raises(LogWriteError):
        await partition.durable(end(partition, 5, committed=True, epoch=1))
    partition.append([batch(5, sequence=1)])


def test_what_was_aborted_takes_no_more_than_a_checkpoint_has_place_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.limits.ABORTED_TRANSACTION_BYTES", 30_000)
    transactions = PartitionTransactions(Memory().producers)
    header = read_header(batch(1))
    marker = end_marker(1, 0, committed=False, coordinator_epoch=0)
    end_header = read_header(marker)

    def abort_many() -> None:
        for offset in range(0, 200_000, 2):
            transactions.check(header)
            transactions.update(header._replace(base_offset=offset), b"")
            transactions.update(end_header._replace(base_offset=offset + 1), marker)

    with pytest.raises(TooManyProducersError):
        abort_many()
    assert len(transactions.aborted(0, 200_000)) > 5_000
    assert len(transactions.snapshot()) < 40_000
    transactions.trim(200_000)
    transactions.check(header)


def test_transactions_take_no_more_memory_than_there_is_for_them() -> None:
    memory = Memory(64 << 20)
    transactions = PartitionTransactions(memory.producers)
    header = read_header(batch(1))

    def begin_many() -> None:
        for number in range(1_000_000):
            another = header._replace(producer_id=number)
            transactions.check(another)
            transactions.appended(another, number, b"")

    with pytest.raises(TooManyProducersError):
        begin_many()
    assert 3_000 < len(transactions.open) < memory.producers.bound / 200
    assert memory.producers.used <= memory.producers.bound
    # Those that are open may go on.
    transactions.check(header)
    transactions.close()
    assert memory.producers.used == 0


# After a start


async def test_transactions_are_as_they_were_after_a_start(
    flusher: Flusher, disk: FaultyFileSystem
) -> None:
    partition = await open_partition(flusher, disk)
    write(partition, 1)
    write(partition, 2)
    write(partition, 3)
    end(partition, 1, committed=False)
    end(partition, 2, committed=True)
    await partition.flushed()
    expected = (ends(partition), partition.aborted(0, 2), [*partition.transactions.open.values()])
    partition.close()
    again = await open_partition(flusher, disk, 1)
    found = (ends(again), again.aborted(0, 2), [*again.transactions.open.values()])
    assert found == expected
    assert found[0] == (2, 5)
    again.close()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("wwca")), max_size=60),
    st.integers(0, 60),
)
def test_a_snapshot_and_what_came_after_it_are_the_state(
    steps: list[tuple[int, str]], snapshot_at: int
) -> None:
    whole, restored = (PartitionTransactions(Memory().producers) for _ in range(2))
    taking = PartitionTransactions(Memory().producers)
    list(restored.restore(b""))
    for offset, (producer_id, step) in enumerate(steps):
        if offset == snapshot_at:
            # Nothing of this one is safe when it is taken.
            list(restored.restore(bytes(taking.snapshot())))
        made = (
            batch(producer_id)
            if step == "w"
            else end_marker(producer_id, 0, committed=step == "c", coordinator_epoch=0)
        )
        header = read_header(made)._replace(base_offset=offset)
        taking.appended(header, offset, made)
        whole.update(header, made)
        restored.update(header, made)
    count = len(steps)
    assert restored.stable_end(count) == whole.stable_end(count) == taking.stable_end(count)
    assert restored.open == whole.open == taking.open
    for each in (whole, taking):
        assert restored.aborted(0, count) == each.aborted(0, count)


def test_many_are_restored_in_steps_of_which_none_is_large() -> None:
    taking, restored = (PartitionTransactions(Memory().producers) for _ in range(2))
    taking._aborted = AbortedTransactions()
    for number in range(50_000):
        taking._aborted.add(AbortedTransaction(1, 2 * number, 2 * number + 1))
    taking.appended(read_header(batch(7)), 200_000, b"")
    steps = restored.restore(bytes(taking.snapshot()))
    taken = 0
    for _ in steps:
        assert not restored.has_aborted, "it is what it was before the last step"
        taken += 1
    assert taken == 50_000 // 1024 + 1 + 1
    assert restored.aborted(0, 100_000) == taking.aborted(0, 100_000)
    assert restored.open == taking.open


def test_a_snapshot_of_the_first_version_is_read() -> None:
    all_of_them = [AbortedTransaction(number, 3 * number, 3 * number + 5) for number in range(2500)]
    columns = (array("q", column).tobytes() for column in zip(*all_of_them, strict=True))
    snapshot = b"".join((bytes([1, *4 * [0]]), len(all_of_them).to_bytes(4), *columns))
    transactions = PartitionTransactions(Memory().producers)
    list(transactions.restore(snapshot))
    assert transactions.aborted(0, 10_000) == all_of_them


@pytest.mark.parametrize(
    "snapshot",
    [
        b"\x01",
        b"\x03" + bytes(8),
        b"\x01\0\0\0\x01",
        b"\x01" + bytes(7),
        bytes(9) + b"x",
        b"\x02" + bytes(8) + b"x",
        b"\x02" + bytes(7) + b"\x01" + bytes(60),
    ],
)
def test_what_is_no_snapshot_changes_nothing(snapshot: bytes) -> None:
    transactions = PartitionTransactions(Memory().producers)
    transactions.appended(read_header(batch(1)), 3, b"")
    with pytest.raises(ValueError, match="snapshot"):
        list(transactions.restore(snapshot))
    assert list(transactions.open) == [1]
