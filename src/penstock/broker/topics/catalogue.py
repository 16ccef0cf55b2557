"""All topics of the node: their names, ids and partitions, in memory and in the database."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import uuid
from typing import TYPE_CHECKING

from penstock.broker.errors import (
    InvalidPartitionCountError,
    TopicExistsError,
    UnknownTopicError,
)
from penstock.broker.reading.conversion_cache import ConversionCache
from penstock.broker.topics.config import (
    NOTHING_SET,
    Explicit,
    TopicConfig,
    checked,
    not_in_effect,
)
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.stored_config import canonical
from penstock.broker.topics.topic import Topic
from penstock.metadata.topics import TopicRow, TopicUpdate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.broker.settings import BrokerSettings
    from penstock.broker.topics.namespaces import Namespaces
    from penstock.broker.topics.storage import Storage
    from penstock.log import Log
    from penstock.metadata.topics import TopicRepository

logger = logging.getLogger(__name__)


class Topics:
    """The registry. Look-ups are answered from memory; changes are durable when they return."""

    def __init__(
        self,
        repository: TopicRepository,
        storage: Storage,
        namespaces: Namespaces,
        settings: BrokerSettings,
    ) -> None:
        self._repository = repository
        self._storage = storage
        self._namespaces = namespaces
        self._settings = settings
        self._conversions = ConversionCache()
        self._by_name: dict[TopicName, Topic] = {}
        self._by_kafka_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        # Two clients that ask for the same new topic at once must get the same one.
        self._changing = asyncio.Lock()
        self._on_delete: list[Callable[[Topic], None]] = []

    def get(self, name: TopicName) -> Topic | None:
        return self._by_name.get(name)

    def by_kafka_name(self, name: str) -> Topic | None:
        return self._by_kafka_name.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def by_iggy_id(self, namespace: NamespaceName, topic_id: int) -> Topic | None:
        for topic in self.in_namespace(namespace):
            if topic.iggy_topic_id == topic_id:
                return topic
        return None

    def all(self) -> list[Topic]:
        return list(self._by_name.values())

    def in_namespace(self, namespace: NamespaceName) -> list[Topic]:
        return [topic for topic in self.all() if topic.name.in_namespace == namespace]

    def on_delete(self, listener: Callable[[Topic], None]) -> None:
        """Have `listener` called with each topic that was deleted, to drop what it keeps."""
        self._on_delete.append(listener)

    async def create(
        self,
        name: TopicName,
        partitions: int,
        *,
        partitioned: bool = True,
        config: Explicit = NOTHING_SET,
    ) -> Topic:
        """Create a topic; its namespace comes into being with it.

        Raises TopicExistsError, InvalidPartitionCountError, InvalidSettingError and MetadataError.
        """
        async with self._changing:
            return await self._create(name, partitions, partitioned, config)

    async def get_or_create(
        self, name: TopicName, partitions: int | None = None, *, partitioned: bool = True
    ) -> Topic:
        """Return the topic of this name, created now with the node's defaults where it is missing.

        Raises what `create` raises.
        """
        async with self._changing:
            found = self._by_name.get(name)
            if found is not None:
                return found
            count = self._settings.default_partitions if partitions is None else partitions
            return await self._create(name, count, partitioned, NOTHING_SET)

    async def add_partitions(self, topic: Topic, total: int) -> None:
        """Let a topic have `total` partitions. Raises InvalidPartitionCountError for fewer."""
        async with self._changing:
            self._check_known(topic)
            self._check_count(total)
            if total <= len(topic.partitions):
                raise InvalidPartitionCountError(
                    f"topic {topic.name.kafka} has {len(topic.partitions)} partitions already"
                )
            indexes = range(len(topic.partitions), total)
            ids = await self._repository.insert_partitions(topic.id, indexes)
            await self._open_partitions(topic, ids)

    async def update(self, topic: Topic, name: TopicName, config: Explicit) -> None:
        """Give a topic this name, which may be its own, and this configuration.

        Raises TopicExistsError, InvalidSettingError and UnknownTopicError.
        """
        async with self._changing:
            self._check_known(topic)
            self._check_free(name, topic)
            config = checked(config, topic.config.explicit)
            await self._repository.update(_update_of(topic, name, config))
            self._forget(topic)
            topic.name = name
            topic.config = TopicConfig.of(config, self._settings)
            self._remember(topic)
            _warn(topic)
            for partition in topic.partitions:
                partition.reconfigured()

    async def rename_namespace(self, old: NamespaceName, new: NamespaceName) -> None:
        """Move a namespace's topics to a new name, in which it lives on.

        Raises UnknownNamespaceError, NamespaceExistsError and TopicExistsError.
        """
        async with self._changing:
            moved = {topic: TopicName(*new, topic.name.topic) for topic in self.in_namespace(old)}
            for topic, name in moved.items():
                self._check_free(name, topic)
            updates = [
                _update_of(topic, name, topic.config.explicit) for topic, name in moved.items()
            ]
            await self._namespaces.rename(old, new, updates)
            for topic, name in moved.items():
                self._forget(topic)
                topic.name = name
                self._remember(topic)

    async def delete(self, topic: Topic) -> None:
        """Delete a topic with its messages and all that was stored about it.

        Raises UnknownTopicError when somebody else deleted it first.
        """
        async with self._changing:
            self._check_known(topic)
            await self._delete(topic)

    async def delete_namespace(self, name: NamespaceName) -> None:
        """Delete a namespace with all its topics. Raises UnknownNamespaceError."""
        async with self._changing:
            for topic in self.in_namespace(name):
                await self._delete(topic)
            await self._namespaces.delete(name)

    async def load(self) -> None:
        """Read the database and open every log, recovering what needs it; blocks."""
        ids_of = self._repository.partition_ids()
        for row in self._repository.all():
            topic = self._topic(row)
            ids = ids_of.get(topic.id, {})
            await self._add_partitions(topic, ids, self._open_logs(topic, ids))
            self._remember(topic)
            _warn(topic)
        self._storage.tidy(self._by_id)

    async def close(self) -> None:
        """Checkpoint and close every log, for a next start without recovery."""
        partitions = [each for topic in self._by_name.values() for each in topic.partitions]
        # A log that failed has said so, and is closed like the others.
        await asyncio.gather(*(each.finish() for each in partitions), return_exceptions=True)
        for partition in partitions:
            partition.close()

    async def _create(
        self, name: TopicName, partitions: int, partitioned: bool, config: Explicit
    ) -> Topic:
        self._check_count(partitions)
        config = checked(config)
        self._check_free(name)
        await self._namespaces.get_or_create(name.in_namespace)
        row = TopicRow(
            uuid.uuid4(),
            *name,
            kafka_name=name.kafka,
            iggy_topic_id=self._free_iggy_id(name.in_namespace),
            partitioned=partitioned,
            config=config,
            created_at_us=time.time_ns() // 1000,
        )
        topic = self._topic(row)
        await self._open_partitions(topic, await self._repository.insert(row, partitions))
        self._remember(topic)
        logger.info("created topic %s with %d partitions", name.kafka, partitions)
        _warn(topic)
        return topic

    async def _delete(self, topic: Topic) -> None:
        await self._repository.delete(topic.id)
        self._forget(topic)
        for partition in topic.partitions:
            partition.forget()
        for listener in self._on_delete:
            listener(topic)
        for partition in topic.partitions:
            partition.abandon()
        await self._storage.delete_topic(topic.id)
        logger.info("deleted topic %s", topic.name.kafka)

    async def _open_partitions(self, topic: Topic, ids: Mapping[int, int]) -> None:
        logs = await asyncio.to_thread(self._open_logs, topic, ids)
        await self._add_partitions(topic, ids, logs)

    def _open_logs(self, topic: Topic, indexes: Iterable[int]) -> dict[int, Log]:
        return self._storage.open_logs(topic.id, sorted(indexes), topic.config.segment_bytes)

    def _topic(self, row: TopicRow) -> Topic:
        return Topic(
            row.id,
            TopicName(row.tenant, row.namespace, row.topic),
            iggy_topic_id=row.iggy_topic_id,
            partitioned=row.partitioned,
            config=TopicConfig.of(canonical(row.config), self._settings),
            created_at_us=row.created_at_us,
        )

    def _remember(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_kafka_name[topic.name.kafka] = topic
        self._by_id[topic.id] = topic

    def _forget(self, topic: Topic) -> None:
        del self._by_name[topic.name]
        del self._by_kafka_name[topic.name.kafka]
        del self._by_id[topic.id]

    async def _add_partitions(
        self, topic: Topic, ids: Mapping[int, int], logs: Mapping[int, Log]
    ) -> None:
        for index in sorted(ids):
            assert index == len(topic.partitions), "partitions are numbered without gaps"
            partition = await Partition.open(
                topic, index, ids[index], logs[index], self._conversions
            )
            topic.partitions.append(partition)

    def _free_iggy_id(self, namespace: NamespaceName) -> int:
        taken = {topic.iggy_topic_id for topic in self.in_namespace(namespace)}
        return next(number for number in itertools.count() if number not in taken)

    def _check_free(self, name: TopicName, owner: Topic | None = None) -> None:
        if self._by_kafka_name.get(name.kafka, owner) is not owner:
            raise TopicExistsError(f"a topic that Kafka clients see as {name.kafka} exists")

    def _check_known(self, topic: Topic) -> None:
        if self._by_id.get(topic.id) is not topic:
            raise UnknownTopicError(f"topic {topic.name.kafka} was deleted")

    def _check_count(self, partitions: int) -> None:
        if not 1 <= partitions <= self._settings.partitions_per_topic_max:
            raise InvalidPartitionCountError(
                f"{partitions} partitions: a topic has 1 to "
                f"{self._settings.partitions_per_topic_max}"
            )


def _warn(topic: Topic) -> None:
    if missed := not_in_effect(topic.config.explicit):
        logger.warning("topic %s: %s", topic.name.kafka, missed)


def _update_of(topic: Topic, name: TopicName, config: Explicit) -> TopicUpdate:
    return TopicUpdate(topic.id, *name, kafka_name=name.kafka, config=config)
