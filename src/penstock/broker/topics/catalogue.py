"""All topics of the node: their names, ids and partitions, in memory and in the database."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from itertools import chain
from typing import TYPE_CHECKING

from penstock.broker.creations import partition_creations
from penstock.broker.errors import (
    BrokerError,
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
from penstock.broker.topics.identity import PartitionIdentity, TopicIdentity
from penstock.broker.topics.index import TopicIndex
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.removal import Removal
from penstock.broker.topics.stored_config import canonical
from penstock.broker.topics.topic import Topic
from penstock.broker.topics.watch import watch_files
from penstock.metadata.topics import TopicRow, TopicUpdate
from penstock.tasks import Tasks, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from penstock.broker.settings import BrokerSettings
    from penstock.broker.topics.namespaces import Namespaces
    from penstock.broker.topics.partition import OwnTopic
    from penstock.broker.topics.storage import Storage
    from penstock.log import Log
    from penstock.memory import Memory
    from penstock.metadata.topics import TopicRepository

logger = logging.getLogger(__name__)


class Topics:
    """The registry. Look-ups are answered from memory; changes are durable when they return.

    A change that has begun goes on to its end, even where its caller is cancelled.
    """

    def __init__(
        self,
        repository: TopicRepository,
        storage: Storage,
        namespaces: Namespaces,
        settings: BrokerSettings,
        memory: Memory,
        cluster_id: str,
    ) -> None:
        self._cluster_id = cluster_id
        self._repository = repository
        self._storage = storage
        self._namespaces = namespaces
        self._settings = settings
        self._conversions = ConversionCache(memory)
        self._default_config = TopicConfig.of(NOTHING_SET, settings)
        self._index = TopicIndex()
        self._partitions_by_id: dict[int, Partition] = {}
        self._partition_ids_given = 0
        self._tasks = Tasks()
        self._removal = Removal(repository, storage)
        self._creations = partition_creations()
        # Two clients that ask for the same new topic at once must get the same one.
        self._changing = asyncio.Lock()
        self._on_delete: list[Callable[[Topic], None]] = []
        self._before_open: list[Callable[[Partition, Log], Awaitable[None]]] = []

    def get(self, name: TopicName) -> Topic | None:
        return self._index.by_name(name)

    def by_kafka_name(self, name: str) -> Topic | None:
        return self._index.by_kafka_name(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        return self._index.by_id(topic_id)

    def by_iggy_id(self, namespace: NamespaceName, topic_id: int) -> Topic | None:
        return self._index.by_iggy_id(namespace, topic_id)

    def has_partition(self, partition_id: int) -> bool:
        """Whether there is a partition of this id, and its topic is not being deleted."""
        partition = self._partitions_by_id.get(partition_id)
        return partition is not None and not partition.deleted

    def all(self) -> list[Topic]:
        return self._index.all()

    def in_namespace(self, namespace: NamespaceName) -> list[Topic]:
        return self._index.in_namespace(namespace)

    def on_delete(self, listener: Callable[[Topic], None]) -> None:
        """Have `listener` called with each topic that was deleted, to drop what it keeps."""
        self._on_delete.append(listener)

    def before_open(self, restore: Callable[[Partition, Log], Awaitable[None]]) -> None:
        """Have `restore` awaited for each partition that the last run left, before it is open.

        It brings back what belongs to the partition. What it raises keeps the partition closed.
        """
        self._before_open.append(restore)

    async def create(
        self,
        name: TopicName,
        partitions: int,
        *,
        partitioned: bool = True,
        config: Explicit = NOTHING_SET,
        address: str | None = None,
    ) -> Topic:
        """Create a topic; its namespace comes into being with it.

        `address` is that of the client that asks for it. Raises TopicExistsError,
        InvalidPartitionCountError, InvalidSettingError, TopicsThrottledError and MetadataError.
        """
        creating = self._create_in_turn(name, partitions, partitioned, config, address)
        return await uninterrupted(creating, "creating a topic", refusals=BrokerError)

    async def get_or_create(
        self,
        name: TopicName,
        partitions: int | None = None,
        *,
        partitioned: bool = True,
        address: str | None = None,
    ) -> Topic:
        """Return the topic of this name, created now with the node's defaults where it is missing.

        Raises what `create` raises.
        """
        count = self._settings.default_partitions if partitions is None else partitions
        while (found := self.get(name)) is None:
            try:
                return await self.create(name, count, partitioned=partitioned, address=address)
            except TopicExistsError:
                if self.get(name) is None:
                    raise  # Under another protocol's name.
        return found

    async def add_partitions(self, topic: Topic, total: int, *, address: str | None = None) -> None:
        """Let a topic have `total` partitions; `address` as in `create`.

        Raises InvalidPartitionCountError for fewer, TopicsThrottledError, StorageError and
        MetadataError.
        """
        await uninterrupted(
            self._add_partitions(topic, total, address), "adding partitions", refusals=BrokerError
        )

    async def update(self, topic: Topic, name: TopicName, config: Explicit) -> None:
        """Give a topic this name, which may be its own, and this configuration.

        Raises TopicExistsError, InvalidSettingError and UnknownTopicError.
        """
        await uninterrupted(
            self._update(topic, name, config), "updating a topic", refusals=BrokerError
        )

    async def rename_namespace(self, old: NamespaceName, new: NamespaceName) -> None:
        """Move a namespace's topics to a new name, in which it lives on.

        Raises UnknownNamespaceError, NamespaceExistsError and TopicExistsError.
        """
        await uninterrupted(
            self._rename_namespace(old, new), "renaming a namespace", refusals=BrokerError
        )

    async def delete(self, topic: Topic) -> None:
        """Delete a topic with its messages and all that was stored about it.

        Its name can be given again at once; its files are removed in the background.
        Raises UnknownTopicError when somebody else deleted it first.
        """
        await uninterrupted(self._delete_in_turn(topic), "deleting a topic", refusals=BrokerError)

    async def delete_namespace(self, name: NamespaceName) -> None:
        """Delete a namespace with all its topics. Raises UnknownNamespaceError."""
        await uninterrupted(
            self._delete_namespace(name), "deleting a namespace", refusals=BrokerError
        )

    def load(self) -> None:
        """Read the database; logs are opened when they are first used. Blocks."""
        ids_of = self._repository.partition_ids()
        self._partition_ids_given = self._repository.partition_ids_given()
        for row in self._repository.all():
            topic = self._topic(row)
            for index, partition_id in sorted(ids_of.get(topic.id, {}).items()):
                partition = self._partition(topic, index, partition_id)
                topic.partitions.append(partition)
                self._partitions_by_id[partition_id] = partition
            self._index.add(topic)
            _warn(topic)
        doomed = self._repository.deleted()
        known = {each.hex: "that was deleted" for each in doomed}
        self._storage.tidy(known | {topic.id.hex: topic.name.kafka for topic in self.all()})
        for topic_id in doomed:
            self._removal.begin(topic_id)

    def watch(self) -> None:
        """From now on close the logs of which files are removed under the running broker."""
        self._tasks.start(watch_files(self._partitions), "looking after the files of logs")

    def _partitions(self) -> Iterator[Partition]:
        return chain.from_iterable([*topic.partitions] for topic in self.all())

    def identify(self) -> None:
        """Have all folders say what they are: those of older releases don't. Blocks."""
        topics = self.all()
        self._storage.identify(
            (self._identity(topic), [self._identity_of(each) for each in topic.partitions])
            for topic in topics
        )

    async def close(self) -> None:
        """Checkpoint and close every log, for a next start without recovery."""
        self._tasks.cancel()
        await self._tasks.ended()
        await self._removal.close()
        partitions = [each for topic in self.all() for each in topic.partitions]
        # A log that failed has said so, and is closed like the others.
        await asyncio.gather(*(each.finish() for each in partitions), return_exceptions=True)
        for partition in partitions:
            partition.close()

    async def _create_in_turn(
        self,
        name: TopicName,
        partitions: int,
        partitioned: bool,
        config: Explicit,
        address: str | None,
    ) -> Topic:
        async with self._changing:
            self._check_count(partitions)
            config = checked(config)
            self._check_free(name)
            self._creations.take(address, partitions)
            await self._namespaces.get_or_create(name.in_namespace)
            number = self._index.take_iggy_id(name.in_namespace)
            try:
                topic = await self._create(name, number, partitions, partitioned, config)
            except BaseException:
                self._index.give_back_iggy_id(name.in_namespace, number)
                raise
        logger.info("created topic %s with %d partitions", name.kafka, partitions)
        _warn(topic)
        return topic

    async def _create(
        self, name: TopicName, number: int, partitions: int, partitioned: bool, config: Explicit
    ) -> Topic:
        row = TopicRow(
            uuid.uuid4(),
            *name,
            kafka_name=name.kafka,
            iggy_topic_id=number,
            partitioned=partitioned,
            config=config,
            created_at_us=time.time_ns() // 1000,
        )
        topic = self._topic(row)

        async def insert(ids: Mapping[int, int]) -> None:
            await self._repository.insert(row, ids)

        await self._make_partitions(topic, partitions, insert)
        self._index.add(topic)
        return topic

    async def _add_partitions(self, topic: Topic, total: int, address: str | None) -> None:
        async with self._changing:
            self._check_known(topic)
            self._check_count(total)
            if total <= len(topic.partitions):
                raise InvalidPartitionCountError(
                    f"topic {topic.name.kafka} has {len(topic.partitions)} partitions already"
                )
            self._creations.take(address, total - len(topic.partitions))

            async def insert(ids: Mapping[int, int]) -> None:
                await self._repository.insert_partitions(topic.id, ids)

            await self._make_partitions(topic, total, insert)

    async def _make_partitions(
        self, topic: Topic, total: int, insert: Callable[[Mapping[int, int]], Awaitable[None]]
    ) -> None:
        """Make folders, then rows, then partitions; what fails leaves nothing of them behind."""
        indexes = range(len(topic.partitions), total)
        first_id = self._partition_ids_given + 1
        ids = dict(zip(indexes, range(first_id, first_id + len(indexes)), strict=True))
        partitions = {
            index: self._partition_identity(topic, index, partition_id)
            for index, partition_id in ids.items()
        }
        logs = await self._storage.make_logs(
            self._identity(topic), partitions, topic.config.segment_bytes
        )
        try:
            await insert(ids)
        except BaseException:
            for log in logs.values():
                log.abandon()
            await self._storage.remove_partitions(topic.id, indexes)
            raise
        self._partition_ids_given += len(ids)
        made = [
            await Partition.open(
                *(topic, index, ids[index], logs[index]), self._conversions, self._open_log
            )
            for index in indexes
        ]
        topic.partitions += made
        self._partitions_by_id.update((partition.id, partition) for partition in made)

    async def _update(self, topic: Topic, name: TopicName, config: Explicit) -> None:
        async with self._changing:
            self._check_known(topic)
            self._check_free(name, topic)
            config = checked(config, topic.config.explicit)
            await self._repository.update(_update_of(topic, name, config))
            self._index.rename(topic, name)
            topic.config = self._config(config)
            await self._storage.rewrite([self._identity(topic)])
            _warn(topic)
            for partition in topic.partitions:
                partition.reconfigured()

    async def _rename_namespace(self, old: NamespaceName, new: NamespaceName) -> None:
        async with self._changing:
            moved = {topic: TopicName(*new, topic.name.topic) for topic in self.in_namespace(old)}
            for topic, name in moved.items():
                self._check_free(name, topic)
            updates = [
                _update_of(topic, name, topic.config.explicit) for topic, name in moved.items()
            ]
            await self._namespaces.rename(old, new, updates)
            for topic, name in moved.items():
                self._index.rename(topic, name)
            await self._storage.rewrite([self._identity(topic) for topic in moved])

    async def _delete_in_turn(self, topic: Topic) -> None:
        async with self._changing:
            self._check_known(topic)
            await self._delete(topic)

    async def _delete_namespace(self, name: NamespaceName) -> None:
        async with self._changing:
            for topic in self.in_namespace(name):
                await self._delete(topic)
            await self._namespaces.delete(name)

    async def _delete(self, topic: Topic) -> None:
        # First: once its rows are gone, none that refers to them may be written any more.
        for partition in topic.partitions:
            partition.deleted = True
        try:
            await self._repository.delete(topic.id)
        except BaseException:
            for partition in topic.partitions:
                partition.deleted = False
            raise
        self._index.remove(topic)
        for partition in topic.partitions:
            del self._partitions_by_id[partition.id]
            partition.forget()
        for listener in self._on_delete:
            listener(topic)
        self._removal.begin(topic.id, topic.partitions)
        logger.info("deleted topic %s", topic.name.kafka)

    def _identity(self, topic: Topic) -> TopicIdentity:
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

    def _identity_of(self, partition: Partition) -> PartitionIdentity:
        return self._partition_identity(partition.topic, partition.index, partition.id)

    def _partition_identity(
        self, topic: OwnTopic, index: int, partition_id: int
    ) -> PartitionIdentity:
        return PartitionIdentity(
            self._cluster_id,
            topic.id.hex,
            topic.name.kafka,
            index,
            partition_id,
            time.time_ns() // 1000,
        )

    def _config(self, explicit: Explicit) -> TopicConfig:
        # One object for all that leave everything to the node, which are most.
        return TopicConfig.of(explicit, self._settings) if explicit else self._default_config

    def _partition(self, topic: Topic, index: int, partition_id: int) -> Partition:
        assert index == len(topic.partitions), "partitions are numbered without gaps"
        epoch = self._storage.leader_epoch
        return Partition(topic, index, partition_id, epoch, self._open_log, self._conversions)

    async def _open_log(self, partition: Partition) -> Log:
        identity = self._identity_of(partition)
        log = await self._storage.open_log(
            identity, partition.topic.config.segment_bytes, partition.leader_epoch
        )
        for restore in self._before_open:
            await restore(partition, log)
        return log

    def _topic(self, row: TopicRow) -> Topic:
        return Topic(
            row.id,
            TopicName(row.tenant, row.namespace, row.topic),
            iggy_topic_id=row.iggy_topic_id,
            partitioned=row.partitioned,
            config=self._config(canonical(row.config)),
            created_at_us=row.created_at_us,
        )

    def _check_free(self, name: TopicName, owner: Topic | None = None) -> None:
        if self.by_kafka_name(name.kafka) not in {None, owner}:
            raise TopicExistsError(f"a topic that Kafka clients see as {name.kafka} exists")

    def _check_known(self, topic: Topic) -> None:
        if self.by_id(topic.id) is not topic:
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
