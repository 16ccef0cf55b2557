"""Giving up messages because a client says so: which ones, and what goes with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.broker.topics.opening import open_all
from penstock.broker.topics.settling import settled
from penstock.limits import LOGS_OPENED_TOGETHER
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from penstock.broker.broker import Broker
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic


async def purge(broker: Broker, topics: Iterable[Topic], offset_kinds: Collection[str]) -> None:
    """Give up every message that was acknowledged, and the committed offsets of these kinds.

    Offsets go on where they are: none is given twice. Raises what Partition.trim does, and
    MetadataError.
    """
    partitions = [partition for topic in topics for partition in topic.partitions]
    await open_all(partitions)
    for first in range(0, len(partitions), LOGS_OPENED_TOGETHER):
        together = partitions[first : first + LOGS_OPENED_TOGETHER]
        await settled(together)
        await asyncio.gather(*(partition.trim(partition.safe_offset) for partition in together))
    await _forget_offsets(broker, partitions, offset_kinds)


async def delete_segments(broker: Broker, partition: Partition, count: int) -> None:
    """Give up the oldest segments of a partition, up to `count`, that nobody needs any more.

    One is needed while it is written to, and while somebody has a committed offset or a
    subscription that has not passed it. Raises what Partition.trim does.
    """
    await partition.opened()
    pace = Pace()
    committed = broker.offsets.of_partition(partition.id).values()
    subscriptions = broker.subscriptions.of_partition(partition)
    positions = [
        *await pace.each(committed, lambda each: each.offset),
        *await pace.each(subscriptions, lambda each: each.cursor.position),
    ]
    needed_from = min([*positions, partition.safe_offset])
    ends = [end for end in partition.segment_starts[1 : count + 1] if end <= needed_from]
    if ends:
        await partition.trim(ends[-1])


async def _forget_offsets(
    broker: Broker, partitions: Iterable[Partition], kinds: Collection[str]
) -> None:
    pace = Pace()
    for partition in partitions:
        for owner in broker.offsets.of_partition(partition.id):
            if owner.kind in kinds:
                await broker.offsets.delete(owner, [partition.id])
            if pace.is_over():
                await pace.others()
