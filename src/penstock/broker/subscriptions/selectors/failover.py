"""Which consumer of a Failover subscription is the active one, as Pulsar's brokers choose."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from penstock.limits import SUBSCRIPTION_CONSUMERS
from penstock.records import murmur3_32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.subscriptions.consumer import Consumer
    from penstock.broker.topics.partition import Partition

POINTS_PER_CONSUMER: Final = 100
_RING: Final = 1 << 31
"""Pulsar drops the highest bit of its hashes, which are signed."""


def choose_active(partition: Partition, consumers: Sequence[Consumer]) -> Consumer | None:
    """Choose among the consumers of the best priority, sorted by name.

    A partition takes the one of its number, so that partitions spread over consumers; a topic
    without partitions takes the one next to its name on a ring of hashes.
    """
    if not consumers:
        return None
    best = min(consumer.priority for consumer in consumers)
    candidates = [consumer for consumer in consumers if consumer.priority == best]
    if partition.topic.partitioned:
        candidates.sort(key=lambda consumer: consumer.name)
        return candidates[partition.index % len(candidates)]
    if len(candidates) == 1:  # As of all exclusive ones, for which no hashes are loaded.
        return candidates[0]
    topic = partition.topic.name.pulsar
    # Of two at one point of the ring, the later name is there.
    candidates.sort(key=lambda consumer: consumer.name, reverse=True)
    return min(candidates, key=lambda consumer: _distance(topic, consumer.name))


@lru_cache(maxsize=4 * SUBSCRIPTION_CONSUMERS)
def _distance(topic: str, name: str) -> int:
    """Return how far a consumer's nearest point follows a topic's on the ring of hashes."""
    # Each consumer's by itself: the ring of a thousand of them has a hundred thousand points.
    at = murmur3_32(topic.encode())
    points = (murmur3_32(f"{name}{point}".encode()) for point in range(POINTS_PER_CONSUMER))
    return min((point - at) % _RING for point in points)
