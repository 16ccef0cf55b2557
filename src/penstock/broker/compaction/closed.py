"""Whether a closed log is to be compacted, by what its folder says: only such a log is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.compaction.on_partition import OWNER, read_state
from penstock.limits import LOGS_MEASURED_TOGETHER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.compaction.policy import CompactionPolicy
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage
    from penstock.log.interface import ClosedLog


class Outlook(NamedTuple):
    """What there is to compact in a closed log, in bytes of its full segments."""

    full_bytes: int
    dirty_bytes: int
    has_more: bool
    """Whether the last segment, which takes the next batch, holds something."""
    is_asked_for: bool
    """Whether a request was heard and is not done yet."""
    answered_ms: int
    """The last time of a request that was heard."""

    def may_be_due(self, policy: CompactionPolicy, now_ms: int) -> bool:
        """Whether the log is to be opened. How old its messages are is not known before that, and
        it is opened once: so it may be too soon.
        """
        if policy.requested_ms > self.answered_ms or self.is_asked_for:
            return True
        if not policy.is_on:
            return False
        if policy.max_lag_ms < now_ms and (self.dirty_bytes or self.has_more):
            return True
        return self.dirty_bytes > policy.min_dirty_ratio * self.full_bytes


class ClosedLogs:
    """Looks into each folder once: what is in that of a closed log does not change."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._outlooks: dict[int, Outlook] = {}
        """By the ids of their partitions."""

    async def due(self, partitions: Iterable[Partition], now_ms: int) -> list[Partition]:
        """Return which of these are closed and have to be opened."""
        closed = [each for each in partitions if not each.is_open]
        unknown = [each for each in closed if each.id not in self._outlooks]
        for first in range(0, len(unknown), LOGS_MEASURED_TOGETHER):
            await self._look_at(unknown[first : first + LOGS_MEASURED_TOGETHER])
        return [each for each in closed if self._may_be_due(each, now_ms)]

    def forget(self, partitions: Iterable[Partition]) -> None:
        """These were opened, or are gone."""
        for partition in partitions:
            self._outlooks.pop(partition.id, None)

    async def _look_at(self, partitions: list[Partition]) -> None:
        places = [(each.topic.id, each.index) for each in partitions]
        found = await self._storage.closed_logs(places)
        for partition, log in zip(partitions, found, strict=True):
            if log is not None and not partition.is_open and not partition.deleted:
                self._outlooks[partition.id] = _outlook(log)

    def _may_be_due(self, partition: Partition, now_ms: int) -> bool:
        outlook = self._outlooks.get(partition.id)
        policy = partition.topic.config.compaction
        return outlook is not None and outlook.may_be_due(policy, now_ms)


def _outlook(log: ClosedLog) -> Outlook:
    known, answered_ms = read_state(log.states.get(OWNER, b""))
    return Outlook(
        sum(size for _, size in log.full_segments),
        sum(size for end, size in log.full_segments if end > known.cleaned_to),
        log.last_bytes > 0,
        known.cleaned_to < known.asked_to,
        answered_ms,
    )
