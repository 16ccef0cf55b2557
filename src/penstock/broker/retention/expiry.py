"""Messages that are too old count as acknowledged, in every subscription (Pulsar's TTL)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from penstock.log.errors import CorruptBatchError
from penstock.log.header import ATTRIBUTE_DELETE_HORIZON, ATTRIBUTE_LOG_APPEND_TIME, Magic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.subscriptions.subscription import Subscription
    from penstock.broker.topics.partition import Partition
    from penstock.log.header import BatchHeader

logger = logging.getLogger(__name__)


def time_of(header: BatchHeader) -> int:
    """Return the time from which on a batch's age counts, in ms.

    Pulsar counts from when an entry was published, whatever its event time.
    """
    stamped = header.attributes & (ATTRIBUTE_LOG_APPEND_TIME | ATTRIBUTE_DELETE_HORIZON)
    if header.magic == Magic.PULSAR and not stamped:
        return header.base_timestamp
    return header.max_timestamp


async def expire(
    partition: Partition, subscriptions: Iterable[Subscription], before_ms: int
) -> None:
    """Acknowledge what is from before a time, as far as the times of batches grow.

    It is looked up once for all subscriptions, in a number of steps that grows with the logarithm
    of what has expired. Raises LogError.
    """
    end = partition.readable_end()
    behind = [each for each in subscriptions if each.cursor.position < end]
    if not behind:
        return
    start = min(each.cursor.position for each in behind)
    first = await _first_from(partition, max(start, partition.start_offset), before_ms)
    for each in behind:
        if each.cursor.position < first:
            backlog = each.backlog
            await each.pass_below(first)
            expired = backlog - each.backlog
            each.expired.add(expired, time.monotonic())
            logger.info(
                "%s: %d messages of subscription %s are acknowledged, for they are too old",
                *(partition.name, expired, each.name),
            )


async def _first_from(partition: Partition, start: int, time_ms: int) -> int:
    """Return the first offset from `start` on of a batch of this time or later, or the end."""
    low, high = start, partition.readable_end()
    step = 0  # Ever wider, until a batch is met that is late enough.
    while low < high:
        probe = min(low + step, high - 1)
        is_late, begin, end = await _look_at(partition, probe, time_ms)
        if is_late:
            high = max(begin, low)
            break
        low, step = end, 2 * step + 1
    while low < high:
        is_late, begin, end = await _look_at(partition, (low + high) // 2, time_ms)
        low, high = (low, max(begin, low)) if is_late else (end, high)
    return low


async def _look_at(partition: Partition, offset: int, time_ms: int) -> tuple[bool, int, int]:
    """Return whether the batch with an offset is late enough, and where it begins and ends.

    One that can't be read is not: nobody would ever get it.
    """
    try:
        header = await partition.batch_at(offset)
    except CorruptBatchError as damage:
        return False, damage.base_offset, damage.next_offset
    if header is None:
        return True, offset, offset
    return time_of(header) >= time_ms, header.base_offset, header.next_offset
