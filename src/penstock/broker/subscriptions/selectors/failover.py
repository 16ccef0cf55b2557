"""Which consumer of a Failover subscription is the active one, as Pulsar's brokers choose."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.selectors.murmur3 import murmur3_32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.topics.partition import Partition

POINTS_PER_CONSUMER: Final = 100


def choose_active(partition: Partition, consumers: Sequence[Consumer]) -> Consumer | None:
    """Choose among the consumers of the best priority, sorted by name.

    A partition takes the one of its number, so that partitions spread over consumers; a topic
    without partitions takes the one next to its name on a ring of hashes.
    """
    if not consumers:
        return None
    best = min(consumer.priority for consumer in consumers)
    candidates = sorted(
        (consumer for consumer in consumers if consumer.priority == best),
        key=lambda consumer: consumer.name,
    )
    if partition.topic.partitioned:
        return candidates[partition.index % len(candidates)]
    return _next_on_ring(partition.topic.name.pulsar, candidates)


def _next_on_ring(topic: str, candidates: Sequence[Consumer]) -> Consumer:
    ring = sorted(
        (murmur3_32(f"{candidate.name}{point}".encode()), index)
        for index, candidate in enumerate(candidates)
        for point in range(POINTS_PER_CONSUMER)
    )
    at = bisect_left(ring, (murmur3_32(topic.encode()), 0))
    return candidates[ring[at % len(ring)][1]]
