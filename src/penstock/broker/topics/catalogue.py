"""All topics of the node: their names, ids and partitions, in memory and in the database."""

from __future__ import annotations

import asyncio
import logging
import uuid
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from penstock import wall_clock
from penstock.broker.creations import partition_creations
from penstock.broker.errors import (
    BrokerError,
    InvalidPartitionCountError,
    TopicExistsError,
    UnknownNamespaceError,
)
from penstock.broker.reading.conversion_cache import ConversionCache
from penstock.broker.topics.changes import TopicChanges
from penstock.broker.topics.config import (
    NOTHING_SET,
    Explicit,
    SharedConfigs,
    TopicConfig,
    checked,
    not_in_effect,
)
from penstock.broker.topics.deletion import Deletion, deleted_meanwhile
from penstock.broker.topics.index import TopicIndex
from penstock.broker.topics.joined import Joined
from penstock.broker.topics.making import Identities, NewPartitions, PartitionMaker
from penstock.broker.topics.measuring import measure_all
from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.broker.topics.new_topic import NewTopic
from penstock.broker.topics.partition import Partition
from penstock.broker.topics.stored_config import canonical
from penstock.broker.topics.topic import Topic
from penstock.broker.topics.watch import watch_files
from penstock.broker.transactions.verification import Verification
from penstock.limits import TOPICS_CHANGED_TOGETHER
from penstock.metadata.topics import TopicRow, TopicUpdate
from penstock.pace import Pace
from penstock.tasks import Tasks, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from penstock.broker.settings import BrokerSettings
    from penstock.broker.topics.namespaces import Namespaces
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
        self._repository = repository
        self._storage = storage
        self._namespaces = namespaces
        self._settings = settings
        self._conversions = ConversionCache(memory)
        self._configs = SharedConfigs(settings)
        self.verification = Verification()
        self.changes = TopicChanges()
        self._index = TopicIndex(self.changes)
        self._partitions_by_id: dict[int, Partition] = {}
        self.deletion = Deletion(repository, storage, self._index, self._partitions_by_id)
        self._tasks = Tasks()
        self._creations = partition_creations()
        # Two clients that ask for the same new topic at once must get the same one.
        self._changing = asyncio.Lock()
        self._identities = Identities(cluster_id, namespaces)
        given = (self._open_log, self._conversions, self.verification)
        self._maker = PartitionMaker(storage, self._identities, *given)
        self._creating = Joined(self._create_together, "creating topics")
        self._deleting = Joined(self._delete_together, "deleting topics")
        self._on_configured: list[Callable[[Topic], None]] = []
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
        return self.partition(partition_id) is not None

    def partition(self, partition_id: int) -> Partition | None:
        """Return the partition of this id, unless its topic is gone or is being deleted."""
        partition = self._partitions_by_id.get(partition_id)
        return None if partition is None or partition.deleted else partition

    def all(self) -> list[Topic]:
        return self._index.all()

    def in_namespace(self, namespace: NamespaceName) -> list[Topic]:
        return self._index.in_namespace(namespace)

    def on_configured(self, listener: Callable[[Topic], None]) -> None:
        """Have `listener` called with each topic that has another configuration now."""
        self._on_configured.append(listener)

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
        iggy_topic_id: int | None = None,
        stream_id: int | None = None,
    ) -> Topic:
        """Create a topic as NewTopic says; its namespace comes into being with it.

        Raises TopicExistsError, TopicNumberTakenError, UnknownNamespaceError,
        InvalidPartitionCountError, InvalidSettingError, TopicsThrottledError, StorageError and
        MetadataError.
        """
        asked = NewTopic(name, partitions, partitioned, config, address, iggy_topic_id, stream_id)
        return await self._creating.ask(asked)

    async def create_all(self, asked: Sequence[NewTopic]) -> list[Topic | BaseException]:
        """Create topics as `create` does, each by itself; return each, or why it was refused."""
        return await self._creating.ask_all(asked)

    async def get_or_create(
        self,
        name: TopicName,
        partitions: int | None = None,
        *,
        partitioned: bool = True,
        config: Explicit = NOTHING_SET,
        address: str | None = None,
    ) -> Topic:
        """Return the topic of this name, created now as `create` does where it is missing.

        Raises what `create` raises.
        """
        count = self._settings.default_partitions if partitions is None else partitions
        asked = NewTopic(name, count, partitioned, config, address)
        while (found := self.get(name)) is None:
            try:
                return await self._creating.ask(asked)
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

    async def remove_partitions(self, topic: Topic, count: int) -> None:
        """Delete the last `count` partitions of a topic, with all that was stored about them.

        Those that come later in their place are others, and begin at offset 0. Raises
        InvalidPartitionCountError where it has fewer, UnknownTopicError and MetadataError.
        """
        await uninterrupted(
            self._remove_partitions(topic, count), "removing partitions", refusals=BrokerError
        )

    async def configure(
        self, topic: Topic, change: Callable[[TopicConfig], Explicit], *, name: str | None = None
    ) -> None:
        """Set for a topic what `change` makes of its configuration, which nobody changes meanwhile.

        It gets the name `name` in its namespace, or keeps its own. Raises what `change` does,
        InvalidSettingError, InvalidTopicNameError, TopicExistsError and UnknownTopicError.
        """
        await uninterrupted(
            self._configure(topic, change, name), "configuring a topic", refusals=BrokerError
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
        await self._deleting.ask(topic)

    async def delete_all(self, topics: Sequence[Topic]) -> list[BaseException | None]:
        """Delete topics as `delete` does; return of each why it could not be, or None."""
        return await self._deleting.ask_all(topics)

    async def delete_namespace(self, name: NamespaceName) -> None:
        """Delete a namespace with all its topics. Raises UnknownNamespaceError."""
        await uninterrupted(
            self._delete_namespace(name), "deleting a namespace", refusals=BrokerError
        )

    def load(self) -> None:
        """Read the database; logs are opened when they are first used. Blocks."""
        ids_of = self._repository.partition_ids()
        self._maker.ids_given = self._repository.partition_ids_given()
        for row in self._repository.all():
            topic = self._topic(row)
            for index, partition_id in sorted(ids_of.get(topic.id, {}).items()):
                partition = self._partition(topic, index, partition_id)
                topic.partitions.append(partition)
                self._partitions_by_id[partition_id] = partition
            self._index.add(topic)
            _warn(topic)
        known = {each.hex: "that was deleted" for each in self.deletion.resume()}
        self._storage.tidy(known | {topic.id.hex: topic.name.kafka for topic in self.all()})

    async def measure(self, partitions: Iterable[Partition]) -> None:
        """Have all partitions say how much they hold, also those of closed logs."""
        await measure_all(self._storage, partitions)

    def watch(self) -> None:
        """From now on close the logs of which files are removed under the running broker."""
        self._tasks.start(watch_files(self._partitions), "looking after the files of logs")

    def _partitions(self) -> Iterator[Partition]:
        return chain.from_iterable([*topic.partitions] for topic in self.all())

    def identify(self) -> None:
        """Have all folders say what they are: those of older releases don't. Blocks."""
        topics, identities = self.all(), self._identities
        self._storage.identify(
            (identities.of_topic(topic), map(identities.of_partition, topic.partitions))
            for topic in topics
        )

    async def close(self) -> None:
        """Checkpoint and close every log, for a next start without recovery."""
        self._tasks.cancel()
        await self._tasks.ended()
        await self.deletion.close()
        partitions = [each for topic in self.all() for each in topic.partitions]
        # A log that failed has said so, and is closed like the others.
        await asyncio.gather(*(each.finish() for each in partitions), return_exceptions=True)
        for partition in partitions:
            partition.close()

    async def _create_together(self, asked: Sequence[NewTopic]) -> list[Topic | Exception]:
        outcomes: dict[int, Topic | Exception] = {}
        async with self._changing:
            while left := [number for number in range(len(asked)) if number not in outcomes]:
                # Of those that ask for one name the first gets it, if it gets that far.
                firsts = {asked[number].name.kafka: number for number in reversed(left)}
                numbers = sorted(firsts.values())
                created = await self._create_distinct([asked[number] for number in numbers])
                outcomes |= zip(numbers, created, strict=True)
        return [outcomes[number] for number in range(len(asked))]

    async def _create_distinct(self, asked: Sequence[NewTopic]) -> list[Topic | Exception]:
        """Create topics of which no two have the same name."""
        pace = Pace()
        checked_ones = await pace.each(asked, self._checked)
        allowed = [each for each in checked_ones if isinstance(each, NewTopic)]
        created = iter(await self._create_allowed(allowed, pace))
        return [next(created) if isinstance(each, NewTopic) else each for each in checked_ones]

    def _checked(self, asked: NewTopic) -> NewTopic | BrokerError:
        try:
            self._check_count(asked.partitions)
            self._check_stream(asked)
            config = checked(asked.config)
            self._index.check_iggy_id(asked.name.in_namespace, asked.iggy_topic_id)
            self._check_free(asked.name)
            # A topic without partitions is none for free.
            self._creations.take(asked.address, max(1, asked.partitions))
            self._index.claim_iggy_id(asked.name.in_namespace, asked.iggy_topic_id)
        except BrokerError as refusal:
            return refusal
        return asked._replace(config=config)

    async def _create_allowed(
        self, asked: Sequence[NewTopic], pace: Pace
    ) -> list[Topic | Exception]:
        names = {each.name.in_namespace for each in asked}
        missing = [name for name in names if self._namespaces.get(name) is None]
        await asyncio.gather(*map(self._namespaces.get_or_create, missing))
        wanted = await pace.each(asked, self._wanted)
        made = zip(wanted, await self._maker.make(wanted), strict=True)
        return await pace.each(made, lambda each: self._conclude(each[0].topic, each[1]))

    def _wanted(self, asked: NewTopic) -> NewPartitions:
        row = TopicRow(
            uuid.uuid4(),
            *asked.name,
            kafka_name=asked.name.kafka,
            iggy_topic_id=self._index.take_iggy_id(asked.name.in_namespace, asked.iggy_topic_id),
            partitioned=asked.partitioned,
            config=asked.config,
            created_at_us=wall_clock.now_us(),
        )
        insert = partial(self._repository.insert, row)
        return NewPartitions(self._topic(row), asked.partitions, insert, is_new_topic=True)

    def _conclude(self, topic: Topic, made: list[Partition] | Exception) -> Topic | Exception:
        if isinstance(made, Exception):
            self._index.give_back_iggy_id(topic.name.in_namespace, topic.iggy_topic_id)
            return made
        self._index.add(topic)
        self._partitions_by_id.update((partition.id, partition) for partition in made)
        logger.info("created topic %s with %d partitions", topic.name.kafka, len(made))
        _warn(topic)
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

            insert = partial(self._repository.insert_partitions, topic.id)
            new = NewPartitions(topic, total, insert, is_new_topic=False)
            (made,) = await self._maker.make([new])
            if isinstance(made, Exception):
                raise made
            self._partitions_by_id.update((partition.id, partition) for partition in made)
            self.changes.appeared(topic)

    async def _remove_partitions(self, topic: Topic, count: int) -> None:
        async with self._changing:
            self._check_known(topic)
            if not 1 <= count <= len(topic.partitions):
                raise InvalidPartitionCountError(
                    f"topic {topic.name.kafka} has {len(topic.partitions)} partitions, not {count}"
                )
            await self.deletion.delete_last_partitions(topic, count)

    async def _configure(
        self, topic: Topic, change: Callable[[TopicConfig], Explicit], name: str | None
    ) -> None:
        async with self._changing:
            # Its namespace may have been renamed while it waited for its turn.
            renamed = topic.name if name is None else topic.name.renamed(name)
            await self._update(topic, renamed, change(topic.config))

    async def _update(self, topic: Topic, name: TopicName, config: Explicit) -> None:
        self._check_known(topic)
        self._check_free(name, topic)
        config = checked(config, topic.config.explicit)
        await self._repository.update(_update_of(topic, name, config))
        self._index.rename(topic, name)
        topic.config = self._configs.of(config)
        # In the same turn as it takes effect: nobody is judged by it who was not told.
        for partition in topic.partitions:
            partition.reconfigured()
        for listener in self._on_configured:
            listener(topic)
        await self._storage.rewrite([self._identities.of_topic(topic)])
        _warn(topic)

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
            await self._storage.rewrite([self._identities.of_topic(topic) for topic in moved])

    async def _delete_together(self, topics: Sequence[Topic]) -> list[Exception | None]:
        async with self._changing:
            return await self.deletion.delete_topics(topics)

    async def _delete_namespace(self, name: NamespaceName) -> None:
        is_empty = False
        while not is_empty:  # Others change topics between groups of them.
            async with self._changing:
                topics = self.in_namespace(name)[:TOPICS_CHANGED_TOGETHER]
                failures = await self.deletion.delete_topics(topics)
                for failure in filter(None, failures):
                    raise failure
                is_empty = not self.in_namespace(name)
                if is_empty:
                    await self._namespaces.delete(name)

    def _partition(self, topic: Topic, index: int, partition_id: int) -> Partition:
        assert index == len(topic.partitions), "partitions are numbered without gaps"
        epoch = self._storage.leader_epoch
        given = (self._open_log, self._conversions, self.verification)
        return Partition(topic, index, partition_id, epoch, *given)

    async def _open_log(self, partition: Partition) -> Log:
        identity = self._identities.of_partition(partition)
        config = partition.topic.config.log
        log = await self._storage.open_log(identity, config, partition.leader_epoch)
        for restore in self._before_open:
            await restore(partition, log)
        return log

    def _topic(self, row: TopicRow) -> Topic:
        return Topic(
            row.id,
            TopicName(row.tenant, row.namespace, row.topic),
            iggy_topic_id=row.iggy_topic_id,
            partitioned=row.partitioned,
            config=self._configs.of(canonical(row.config)),
            created_at_us=row.created_at_us,
        )

    def _check_stream(self, asked: NewTopic) -> None:
        if asked.stream_id is not None:
            namespace = self._namespaces.get(asked.name.in_namespace)
            if namespace is None or namespace.stream_id != asked.stream_id:
                raise UnknownNamespaceError(
                    f"stream {asked.stream_id} has gone or changed its name"
                )

    def _check_free(self, name: TopicName, owner: Topic | None = None) -> None:
        if self.by_kafka_name(name.kafka) not in {None, owner}:
            raise TopicExistsError(f"a topic that Kafka clients see as {name.kafka} exists")

    def _check_known(self, topic: Topic) -> None:
        if self.by_id(topic.id) is not topic:
            raise deleted_meanwhile(topic)

    def _check_count(self, partitions: int) -> None:
        most = self._settings.partitions_per_topic_max
        if not 0 <= partitions <= most:
            raise InvalidPartitionCountError(f"{partitions} partitions: a topic has up to {most}")


def _warn(topic: Topic) -> None:
    if missed := not_in_effect(topic.config.explicit):
        logger.warning("topic %s: %s", topic.name.kafka, missed)


def _update_of(topic: Topic, name: TopicName, config: Explicit) -> TopicUpdate:
    return TopicUpdate(topic.id, *name, kafka_name=name.kafka, config=config)
