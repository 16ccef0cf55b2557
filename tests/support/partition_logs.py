"""What a test may know of a partition's log, and nothing else may: where its files are."""

from __future__ import annotations

from penstock.broker.broker import Broker
from penstock.broker.topics.opening import open_all
from penstock.broker.topics.partition import Partition
from penstock.log import LocalLog


def log_of(partition: Partition) -> LocalLog:
    return partition._log


async def open_logs(broker: Broker) -> None:
    """Have every log open, as those that clients have used."""
    await open_all(partition for topic in broker.topics.all() for partition in topic.partitions)
