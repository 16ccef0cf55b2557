"""Bringing the database and the folders of a stopped broker's data folder together again."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING
from uuid import UUID

from penstock import wall_clock
from penstock.broker.errors import DataFolderError
from penstock.broker.topics.identity import NodeIdentity, PartitionIdentity, TopicIdentity
from penstock.broker.topics.names import NamespaceName
from penstock.broker.topics.numbers import LowestFree
from penstock.log.layout import (
    CLUSTER_ID_FILE,
    DATABASE_FILE,
    partition_directory,
)
from penstock.log.repair import accept_beginning, marks_of
from penstock.metadata.namespaces import NamespaceRepository, NamespaceRow
from penstock.metadata.offsets import OffsetRepository
from penstock.metadata.properties import PropertyRepository
from penstock.metadata.store import MetadataStore
from penstock.metadata.subscriptions import SubscriptionRepository
from penstock.metadata.topics import TopicRepository, TopicRow
from penstock.server.inspection import (
    Catalogue,
    Finding,
    Folders,
    Problem,
    inspect,
    kafka_name,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def examine(data_folder: Path) -> list[Finding]:
    """Return what is wrong with a data folder that no broker uses.

    Raises MetadataError and OSError.
    """
    catalogue = Catalogue()
    if (data_folder / DATABASE_FILE).exists():
        store = MetadataStore.open(data_folder / DATABASE_FILE)
        try:
            catalogue = Catalogue.read(store)
        finally:
            store.close_now()
    return inspect(data_folder, catalogue, Folders.read(data_folder, catalogue.deleted_partitions))


async def rebuild(data_folder: Path) -> list[str]:
    """Add to the database, made if need be, what the folders have; return what was done, in words.

    The epoch and the ids that it gives are above all that are in the folders then.
    Raises DataFolderError, MetadataError and OSError.
    """
    store = MetadataStore.open(data_folder / DATABASE_FILE)
    try:
        return await _Rebuilding(data_folder, store).run()
    finally:
        await store.close()


async def accept_loss(data_folder: Path, names: Collection[str]) -> list[str]:
    """Have the logs of these names, as `examine` has them, go on without what is missing.

    Raises DataFolderError where nothing is missing of one, and MetadataError and OSError.
    """
    missing = {
        finding.about: finding
        for finding in examine(data_folder)
        if finding.problem in {Problem.LOG_MISSING, Problem.BEGINNING_MISSING}
    }
    for name in names:
        if name not in missing:
            raise DataFolderError(f"nothing is missing of {name}, and nothing was changed")
    store = MetadataStore.open(data_folder / DATABASE_FILE)
    try:
        catalogue = Catalogue.read(store)
        seen = _seen_offsets(store)
    finally:
        await store.close()
    cluster_id = Folders.read(data_folder, ()).cluster_id or catalogue.cluster_id or ""
    done = []
    for folder_name, topic in catalogue.topics.items():
        for index, partition_id in catalogue.partition_ids[folder_name].items():
            name = f"{topic.kafka_name}-{index}"
            if name in names:
                identity = PartitionIdentity(
                    *(cluster_id, folder_name, topic.kafka_name, index, partition_id),
                    wall_clock.now_us(),
                )
                is_whole = missing[name].problem is Problem.LOG_MISSING
                folder = _folder_for(data_folder, identity, make_anew=is_whole)
                start = accept_beginning(folder, seen.get(partition_id, 0))
                done.append(f"{name} begins at offset {start}")
    return done


def _seen_offsets(store: MetadataStore) -> dict[int, int]:
    """Return the highest offset of each partition, by id, that somebody has read up to."""
    seen: dict[int, int] = {}
    for offset in OffsetRepository(store).all():
        seen[offset.partition_id] = max(seen.get(offset.partition_id, 0), offset.offset)
    for subscription in SubscriptionRepository(store).all():
        partition_id = subscription.partition_id
        seen[partition_id] = max(seen.get(partition_id, 0), subscription.mark_delete)
    return seen


def _folder_for(data_folder: Path, identity: PartitionIdentity, *, make_anew: bool) -> Path:
    """Return a log's folder; what is in the place of a missing one is put aside."""
    folder = partition_directory(data_folder, UUID(identity.topic_id), identity.index)
    if make_anew:
        if folder.exists():
            shutil.move(folder, folder.with_name(f"{folder.name}.put-aside-{time.time_ns()}"))
        folder.mkdir(parents=True)
        identity.write(folder)
    return folder


