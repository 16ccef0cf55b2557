"""What does not belong together in the data folder of a broker that is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.broker.topics.identity import (
    IdentityError,
    NodeIdentity,
    PartitionIdentity,
    TopicIdentity,
)
from penstock.broker.topics.names import TopicName
from penstock.log.layout import (
    CLUSTER_ID_FILE,
    DATABASE_FILE,
    DELETED_SUFFIX,
    partition_directory,
    topics_directory,
)
from penstock.log.repair import missing_beginning
from penstock.metadata.namespaces import NamespaceRepository
from penstock.metadata.properties import PropertyRepository
from penstock.metadata.topics import TopicRepository

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from penstock.metadata.namespaces import NamespaceRow
    from penstock.metadata.store import MetadataStore
    from penstock.metadata.topics import TopicRow

REBUILD: Final = "--rebuild"


class Problem(StrEnum):
    """What is wrong."""

    DATABASE_MISSING = "database missing"
    DATABASE_FOREIGN = "database of another cluster"
    DATABASE_OLDER = "database older than folders"
    UNKNOWN_TOPIC = "topic not in database"
    NAMELESS_FOLDER = "folder says nothing of itself"
    LOG_MISSING = "log missing"
    BEGINNING_MISSING = "messages missing"


class Finding(NamedTuple):
    """One thing that is wrong, and the option of `penstock recover` that ends it, if any does."""

    problem: Problem
    about: str
    detail: str
    remedy: str = ""


@dataclass
class Catalogue:
    """What a database says, before anything is changed; what an absent one says is nothing."""

    is_there: bool = False
    cluster_id: str | None = None
    folders_are_identified: bool = False
    epoch: int = -1
    topics: dict[str, TopicRow] = field(default_factory=dict)
    """By the names of their folders."""
    partition_ids: dict[str, dict[int, int]] = field(default_factory=dict)
    namespaces: list[NamespaceRow] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    deleted_partitions: set[int] = field(default_factory=set)
    """Their ids; a folder of one may be there still."""
    partition_ids_given: int = 0
    producer_ids_reserved: int = 0

    @classmethod
    def read(cls, store: MetadataStore) -> Catalogue:
        """Read the database. Raises MetadataError."""
        topics, properties = TopicRepository(store), PropertyRepository(store)
        return cls(
            True,
            properties.cluster_id(),
            properties.folders_are_identified(),
            properties.epoch(),
            {row.id.hex: row for row in topics.all()},
            {topic_id.hex: ids for topic_id, ids in topics.partition_ids().items()},
            NamespaceRepository(store).all(),
            {topic_id.hex for topic_id in topics.deleted()},
            {partition.id for partition in topics.deleted_partitions()},
            topics.partition_ids_given(),
            properties.producer_ids_reserved(),
        )


@dataclass
class Folders:
    """What the folders say of themselves."""

    cluster_id: str | None
    node: NodeIdentity | None
    topics: dict[str, TopicIdentity] = field(default_factory=dict)
    partitions: dict[str, dict[int, PartitionIdentity]] = field(default_factory=dict)
    nameless: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, data_folder: Path, deleted: Collection[int]) -> Folders:
        """Read what each folder says, but for those of partitions that were deleted, by their ids.

        Raises OSError.
        """
        file = data_folder / CLUSTER_ID_FILE
        cluster_id = file.read_text().strip() if file.exists() else None
        try:
            node = NodeIdentity.read(data_folder)
        except IdentityError:
            node = None
        if cluster_id is None and node is not None:
            cluster_id = node.cluster
        found = cls(cluster_id, node)
        for folder in sorted(topics_directory(data_folder).glob("*")):
            if folder.suffix != DELETED_SUFFIX:
                found._add(folder, deleted)
        return found

    def _add(self, folder: Path, deleted: Collection[int]) -> None:
        try:
            identity = TopicIdentity.read(folder)
        except (IdentityError, NotADirectoryError):
            self.nameless.append(folder.name)
            return
        self.topics[folder.name] = identity
        of_topic = self.partitions.setdefault(folder.name, {})
        for each in folder.iterdir():
            try:
                partition = PartitionIdentity.read(each)
            except (IdentityError, NotADirectoryError):
                continue
            is_in_place = each.name == str(partition.index) and partition.topic_id == folder.name
            if is_in_place and partition.partition_id not in deleted:
                of_topic[partition.index] = partition


def inspect(data_folder: Path, catalogue: Catalogue, folders: Folders) -> list[Finding]:
    """Return all that is wrong; nothing is changed."""
    return [
        *_database(data_folder, catalogue, folders),
        *_unknown(catalogue, folders),
        *_missing(data_folder, catalogue, folders),
    ]


def kafka_name(topic: TopicIdentity) -> str:
    """Return the name by which `penstock recover` speaks of a topic."""
    return TopicName(topic.tenant, topic.namespace, topic.topic).kafka


def _database(data_folder: Path, catalogue: Catalogue, folders: Folders) -> Iterator[Finding]:
    file = str(data_folder / DATABASE_FILE)
    if not catalogue.is_there:
        yield Finding(Problem.DATABASE_MISSING, DATABASE_FILE, f"{file} is not there", REBUILD)
        return
    if folders.cluster_id is not None and catalogue.cluster_id not in {None, folders.cluster_id}:
        detail = f"{file} is of cluster {catalogue.cluster_id}, the folders {folders.cluster_id}"
        yield Finding(Problem.DATABASE_FOREIGN, DATABASE_FILE, f"{detail}: put the right one back")
    elif folders.node is not None and folders.node.epoch > catalogue.epoch:
        detail = (
            f"it knows of {catalogue.epoch + 1} starts, the folders of {folders.node.epoch + 1}"
        )
        yield Finding(Problem.DATABASE_OLDER, DATABASE_FILE, detail, REBUILD)


def _unknown(catalogue: Catalogue, folders: Folders) -> Iterator[Finding]:
    known = catalogue.topics.keys() | catalogue.deleted
    for name in folders.nameless:
        if name not in known:
            yield Finding(Problem.NAMELESS_FOLDER, name, "no topic is known to have it")
    for name, topic in folders.topics.items():
        if name in catalogue.deleted:
            continue
        of_topic = folders.partitions[name]
        new = of_topic.keys() - catalogue.partition_ids.get(name, {}).keys()
        if (new or name not in catalogue.topics) and folders.cluster_id in {None, topic.cluster}:
            detail = f"{len(new)} partitions in folder {name}"
            yield Finding(Problem.UNKNOWN_TOPIC, kafka_name(topic), detail, REBUILD)


def _missing(data_folder: Path, catalogue: Catalogue, folders: Folders) -> Iterator[Finding]:
    cluster_id = folders.cluster_id or catalogue.cluster_id or ""
    for name, topic in catalogue.topics.items():
        for index, partition_id in sorted(catalogue.partition_ids.get(name, {}).items()):
            about = f"{topic.kafka_name}-{index}"
            remedy = f"--accept-loss {about}"
            folder = partition_directory(data_folder, UUID(name), index)
            if not folder.is_dir():
                yield Finding(Problem.LOG_MISSING, about, f"{folder} is missing", remedy)
                continue
            expected = PartitionIdentity(
                *(cluster_id, name, topic.kafka_name, index, partition_id, 0)
            )
            try:
                if catalogue.folders_are_identified:
                    expected.check(folder)
            except IdentityError as error:
                yield Finding(Problem.LOG_MISSING, about, str(error), remedy)
                continue
            if (gap := missing_beginning(folder)) is not None:
                detail = f"offsets {gap.start}..{gap.end - 1} in {folder}"
                yield Finding(Problem.BEGINNING_MISSING, about, detail, remedy)
