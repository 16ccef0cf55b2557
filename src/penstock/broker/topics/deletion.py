"""Deleting topics and partitions: their rows go first, then what is in memory, then the folders."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from penstock.broker.errors import UnknownTopicError
from penstock.broker.topics.removal import Removal
from penstock.metadata.topics import DeletedPartition
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from penstock.broker.topics.index import TopicIndex
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.storage import Storage
    from penstock.broker.topics.topic import Topic
    from penstock.metadata.topics import TopicRepository

logger = logging.getLogger(__name__)


class Deletion:
    """Does it; nobody else changes topics meanwhile. `partitions` are all there are, by id."""

    def __init__(
        self,
        repository: TopicRepository,
        storage: Storage,
        index: TopicIndex,
        partitions: dict[int, Partition],
    ) -> None:
        self._repository = repository
        self._storage = storage
        self._index = index
        self._partitions = partitions
        self._removal = Removal(repository, storage)
        self._on_topic: list[Callable[[Topic], None]] = []
        self._on_partitions: list[Callable[[Topic, Sequence[Partition]], None]] = []

    def on_topic(self, listener: Callable[[Topic], None]) -> None:
        """Have `listener` called with each topic that was deleted, after its partitions were."""
        self._on_topic.append(listener)

    def on_partitions(self, listener: Callable[[Topic, Sequence[Partition]], None]) -> None:
        """Have `listener` called with the partitions of a topic that were deleted."""
        self._on_partitions.append(listener)

    def resume(self) -> list[UUID]:
        """Go on where the last run ended; return the topics whose folders are going. Blocks."""
        topics = self._repository.deleted()
        for topic_id in topics:
            self._removal.begin(topic_id)
        partitions = self._repository.deleted_partitions()
        self._storage.doom_now(partitions)
        if partitions:
            self._removal.begin_partitions(partitions)
        return topics

    async def close(self) -> None:
        """Return when the logs of all that was deleted are closed."""
        await self._removal.close()

    async def delete_topics(self, topics: Sequence[Topic]) -> list[Exception | None]:
        """Return of each topic why it could not be deleted, or None."""
        pace = Pace()
        distinct = list(dict.fromkeys(topics))
        failures = await asyncio.gather(*map(self._delete_rows, distinct))
        outcomes = dict(zip(distinct, failures, strict=True))
        for topic in distinct:
            if outcomes[topic] is None:
                await self._forget_topic(topic, pace)
        return [outcomes.pop(topic, deleted_meanwhile(topic)) for topic in topics]

    async def delete_last_partitions(self, topic: Topic, count: int) -> None:
        """Delete the last partitions of a topic, which has so many. Raises MetadataError."""
        doomed = topic.partitions[len(topic.partitions) - count :]
        rows = [DeletedPartition(topic.id, each.id, each.index) for each in doomed]
        # As with topics: none that refers to them may be written any more.
        _mark(doomed, deleted=True)
        try:
            await self._repository.delete_partitions(rows)
        except BaseException:
            _mark(doomed, deleted=False)
            raise
        self._index.changes.gone(topic)
        del topic.partitions[len(topic.partitions) - count :]
        self._index.changes.appeared(topic)
        pace = Pace()
        await self._forget_partitions(topic, doomed, pace)
        await pace.each_awaited(doomed, lambda each: each.abandon())
        await self._storage.doom(rows)
        self._removal.begin_partitions(rows)
        logger.info("deleted %d partitions of topic %s", count, topic.name.kafka)

    async def _delete_rows(self, topic: Topic) -> Exception | None:
        if self._index.by_id(topic.id) is not topic:
            return deleted_meanwhile(topic)
        # First: once its rows are gone, none that refers to them may be written any more.
        topic.mark_deleted()
        try:
            await self._repository.delete(topic.id)
        except Exception as error:
            topic.mark_deleted(deleted=False)
            return error
        return None

    async def _forget_topic(self, topic: Topic, pace: Pace) -> None:
        self._index.remove(topic)
        await self._forget_partitions(topic, topic.partitions, pace)
        for listener in self._on_topic:
            listener(topic)
        self._removal.begin(topic.id, topic.partitions)
        logger.info("deleted topic %s", topic.name.kafka)

    async def _forget_partitions(
        self, topic: Topic, partitions: Sequence[Partition], pace: Pace
    ) -> None:
        for partition in partitions:
            del self._partitions[partition.id]
            partition.forget()
            if pace.is_over():
                await pace.others()
        for listener in self._on_partitions:
            listener(topic, partitions)


def deleted_meanwhile(topic: Topic) -> UnknownTopicError:
    """Return why nothing can be done with a topic that is gone."""
    return UnknownTopicError(f"topic {topic.name.kafka} was deleted")


def _mark(partitions: Iterable[Partition], *, deleted: bool) -> None:
    for partition in partitions:
        partition.deleted = deleted