class _Rebuilding:
    """One run over one data folder."""

    def __init__(self, data_folder: Path, store: MetadataStore) -> None:
        self._data_folder = data_folder
        self._topics = TopicRepository(store)
        self._namespaces = NamespaceRepository(store)
        self._properties = PropertyRepository(store)
        self._catalogue = Catalogue.read(store)
        self._folders = Folders.read(data_folder, self._catalogue.deleted_partitions)
        self._names = {row.kafka_name for row in self._catalogue.topics.values()}
        self._streams = {
            NamespaceName(row.tenant, row.namespace) for row in self._catalogue.namespaces
        }
        self._stream_ids = {row.stream_id for row in self._catalogue.namespaces}
        self._done: list[str] = []

    async def run(self) -> list[str]:
        cluster_id = self._cluster_id()
        epoch, producer_ids = self._marks()
        ids = [
            partition.partition_id
            for partitions in self._folders.partitions.values()
            for partition in partitions.values()
        ]
        given = max([self._catalogue.partition_ids_given, *ids])
        self._properties.raise_numbers(epoch, producer_ids)
        self._properties.keep_cluster_id(cluster_id)
        if not self._catalogue.topics:
            self._properties.folders_were_identified()  # All that come are.
        for name, topic in self._folders.topics.items():
            if name not in self._catalogue.deleted and topic.cluster == cluster_id:
                await self._add(name, topic)
        await self._topics.keep_partition_ids_given(given)
        NodeIdentity(cluster_id, epoch).write(self._data_folder)
        (self._data_folder / CLUSTER_ID_FILE).write_text(cluster_id)
        return [*self._done, f"the next start has epoch {epoch + 1}"]

    def _cluster_id(self) -> str:
        in_topics = {topic.cluster for topic in self._folders.topics.values()}
        found = self._folders.cluster_id or self._catalogue.cluster_id
        if found is None and len(in_topics) == 1:
            (found,) = in_topics
        if found is None:
            raise DataFolderError(
                f"the folders of {self._data_folder} do not say to which cluster they belong"
            )
        if self._catalogue.cluster_id not in {None, found}:
            raise DataFolderError(
                f"the database is of cluster {self._catalogue.cluster_id} and the folders are of "
                f"{found}: put the right one back, or move {DATABASE_FILE} away first"
            )
        return found

    def _marks(self) -> tuple[int, int]:
        """Return the epoch and the end of the producer ids that are above all in the folders."""
        node = self._folders.node
        epoch = max(self._catalogue.epoch, -1 if node is None else node.epoch)
        producer_ids = self._catalogue.producer_ids_reserved
        for name, partitions in self._folders.partitions.items():
            for index in partitions:
                marks = marks_of(partition_directory(self._data_folder, UUID(name), index))
                # The epoch of a batch is under no checksum; that of the folder is no guess.
                epoch = max(epoch, marks.leader_epoch) if node is None else epoch
                producer_ids = max(producer_ids, marks.producer_id + 1)
        return epoch, producer_ids

    async def _add(self, name: str, topic: TopicIdentity) -> None:
        known = self._catalogue.partition_ids.get(name, {})
        found = self._folders.partitions[name]
        ids = {index: each.partition_id for index, each in found.items() if index not in known}
        count = max([*known, *found], default=-1) + 1
        if set(known) | set(ids) != set(range(count)):
            self._done.append(f"{kafka_name(topic)} lacks partitions and was left alone")
            return
        if not ids and name in self._catalogue.topics:
            return
        if name in self._catalogue.topics:
            await self._topics.insert_partitions(UUID(name), ids)
        elif kafka_name(topic) in self._names:
            self._done.append(f"{kafka_name(topic)} is another topic's name; {name} was left alone")
            return
        else:
            await self._add_stream(topic)
            await self._topics.insert(self._row(name, topic), ids)
        self._done.append(f"{kafka_name(topic)} is back with {len(ids)} partitions")

    async def _add_stream(self, topic: TopicIdentity) -> None:
        stream = NamespaceName(topic.tenant, topic.namespace)
        if stream in self._streams:
            return
        number = topic.stream_id
        if number in self._stream_ids:
            number = LowestFree(self._stream_ids).take()
        await self._namespaces.insert(NamespaceRow(*stream, number, topic.created_at_us))
        self._streams.add(stream)
        self._stream_ids.add(number)

    def _row(self, name: str, topic: TopicIdentity) -> TopicRow:
        names = (topic.tenant, topic.namespace, topic.topic)
        taken = {
            row.iggy_topic_id
            for row in self._catalogue.topics.values()
            if (row.tenant, row.namespace) == names[:2]
        }
        number = topic.iggy_topic_id
        row = TopicRow(
            *(UUID(name), *names, kafka_name(topic)),
            iggy_topic_id=LowestFree(taken).take() if number in taken else number,
            partitioned=topic.partitioned,
            config=topic.config,
            created_at_us=topic.created_at_us,
        )
        self._catalogue.topics[name] = row
        self._names.add(row.kafka_name)
        return row
