"""What is open in a log and nowhere else is ended, so that no reader waits for it for ever."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.states import Producer
from penstock.log.layout import DATABASE_FILE
from transactional import batch

ID = "payments"
LONG_MS = 600_000
WAIT_SECONDS = 30


async def opened(folder: Path) -> tuple[Broker, Partition]:
    broker = await Broker.open(folder, BrokerSettings())
    if not broker.topics.all():
        await broker.topics.create(TopicName("public", "default", "t"), 1)
    (topic,) = broker.topics.all()
    return broker, topic.partition(0)


async def write(broker: Broker, partition: Partition) -> Producer:
    """Write two messages of a transaction, which stays open."""
    await partition.opened()
    producer = await broker.transactions.initialise(ID, LONG_MS)
    await broker.transactions.add_partitions(ID, producer, [partition.id])
    partition.append([batch(producer.id, 2, epoch=producer.epoch, sequence=0)])
    await partition.flushed()
    return producer


async def is_ended(partition: Partition) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while partition.readable_end() != partition.end_offset:
            await asyncio.sleep(0.01)


def forget(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / DATABASE_FILE)) as database:
        database.execute(statement)
        database.commit()


async def test_what_a_database_that_was_made_anew_does_not_know_is_aborted(tmp_path: Path) -> None:
    broker, partition = await opened(tmp_path / "data")
    await write(broker, partition)
    await broker.close()
    for table in "transactions", "transaction_partitions":
        forget(tmp_path / "data", f"DELETE FROM {table}")
    broker, partition = await opened(tmp_path / "data")
    await partition.opened()
    await is_ended(partition)
    (aborted,) = partition.aborted(0, partition.end_offset)
    assert aborted.first_offset == 0
    await broker.close()


@pytest.mark.parametrize("committed", [True, False])
async def test_a_control_batch_that_was_lost_is_written_again(
    tmp_path: Path, committed: bool
) -> None:
    broker, partition = await opened(tmp_path / "data")
    producer = await write(broker, partition)
    await broker.close()
    # As if the transaction had ended, and the log had lost its end.
    state = "CompleteCommit" if committed else "CompleteAbort"
    forget(tmp_path / "data", f"UPDATE transactions SET state = '{state}'")
    forget(tmp_path / "data", "DELETE FROM transaction_partitions")
    broker, partition = await opened(tmp_path / "data")
    await partition.opened()
    await is_ended(partition)
    assert len(partition.aborted(0, partition.end_offset)) == (0 if committed else 1)
    assert (await broker.transactions.initialise(ID, LONG_MS)).id == producer.id
    await broker.close()


async def test_what_is_open_stays_open(tmp_path: Path) -> None:
    broker, partition = await opened(tmp_path / "data")
    producer = await write(broker, partition)
    await broker.close()
    broker, partition = await opened(tmp_path / "data")
    await partition.opened()
    await broker.transactions.loaded()
    end = partition.end_offset
    assert partition.readable_end() == 0
    await broker.transactions.end(ID, producer, committed=True)
    assert partition.readable_end() == partition.end_offset == end + 1
    await broker.close()
