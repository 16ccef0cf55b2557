"""Deleted topics' logs and folders go in the background, a few topics at a time."""

from __future__ import annotations

import logging
from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from penstock.limits import TOPICS_CHANGED_TOGETHER
from penstock.metadata.errors import MetadataError
from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage
    from penstock.metadata.topics import TopicRepository

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
        gone = [each for each, failure in zip(topic_ids, failures, strict=True) if failure is None]
        try:
            await self._repository.forget_deleted(gone)
        except MetadataError as error:
            failures.append(error)
        for failure in filter(None, failures):
            logger.warning("a deleted topic's folder is left to the next start: %s", failure)
