"""Looks after the compacted topics of a node: one log at a time, in a process of its own.

It looks at all every `compaction_check_ms`, and at a topic at once when its settings have changed.
Of the logs that are due the dirtiest comes first. Of a closed log the folder is looked at once, in
a thread: it is opened only where it may be due.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from penstock import wall_clock
from penstock.broker.compaction.cleaner import Job, StoppedError, Throttle
from penstock.broker.compaction.closed import ClosedLogs
from penstock.broker.compaction.due import Due, find_due, find_unseen
from penstock.broker.compaction.process import CleaningProcess, cleaner_of
from penstock.broker.errors import UnknownTopicError
from penstock.broker.topics.opening import open_all
from penstock.limits import COMPACTION_RETRY_SECONDS
from penstock.log.errors import LogError, LogNotOpenError
from penstock.pace import Pace
from penstock.records.errors import OverLimitError
from penstock.tasks import Tasks, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from penstock.broker.compaction.cleaner import Cleaner
    from penstock.broker.compaction.process import RemoteCleaner
    from penstock.broker.retention.leases import RangeLeases
    from penstock.broker.subscriptions.registry import Subscriptions
    from penstock.broker.topics.catalogue import Topics
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage
    from penstock.broker.topics.topic import Topic
    from penstock.log.interface import Rewriting

logger = logging.getLogger(__name__)

_FOREVER_MS: Final = 1 << 50
"""So long that nobody sees its end, and its end can still be said in microseconds."""

_Result = TypeVar("_Result")


class OvertakenError(Exception):
    """What was to be compacted is not there any more, or is to stay."""


class Compaction:
    """All methods belong to the event loop's thread."""

    def __init__(
        self,
        topics: Topics,
        storage: Storage,
        subscriptions: Subscriptions,
        leases: RangeLeases,
        check_ms: int,
        bytes_per_second: int,
        now_ms: Callable[[], int] = wall_clock.now_ms,
    ) -> None:
        self.now_ms = now_ms
        self._topics = topics
        self._closed = ClosedLogs(storage)
        self._subscriptions = subscriptions
        self._leases = leases
        self._check_seconds = check_ms / 1000
        self._throttle = Throttle(bytes_per_second)
        self._tasks = Tasks()
        self._checking = asyncio.Lock()
        self._process = CleaningProcess()
        self._thread: ThreadPoolExecutor | None = None
        """Waits for the process, or does what is small itself."""
        self._refused: dict[int, float] = {}
        """When those are looked at again that could not be compacted, by their partitions' ids."""
        self._changed: set[Topic] = set()
        """Those whose settings have changed since they were looked at."""
        self._woken = asyncio.Event()
        topics.on_configured(self._configured)
        topics.deletion.on_partitions(lambda _topic, partitions: self._closed.forget(partitions))

    def watch(self) -> None:
        """From now on look after all logs."""
        self._tasks.start(self._watch(), "compaction")

    async def close(self) -> None:
        """Stop at the next step; what is not done is left as it was."""
        self._throttle.stop()
        self._process.kill()
        self._tasks.cancel()
        await self._tasks.ended()
        if self._thread is not None:
            self._thread.submit(self._process.end)
            self._thread.shutdown()

    async def check(self, among: Collection[Topic] | None = None) -> None:
        """Return when every log was compacted that is due now, each to its end once: of these
        topics, or of all.
        """
        topics = self._topics.all if among is None else partial(list, among)
        async with self._checking:
            await self._open_what_is_due(topics())
            done: set[int] = set()
            while due := await self._all_due(topics(), done):
                for partition in due:
                    # It may have changed while others had their turn.
                    if (found := await self._due(partition)) is not None:
                        await self._try(self._compact, partition, found)
                        if partition.compaction.known.cleaned_to >= found.end:
                            done.add(partition.id)
            await self._bring_views_up(topics())
            if self._process.is_running:
                await self._in_thread(self._process.end)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        next_look = loop.time() + self._check_seconds
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_look):
                    await self._woken.wait()
            self._woken.clear()
            changed, self._changed = self._changed, set()
            is_for_all = loop.time() >= next_look
            with suppress(StoppedError):
                await self.check(None if is_for_all else changed)
            if is_for_all:  # However often settings change, all have their turn.
                next_look = loop.time() + self._check_seconds

    def _configured(self, topic: Topic) -> None:
        if not topic.config.compaction.is_idle:
            for partition in topic.partitions:
                self._refused.pop(partition.id, None)
            self._changed.add(topic)
            self._woken.set()

    async def _open_what_is_due(self, topics: Iterable[Topic]) -> None:
        """Open the logs of which something may be due, as far as their folders say."""
        pace = Pace()
        wanted: list[Partition] = []
        for topic in topics:
            if not topic.config.compaction.is_idle:
                wanted += (each for each in topic.partitions if not self._is_refused(each))
            if pace.is_over():
                await pace.others()
        due = await self._closed.due(wanted, self.now_ms())
        await open_all(due)
        self._closed.forget(due)
        for partition in due:
            if not partition.is_open:
                self._refuse(partition, LogNotOpenError("its log can't be opened"))

    async def _all_due(self, topics: Iterable[Topic], done: Collection[int]) -> list[Partition]:
        """Return the logs of these topics that are due, the one with the most that is not compacted
        first, but for partitions of these ids.
        """
        pace = Pace()
        found: list[tuple[int, Partition]] = []
        for topic in topics:
            if not topic.config.compaction.is_idle:
                for partition in topic.partitions:
                    self._forget_aborted(partition)
                    due = None if partition.id in done else await self._due(partition)
                    if due is not None:
                        found.append((due.dirty_bytes, partition))
            if pace.is_over():
                await pace.others()
        found.sort(key=itemgetter(0), reverse=True)
        return [partition for _, partition in found]

    def _forget_aborted(self, partition: Partition) -> None:
        """Forget the aborted transactions of which nothing is left, but for those that somebody may
        ask for who has read the log's files before: within a while, or while they are held.
        """
        if partition.is_open and partition.transactions.has_aborted:
            end = partition.compaction.forgettable_to(time.monotonic())
            end = min(end, self._leases.needed_from(partition.id))
            partition.transactions.compacted(end)

    async def _due(self, partition: Partition) -> Due | None:
        if not partition.is_open or self._is_refused(partition):
            return None
        policy, compaction = partition.topic.config.compaction, partition.compaction
        try:
            await compaction.prepare(policy, self.now_ms())
            if not compaction.has_more:
                return None
            segments = await compaction.segments()
            is_late = await compaction.is_late(policy, self.now_ms())
        except LogError as error:
            self._refuse(partition, error)
            return None
        if partition.deleted:
            return None
        end = self._may_go_below(partition)
        now_ms = self.now_ms()
        return find_due(segments, compaction.known, end, policy, now_ms, is_late=is_late)

    def _may_go_below(self, partition: Partition) -> int:
        """Return the offset below which a log may be compacted.

        Only a topic that says that it is compacted takes anything from a subscription that has not
        acknowledged it.
        """
        if partition.topic.config.compaction.is_on:
            return partition.readable_end()
        positions = self._subscriptions.durable_positions(partition)
        return min([partition.readable_end(), *positions])

    async def _bring_views_up(self, topics: Iterable[Topic]) -> None:
        """Have the compacted views leave out what ordinary readers are still to find."""
        for topic in topics:
            if topic.config.compaction.requested_ms:
                for partition in topic.partitions:
                    while (due := await self._unseen(partition)) is not None:
                        seen_to = partition.compaction.view.end
                        await self._try(self._look_over, partition, due)
                        if partition.compaction.view.end == seen_to:
                            break

    async def _unseen(self, partition: Partition) -> Due | None:
        if not partition.is_open or partition.deleted or self._is_refused(partition):
            return None
        policy, compaction = partition.topic.config.compaction, partition.compaction
        try:
            segments = await compaction.segments()
        except LogError as error:
            self._refuse(partition, error)
            return None
        ends = compaction.view.end, partition.readable_end()
        return find_unseen(segments, compaction.known, *ends, policy)

    async def _try(
        self, work: Callable[[Partition, Due], Awaitable[None]], partition: Partition, due: Due
    ) -> None:
        try:
            try:
                await work(partition, due)
            except OverLimitError:
                await self._in_thread(self._process.start)
                await work(partition, due)
        except OvertakenError as error:
            logger.info("%s is looked at again: %s", partition.name, error)
        except (LogError, OSError) as error:
            if partition.start_offset < due.segments[0].end_offset:
                self._refuse(partition, error)
            else:  # What was to be read was given up; the rest is looked at anew.
                logger.info("%s was trimmed while it was compacted", partition.name)
        except UnknownTopicError:
            return
        except StoppedError:
            raise
        except Exception as error:  # Of one log, and the others are compacted as well.
            logger.exception("what is in %s can't be compacted", partition.name)
            self._refuse(partition, error)

    async def _compact(self, partition: Partition, due: Due) -> None:
        before = partition.size_bytes
        began = time.monotonic()
        records, kept = await self._pass(partition, due)
        logger.info(
            "%s: compacted up to offset %d: %d of %d records left, %d bytes of %d, in %.1f s",
            *(partition.name, partition.compaction.known.cleaned_to, kept, records),
            *(partition.size_bytes, before, time.monotonic() - began),
        )

    async def _look_over(self, partition: Partition, due: Due) -> None:
        """Bring a view up as far as there is room for keys. Raises what `_pass` does."""
        job, cleaner, known_to = await self._keys_mapped(partition, due)
        found = [
            (each.start, await self._in_thread(cleaner.look_over, each))
            for each in job.rewritings
            if each.start < known_to
        ]
        view = partition.compaction.view
        view = await self._in_thread(view.extended, job.rewritings[0].start, known_to, found)
        if partition.deleted:
            raise UnknownTopicError(f"{partition.name} was deleted")
        await partition.compaction.show(view)
        logger.info("%s: its compacted view was made up to offset %d", partition.name, known_to)

    async def _pass(self, partition: Partition, due: Due) -> tuple[int, int]:
        """Do as much as the keys that there is room for; return how many records were met and kept.

        Raises LogError, OSError, OvertakenError and StoppedError.
        """
        job, cleaner, known_to = await self._keys_mapped(partition, due)
        for rewriting in job.rewritings:
            if rewriting.start >= known_to:
                break
            await self._rewrite(partition, cleaner, rewriting, job)
        partition.compaction.cleaned(known_to)
        return cleaner.tally.records, cleaner.tally.records_kept

    async def _keys_mapped(
        self, partition: Partition, due: Due
    ) -> tuple[Job, Cleaner | RemoteCleaner, int]:
        """Return what is to be done, who does it, and up to where it knows the keys."""
        rewritings = await self._rewritings(partition, due)
        if not rewritings:
            raise LogError("its segments have changed")
        job = self._job(partition, due, rewritings)
        cleaner = await self._in_thread(cleaner_of, job, self._throttle, self._process)
        return job, cleaner, await self._in_thread(cleaner.map_keys)

    async def _rewritings(self, partition: Partition, due: Due) -> list[Rewriting]:
        runs = due.runs(partition.topic.config.log.segment_bytes)
        found = [await partition.compaction.rewriting(*run) for run in runs]
        return [] if None in found else [each for each in found if each is not None]

    def _job(self, partition: Partition, due: Due, rewritings: list[Rewriting]) -> Job:
        policy = partition.topic.config.compaction
        return Job(
            rewritings,
            due.dirty_from,
            now_ms=self.now_ms(),
            delete_retention_ms=min(policy.delete_retention_ms, _FOREVER_MS),
            keeps_keyless=not policy.is_on,
            last_batches=partition.producers.last_batches(),
            aborted=partition.packed_aborted(due.segments[0].base_offset, due.end),
        )

    async def _rewrite(
        self,
        partition: Partition,
        cleaner: Cleaner | RemoteCleaner,
        rewriting: Rewriting,
        job: Job,
    ) -> None:
        """Write some segments anew. Raises what `_pass` does: what comes after those that stay as
        they were must stay, too, or a tombstone would go before what it deletes.
        """
        try:
            is_needed = await self._in_thread(cleaner.clean, rewriting)
            _check_wanted(partition, job)
            if is_needed:
                replacing = partition.compaction.replace(rewriting)
                name = f"compacting {partition.name}"
                if not await uninterrupted(replacing, name, refusals=LogError):
                    raise OvertakenError("it was trimmed")
        finally:
            await self._in_thread(rewriting.discard)

    def _is_refused(self, partition: Partition) -> bool:
        if self._refused.get(partition.id, 0.0) > time.monotonic():
            return True
        self._refused.pop(partition.id, None)
        return False

    def _refuse(self, partition: Partition, error: Exception) -> None:
        if not partition.deleted:
            logger.warning("%s is not compacted for now: %s", partition.name, error)
            self._refused[partition.id] = time.monotonic() + COMPACTION_RETRY_SECONDS

    async def _in_thread(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        """Do something in the thread; also who is cancelled waits for its end, which is soon."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="compaction")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(work, *arguments))


def _check_wanted(partition: Partition, job: Job) -> None:
    """Raise UnknownTopicError where the topic is gone, OvertakenError where it keeps every message
    by now.
    """
    if partition.deleted:
        raise UnknownTopicError(f"{partition.name} was deleted")
    if not (job.keeps_keyless or partition.topic.config.compaction.is_on):
        raise OvertakenError("it is not compacted any more")
