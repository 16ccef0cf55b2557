"""A partition with transactions on it, driven without a coordinator."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.reading.conversion_cache import ConversionCache
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.config import TopicConfig
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.transactions.verification import Verification
from penstock.log import Flusher, LocalLog, LogConfig
from penstock.log.header import (
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    NO_SEQUENCE,
    Magic,
    build_header,
    read_header,
)
from penstock.memory import Memory

if TYPE_CHECKING:
    from faulty_files import FaultyFileSystem

FOLDER: Final = Path("/data/0")
CONFIG: Final = LogConfig(segment_bytes=4_000, checkpoint_bytes=2_000)


def trusting() -> Verification:
    """One that takes each batch for one of an open transaction."""
    verification = Verification()
    verification.verify = lambda *_: None
    return verification


async def open_partition(
    flusher: Flusher,
    disk: FaultyFileSystem,
    epoch: int = 0,
    *,
    flush: str = "acknowledged",
    config: LogConfig = CONFIG,
) -> Partition:
    topic: Any = SimpleNamespace(
        name=TopicName.from_kafka("t"),
        config=TopicConfig.of({"flush": flush}, BrokerSettings()),
        partitioned=True,
    )
    log = LocalLog.open(FOLDER, config, disk, flusher, epoch)
    conversions = ConversionCache(Memory())
    return await Partition.open(topic, 0, 7, log, conversions, verification=trusting())


def batch(
    producer_id: int = -1,
    count: int = 1,
    *,
    transactional: bool = True,
    epoch: int = 0,
    sequence: int = NO_SEQUENCE,
    body: bytes = b"body",
) -> bytearray:
    """Return a batch that nobody reads."""
    header = build_header(
        Magic.KAFKA,
        body,
        record_count=count,
        base_timestamp=1,
        max_timestamp=1,
        attributes=ATTRIBUTE_TRANSACTIONAL if transactional else 0,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return header + body


def as_part_of(
    batch: bytes | bytearray, producer_id: int, epoch: int = 0, sequence: int = NO_SEQUENCE
) -> bytearray:
    """Return a stored batch as its producer would send it inside a transaction."""
    header = read_header(batch)
    body = batch[HEADER_SIZE:]
    made = build_header(
        header.magic,
        body,
        record_count=header.record_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=header.attributes | ATTRIBUTE_TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        last_offset_delta=header.last_offset_delta,
    )
    return made + body


def write(partition: Partition, producer_id: int, count: int = 1) -> int:
    """Append a batch of a transaction; returns its offset."""
    return partition.append([batch(producer_id, count)])


def write_outside(partition: Partition, count: int = 1) -> int:
    """Append a batch of no transaction; returns its offset."""
    return partition.append([batch(count=count, transactional=False)])


def end(partition: Partition, producer_id: int, *, committed: bool, epoch: int = 0) -> int:
    """Append the marker of a transaction; returns its offset."""
    return partition.end_transaction(producer_id, epoch, committed=committed, coordinator_epoch=0)
