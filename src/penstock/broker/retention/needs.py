"""What somebody still needs of a log, so that retention keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.retention.leases import NOTHING

if TYPE_CHECKING:
    from penstock.broker.retention.policy import RetentionPolicy
    from penstock.broker.subscriptions.registry import Subscriptions
    from penstock.broker.topics.partition import Partition


class Needs:
    """Where each reader begins for whom messages are kept."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    def needed_from(self, partition: Partition, policy: RetentionPolicy) -> int:
        """Return the first offset that retention may not touch; the log may be closed."""
        if not policy.keeps_unacknowledged:
            return NOTHING
        return min(self._subscriptions.durable_positions(partition), default=NOTHING)
