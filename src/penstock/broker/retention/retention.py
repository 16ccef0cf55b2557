"""Looks after the logs of a node: what is due by a topic's settings goes, a few segments at a time.

It looks every `retention_check_ms`, and at a topic whose settings have changed at once. A topic
that keeps everything costs a glance at its settings. Of a closed log the folder is looked at once,
in a thread: the log is opened only for what is due.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from penstock import wall_clock
from penstock.broker.errors import UnknownTopicError
from penstock.broker.retention.backlog import Backlogs
from penstock.broker.retention.expiry import expire
from penstock.broker.retention.leases import RangeLeases
from penstock.broker.retention.needs import Needs
from penstock.broker.retention.policy import NO_LIMIT
from penstock.broker.retention.reserve import Reserve
from penstock.broker.retention.rule import Surplus, is_due, surplus, surplus_of_topic
from penstock.broker.topics.opening import open_all
from penstock.limits import LOGS_MEASURED_TOGETHER, SEGMENTS_TRIMMED_TOGETHER
from penstock.log.errors import LogError, LogWriteError
from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.broker.subscriptions.registry import Subscriptions
    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage
    from penstock.broker.topics.topic import Topic
    from penstock.log.interface import OldestSegment, StoredSegment

logger = logging.getLogger(__name__)

MOST: Final = int(SEGMENTS_TRIMMED_TOGETHER)


class Retention:
    """All methods belong to the event loop's thread."""

    def __init__(
        self,
        topics: Topics,
        storage: Storage,
        subscriptions: Subscriptions,
        check_ms: int,
        now_ms: Callable[[], int] = wall_clock.now_ms,
    ) -> None:
        self.now_ms = now_ms
        self.backlogs = Backlogs(subscriptions, self._now)
        self.deleted: Counter[str] = Counter()
        """How many segments went since the start, by the setting that had them go, and `bytes`."""
        self._topics = topics
        self._storage = storage
        self._reserve = Reserve(storage.data_folder)
        self._subscriptions = subscriptions
        self.leases = RangeLeases()
        self._needs = Needs(subscriptions)
        self._check_seconds = check_ms / 1000
        self._tasks = Tasks()
        self._checking = asyncio.Lock()
        self._changed: dict[Topic, None] = {}
        self._looks_at_changed = False
        self._oldest: dict[int, OldestSegment] = {}
        """What was found in the folders of closed logs, by their partitions' ids."""
        topics.on_configured(self._configured)
        topics.deletion.on_partitions(self._forget)

    def watch(self) -> None:
        """From now on look after all logs."""
        self._tasks.start(self._watch(), "retention")

    async def close(self) -> None:
        """Look after them no more; what is due waits for the next start."""
        self._tasks.cancel()
        await self._tasks.ended()

    async def check(self, topics: Iterable[Topic] | None = None) -> None:
        """Return when what is due now of these topics, or of all, has gone."""
        async with self._checking:
            pace = Pace()
            limited: list[Topic] = []
            for topic in self._topics.all() if topics is None else topics:
                if not topic.config.retention.is_idle:
                    limited.append(topic)
                if pace.is_over():
                    await pace.others()
            if limited:
                await self._open_what_is_due(limited)
            for topic in limited:
                await self._check_topic(topic)
                if pace.is_over():
                    await pace.others()
            if limited and not self._reserve.is_there:
                await asyncio.to_thread(self._reserve.take)

    def _now(self) -> int:
        return self.now_ms()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            try:
                await self.check()
            except Exception:  # Of one log, and the others have theirs to give up as well.
                logger.exception("retention is tried again")

    def _configured(self, topic: Topic) -> None:
        if topic.config.retention.is_idle:
            return
        self._changed[topic] = None
        if not self._looks_at_changed:
            self._looks_at_changed = True
            self._tasks.start(self._check_changed(), "retention of topics that have changed")

    def _forget(self, _topic: Topic, partitions: Iterable[Partition]) -> None:
        ids = [partition.id for partition in partitions]
        self.leases.forget(ids)
        for partition_id in ids:
            self._oldest.pop(partition_id, None)

    async def _check_changed(self) -> None:
        try:
            await asyncio.sleep(0)  # Others may change in the same turn.
            while self._changed:
                changed, self._changed = self._changed, {}
                await self.check(changed)
        finally:
            self._looks_at_changed = False

    async def _open_what_is_due(self, topics: list[Topic]) -> None:
        """Open the logs of which something is due, as far as their folders say."""
        await self._look_at([each for topic in topics for each in topic.partitions])
        due: list[Partition] = []
        pace = Pace()
        for topic in topics:
            due += self._due(topic)
            if pace.is_over():
                await pace.others()
        await open_all(due)
        for partition in due:
            self._oldest.pop(partition.id, None)

    async def _look_at(self, partitions: list[Partition]) -> None:
        """Look at the folders of closed logs that were not looked at yet."""
        unknown = [each for each in partitions if not each.is_open and each.id not in self._oldest]
        for first in range(0, len(unknown), LOGS_MEASURED_TOGETHER):
            together = unknown[first : first + LOGS_MEASURED_TOGETHER]
            places = [(each.topic.id, each.index) for each in together]
            found = await self._storage.oldest_segments(places)
            for partition, oldest in zip(together, found, strict=True):
                if oldest is not None and not partition.is_open and not partition.deleted:
                    self._oldest[partition.id] = oldest

    def _due(self, topic: Topic) -> list[Partition]:
        """Return the closed logs of a topic that may give something up."""
        policy, now_ms = topic.config.retention, self.now_ms()
        known = [(each, self._oldest.get(each.id)) for each in topic.partitions]
        closed = [(each, found) for each, found in known if found and not each.is_open]
        if policy.topic_bytes != NO_LIMIT:
            size = sum(found.size_bytes for _, found in closed)
            size += sum(each.size_bytes for each in topic.partitions if each.is_open)
            if size > policy.topic_bytes:
                return [each for each, _ in closed]
        return [
            each
            for each, (size, segment) in closed
            if segment is not None and self._may_be_due(each, size, segment, now_ms)
        ]

    def _may_be_due(
        self, partition: Partition, size: int, oldest: StoredSegment, now_ms: int
    ) -> bool:
        """Whether a closed log has something to give up, or to acknowledge in that segment."""
        policy = partition.topic.config.retention
        if is_due(oldest, size, policy, now_ms):
            needed_from = self._needs.needed_from(partition, policy)
            if oldest.end_offset <= needed_from:
                return True
        if policy.ttl_ms == NO_LIMIT or now_ms - oldest.latest_ms <= policy.ttl_ms:
            return False
        positions = self._subscriptions.durable_positions(partition)
        return min(positions, default=oldest.end_offset) < oldest.end_offset

    async def _check_topic(self, topic: Topic) -> None:
        open_ones = [each for each in topic.partitions if each.is_open]
        is_too_large = _excess(topic, open_ones) > 0
        ends: dict[Partition, int] = {}
        for partition in open_ones:
            try:
                await self._acknowledge(partition)
                ends[partition] = await self._may_go_below(partition, is_too_large)
                await self._check_partition(partition, ends[partition])
            except UnknownTopicError:
                return  # It was deleted this moment.
            except LogError as error:
                logger.warning("%s keeps what is due: %s", partition.name, error)
        try:
            await self._check_size(topic, ends)
        except UnknownTopicError:
            return
        except LogError as error:
            logger.warning("topic %s keeps what is due: %s", topic.name.kafka, error)

    async def _acknowledge(self, partition: Partition) -> None:
        policy = partition.topic.config.retention
        if policy.ttl_ms != NO_LIMIT:
            readers = self._subscriptions.of_partition(partition)
            await expire(partition, readers, self.now_ms() - policy.ttl_ms)
        await self.backlogs.check(partition)

    async def _check_partition(self, partition: Partition, below: int) -> None:
        policy = partition.topic.config.retention
        while policy.deletes:
            found = await surplus(
                partition.stored_segments(),
                partition.size_bytes,
                policy,
                self.now_ms(),
                below,
                MOST,
            )
            if found is not None:
                await self._give_up(partition, found)
            if found is None or found.segments < MOST:
                return

    async def _check_size(self, topic: Topic, ends: Mapping[Partition, int]) -> None:
        while (excess := _excess(topic, ends)) > 0:
            segments = [each.stored_segments() for each in ends]
            found = await surplus_of_topic(segments, excess, list(ends.values()), MOST)
            for partition, part in zip(ends, found, strict=True):
                if part is not None:
                    await self._give_up(partition, part)
            if sum(part.segments for part in found if part is not None) < MOST:
                return

    async def _may_go_below(self, partition: Partition, is_too_large: bool) -> int:
        """Return up to where nobody needs a log, or has held it for too long."""
        policy = partition.topic.config.retention
        needed_from = min(self._needs.needed_from(partition, policy), partition.safe_offset)
        held_from = self.leases.needed_from(partition.id)
        if held_from >= needed_from:
            return needed_from
        async with aclosing(partition.stored_segments()) as segments:
            oldest = await anext(segments, None)
        holds_back = oldest is not None and held_from < oldest.end_offset <= needed_from
        is_wanted = oldest is not None and (
            is_too_large or is_due(oldest, partition.size_bytes, policy, self.now_ms()) is not None
        )
        if self.leases.may_hold(partition.id, is_due=holds_back and is_wanted):
            return held_from
        return needed_from

    async def _give_up(self, partition: Partition, found: Surplus) -> None:
        try:
            await partition.trim(found.end_offset)
        except LogWriteError:
            if not await asyncio.to_thread(self._reserve.give):
                raise
            await partition.trim(found.end_offset)
        self.deleted.update(found.reasons)
        self.deleted["bytes"] += found.size_bytes
        reasons = ", ".join(f"{count} by {name}" for name, count in found.reasons.items())
        logger.info(
            "%s begins at offset %d now: %d segments of %d bytes went, %s",
            *(partition.name, found.end_offset, found.segments, found.size_bytes, reasons),
        )


def _excess(topic: Topic, partitions: Iterable[Partition]) -> int:
    """Return by how many bytes a topic is too large."""
    limit = topic.config.retention.topic_bytes
    return 0 if limit == NO_LIMIT else sum(each.size_bytes for each in partitions) - limit
