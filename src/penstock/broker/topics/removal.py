"""Deleted topics' logs and folders go in the background, one topic after another."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from penstock.metadata.errors import MetadataError
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
        self._is_closing = False

    def begin(self, topic_id: UUID, partitions: Sequence[Partition] = ()) -> None:
        """Remove the folder of a topic that was deleted, once its logs are out of use."""
        self._doomed.append((topic_id, partitions))
        if not self._tasks:
            self._tasks.start(self._remove_all(), "removing deleted topics")

    async def close(self) -> None:
        """Return when the logs of all deleted topics are closed; the next start goes on."""
        self._is_closing = True
        await self._tasks.ended()

    async def _remove_all(self) -> None:
        while self._doomed:
            topic_id, partitions = self._doomed.popleft()
            for partition in partitions:
                await partition.abandon()
            if self._is_closing:
                continue
            try:
                await self._storage.remove_topic(topic_id)
                await self._repository.forget_deleted(topic_id)
            except (OSError, MetadataError) as error:
                logger.warning("a deleted topic's folder is left to the next start: %s", error)
