"""How far a subscription may be behind, and what happens beyond that (Pulsar's backlog quotas)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.broker.retention.expiry import expire, time_of
from penstock.broker.retention.policy import NO_LIMIT, QuotaPolicy
from penstock.log.errors import CorruptBatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.subscriptions.registry import Subscriptions
    from penstock.broker.topics.partition import Partition

logger = logging.getLogger(__name__)

_LEFT_PERCENT = 90
"""What is left of a quota's size when messages went for it, so that some may come, as in Pulsar."""


class Backlogs:
    """Judges durable subscriptions only: what others have left to read is kept for nobody."""

    def __init__(self, subscriptions: Subscriptions, now_ms: Callable[[], int]) -> None:
        self._subscriptions = subscriptions
        self._now_ms = now_ms
        self._on_excess: list[Callable[[Partition], None]] = []

    def on_excess(self, listener: Callable[[Partition], None]) -> None:
        """Have `listener` called with a partition whose producers are to be held up."""
        self._on_excess.append(listener)

    async def excess(self, partition: Partition) -> str:
        """Return what of a partition's backlog is over its quota, in words; empty where nothing is.

        Raises LogError.
        """
        quota = partition.topic.config.retention.backlog
        if not quota.is_set:
            return ""
        start = min(self._subscriptions.durable_positions(partition), default=None)
        if start is None or start >= partition.readable_end():
            return ""
        start = max(start, partition.start_offset)
        if quota.size != NO_LIMIT and (size := await partition.bytes_behind(start)) > quota.size:
            return f"{size} bytes are not acknowledged; backlog_quota_bytes is {quota.size}"
        if quota.age_ms == NO_LIMIT:
            return ""
        age_ms = self._now_ms() - await _time_at(partition, start)
        if age_ms <= quota.age_ms:
            return ""
        return (
            f"a message of {age_ms} ms ago is not acknowledged; backlog_quota_ms is {quota.age_ms}"
        )

    async def check(self, partition: Partition) -> None:
        """Do what the quota's policy says, where the backlog is over it. Raises LogError."""
        quota = partition.topic.config.retention.backlog
        excess = await self.excess(partition)
        if not excess:
            return
        if quota.policy is not QuotaPolicy.EVICTION:
            for listener in self._on_excess:
                listener(partition)
            return
        logger.warning("%s: the oldest messages count as acknowledged: %s", partition.name, excess)
        durable = [each for each in self._subscriptions.of_partition(partition) if each.durable]
        if quota.age_ms != NO_LIMIT:
            await expire(partition, durable, self._now_ms() - quota.age_ms)
        if quota.size != NO_LIMIT:
            first = await _last_bytes(partition, quota.size * _LEFT_PERCENT // 100)
            for each in durable:
                await each.pass_below(first)


async def _time_at(partition: Partition, offset: int) -> int:
    """Return the time of the first batch from an offset on that can be read."""
    while True:
        try:
            header = await partition.batch_at(offset)
        except CorruptBatchError as damage:
            offset = damage.next_offset
        else:
            return (1 << 62) if header is None else time_of(header)


async def _last_bytes(partition: Partition, size: int) -> int:
    """Return the first offset from which on no more than so many bytes are stored."""
    low, high = partition.start_offset, partition.readable_end()
    while low < high:
        await asyncio.sleep(0)  # Of many segments each look takes a while.
        middle = (low + high) // 2
        if await partition.bytes_behind(middle) > size:
            low = middle + 1
        else:
            high = middle
    return low
