"""New partitions: their folders, then their rows, then they themselves; those of many topics at
a time. What fails leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock import wall_clock
from penstock.broker.topics.folders import NewFolders
from penstock.broker.topics.identity import PartitionIdentity, TopicIdentity
from penstock.broker.topics.partition import Partition
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.reading.conversion_cache import ConversionCache
    from penstock.broker.topics.namespaces import Namespaces
    from penstock.broker.topics.own_topic import OwnTopic
    from penstock.broker.topics.partition import OpenLog
    from penstock.broker.topics.storage import Storage
    from penstock.broker.topics.topic import Topic
    from penstock.broker.transactions.verification import Verification


class Identities:
    """What the folders of one cluster's topics say of themselves."""

    def __init__(self, cluster_id: str, namespaces: Namespaces) -> None:
        self._cluster_id = cluster_id
        self._namespaces = namespaces

    def of_topic(self, topic: Topic) -> TopicIdentity:
        namespace = self._namespaces.get(topic.name.in_namespace)
        assert namespace is not None, "a topic's namespace lasts as long as the topic"
        return TopicIdentity(
            self._cluster_id,
            topic.id.hex,
            *topic.name,
            stream_id=namespace.stream_id,
            iggy_topic_id=topic.iggy_topic_id,
            partitioned=topic.partitioned,
            config=topic.config.explicit,
            created_at_us=topic.created_at_us,
        )

    def of_partition(self, partition: Partition) -> PartitionIdentity:
        return self.of_partitions(partition.topic, {partition.index: partition.id})[partition.index]

    def of_partitions(
        self, topic: OwnTopic, ids: Mapping[int, int]
    ) -> dict[int, PartitionIdentity]:
        """Return those of partitions that may be yet to be made; `ids` are by index."""
        now, topic_id, name = wall_clock.now_us(), topic.id.hex, topic.name.kafka
        return {
            index: PartitionIdentity(self._cluster_id, topic_id, name, index, partition_id, now)
            for index, partition_id in ids.items()
        }


class NewPartitions(NamedTuple):
    """What one topic is to have: `total` partitions, and rows for those that it has not yet.

    `insert` stores the rows, given the new partitions' ids by index. A new topic comes into being
    with them.
    """

    topic: Topic
    total: int
    insert: Callable[[Mapping[int, int]], Awaitable[None]]
    is_new_topic: bool


class PartitionMaker:
    """Gives partitions their ids; clients keep those, so that none is given twice."""

    def __init__(
        self,
        storage: Storage,
        identities: Identities,
        open_log: OpenLog,
        conversions: ConversionCache,
        verification: Verification,
    ) -> None:
        self._storage = storage
        self._identities = identities
        self._conversions = conversions
        self._open_log = open_log
        self._verification = verification
        self.ids_given = 0
        """The highest id that any partition ever had."""

    async def make(self, wanted: Sequence[NewPartitions]) -> list[list[Partition] | Exception]:
        """Return each topic's new partitions, which it has now, or why none of them was made."""
        if not wanted:
            return []
        pace = Pace()
        ids = [self._take_ids(each) for each in wanted]
        folders = await pace.each(zip(wanted, ids, strict=True), self._folders)
        failures = await self._storage.make_folders(folders)
        inserts = map(self._insert, wanted, ids, folders, failures)
        outcomes = await asyncio.gather(*inserts)
        return [
            await self._open_all(each.topic, ids_of_it, pace) if failure is None else failure
            for each, ids_of_it, failure in zip(wanted, ids, outcomes, strict=True)
        ]

    def _take_ids(self, new: NewPartitions) -> dict[int, int]:
        indexes = range(len(new.topic.partitions), new.total)
        first_id = self.ids_given + 1
        self.ids_given += len(indexes)
        return dict(zip(indexes, range(first_id, first_id + len(indexes)), strict=True))

    def _folders(self, new: tuple[NewPartitions, Mapping[int, int]]) -> NewFolders:
        (topic, _, _, is_new_topic), ids = new
        identity = self._identities.of_topic(topic)
        partitions = self._identities.of_partitions(topic, ids)
        return NewFolders(identity, partitions, is_new_topic)

    async def _insert(
        self,
        new: NewPartitions,
        ids: Mapping[int, int],
        folders: NewFolders,
        failure: Exception | None,
    ) -> Exception | None:
        """Insert the rows of partitions that have folders; return what has failed, if anything."""
        if failure is None:
            try:
                await new.insert(ids)
            except Exception as error:
                await self._storage.remove_folders(folders)
                return error
        return failure

    async def _open_all(self, topic: Topic, ids: Mapping[int, int], pace: Pace) -> list[Partition]:
        made = await pace.each_awaited(ids.items(), lambda each: self._open(topic, *each))
        topic.partitions += made
        return made

    async def _open(self, topic: Topic, index: int, partition_id: int) -> Partition:
        log = self._storage.new_log(topic.id, index, topic.config.log)
        given = (self._conversions, self._open_log, self._verification)
        return await Partition.open(topic, index, partition_id, log, *given)
