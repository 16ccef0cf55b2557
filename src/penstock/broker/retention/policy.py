"""What a topic says about how long its messages are kept, in whatever protocol's words."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

NO_LIMIT: Final = -1


class QuotaPolicy(StrEnum):
    """What happens to a topic of which a subscription is too far behind; the names are Pulsar's."""

    HOLD = "producer_request_hold"
    EXCEPTION = "producer_exception"
    EVICTION = "consumer_backlog_eviction"


class BacklogQuota(NamedTuple):
    """How far the slowest subscription of a partition may be behind; NO_LIMIT is as far as it is.

    `size` is in bytes from what it has to read next, `age_ms` that message's.
    """

    size: int = NO_LIMIT
    age_ms: int = NO_LIMIT
    policy: QuotaPolicy = QuotaPolicy.HOLD

    @property
    def is_set(self) -> bool:
        return self.size != NO_LIMIT or self.age_ms != NO_LIMIT


class RetentionPolicy(NamedTuple):
    """Sizes are in bytes, times in ms; NO_LIMIT is none."""

    age_ms: int = NO_LIMIT
    """Segments go of which the latest message is older."""
    partition_bytes: int = NO_LIMIT
    """The oldest segments of a partition go as long as so much is left."""
    topic_bytes: int = NO_LIMIT
    """The oldest full segments of all partitions go as long as there is more."""
    keeps_unacknowledged: bool = False
    """Whether what a durable subscription has not acknowledged stays all the same."""
    ttl_ms: int = NO_LIMIT
    """Messages that are older count as acknowledged, in every subscription."""
    backlog: BacklogQuota = BacklogQuota()

    @property
    def deletes(self) -> bool:
        """Whether anything ever goes."""
        return (self.age_ms, self.partition_bytes, self.topic_bytes) != (NO_LIMIT,) * 3

    @property
    def is_idle(self) -> bool:
        """Whether there is never anything to do."""
        return not self.deletes and self.ttl_ms == NO_LIMIT and not self.backlog.is_set
