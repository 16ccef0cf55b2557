"""Deleted topics' and partitions' logs and folders go in the background, a few at a time."""

from __future__ import annotations

import logging
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from penstock.limits import TOPICS_CHANGED_TOGETHER
from penstock.metadata.errors import MetadataError
from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from uuid import UUID

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage
    from penstock.metadata.topics import DeletedPartition, TopicRepository

RemovedT = TypeVar("RemovedT")

logger = logging.getLogger(__name__)


class Removal:
    """The database knows which folders have to go, so that a restart goes on with them."""

    def __init__(self, repository: TopicRepository, storage: Storage) -> None:
        self._repository = repository
        self._storage = storage
        self._doomed: deque[tuple[UUID, Sequence[Partition]]] = deque()
        self._tasks = Tasks()
        self._is_running = False
        self._is_closing = False

    def begin(self, topic_id: UUID, partitions: Sequence[Partition] = ()) -> None:
        """Remove the folder of a topic that was deleted, once its logs are out of use."""
        self._doomed.append((topic_id, partitions))
        if not self._is_running:
            self._is_running = True
            self._tasks.start(self._remove_all(), "removing deleted topics")

    def begin_partitions(self, partitions: Sequence[DeletedPartition]) -> None:
        """Remove the folders of partitions that were doomed."""
        self._tasks.start(self._remove_partitions(partitions), "removing deleted partitions")

    async def close(self) -> None:
        """Return when the logs of all deleted topics are closed; the next start goes on."""
        self._is_closing = True
        await self._tasks.ended()

    async def _remove_all(self) -> None:
        try:
            while self._doomed:
                count = min(len(self._doomed), TOPICS_CHANGED_TOGETHER)
                together = [self._doomed.popleft() for _ in range(count)]
                pace = Pace()
                for partition in chain.from_iterable(partitions for _, partitions in together):
                    await partition.abandon()
                    if pace.is_over():
                        await pace.others()
                if not self._is_closing:
                    await self._remove([topic_id for topic_id, _ in together])
        finally:
            self._is_running = False

    async def _remove(self, topic_ids: Sequence[UUID]) -> None:
        failures = await self._storage.remove_topics(topic_ids)
        await _forget(topic_ids, failures, self._repository.forget_deleted)

    async def _remove_partitions(self, partitions: Sequence[DeletedPartition]) -> None:
        for first in range(0, len(partitions), TOPICS_CHANGED_TOGETHER):
            if not self._is_closing:
                together = partitions[first : first + TOPICS_CHANGED_TOGETHER]
                failures = await self._storage.remove_partitions(together)
                await _forget(together, failures, self._repository.forget_deleted_partitions)


async def _forget(
    removed: Sequence[RemovedT],
    failures: list[Exception | None],
    forget: Callable[[Iterable[RemovedT]], Awaitable[None]],
) -> None:
    """Have the database forget those of which the folder was removed without a failure."""
    gone = [each for each, failure in zip(removed, failures, strict=True) if failure is None]
    try:
        await forget(gone)
    except MetadataError as error:
        failures.append(error)
    for failure in filter(None, failures):
        logger.warning("a deleted folder is left to the next start: %s", failure)
