"""What a test may know of a partition's log, and nothing else may: where its files are."""

from __future__ import annotations

from penstock.broker.topics.partition import Partition
from penstock.log import LocalLog


def log_of(partition: Partition) -> LocalLog:
    return partition._log
