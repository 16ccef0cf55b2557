"""Topics and their partitions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.metadata.store import Change
from penstock.metadata.tables import (
    DELETED_PARTITIONS,
    DELETED_TOPICS,
    PARTITIONS,
    PROPERTIES,
    TOPICS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.metadata.database import Parameters, Row
    from penstock.metadata.store import MetadataStore

_SELECT: Final = TOPICS.select(order_by=["created_at_us"])
_INSERT: Final = TOPICS.insert()
_UPDATE: Final = TOPICS.update("tenant", "namespace", "topic", "kafka_name", "config", where=["id"])
_DELETE: Final = TOPICS.delete(where=["id"])

_SELECT_PARTITIONS: Final = PARTITIONS.select()
_INSERT_PARTITIONS: Final = PARTITIONS.insert()
_DELETE_PARTITIONS: Final = PARTITIONS.delete(where=["id"])

_SELECT_DELETED: Final = DELETED_TOPICS.select()
_INSERT_DELETED: Final = DELETED_TOPICS.insert()
_FORGET_DELETED: Final = DELETED_TOPICS.delete(where=["id"])

_SELECT_DELETED_PARTITIONS: Final = DELETED_PARTITIONS.select()
_INSERT_DELETED_PARTITIONS: Final = DELETED_PARTITIONS.insert()
_FORGET_DELETED_PARTITIONS: Final = DELETED_PARTITIONS.delete(where=["topic_id", "id"])

_SELECT_GIVEN: Final = PROPERTIES.select(where=["name"])
_UPSERT_GIVEN: Final = PROPERTIES.upsert()
_GIVEN: Final = "partition_ids_given"
"""The highest id that a partition ever had: clients keep it, so no other one may have it."""


class TopicRow(NamedTuple):
    """A topic without its partitions; `config` is kept as JSON."""

    id: UUID
    tenant: str
    namespace: str
    topic: str
    kafka_name: str
    iggy_topic_id: int
    partitioned: bool
    config: Mapping[str, str]
    created_at_us: int


class TopicUpdate(NamedTuple):
    """What can change about the topic of this id, as a whole."""

    id: UUID
    tenant: str
    namespace: str
    topic: str
    kafka_name: str
    config: Mapping[str, str]


class DeletedPartition(NamedTuple):
    """A partition that is gone from a topic which is still there; its folder may not be."""

    topic_id: UUID
    id: int
    number: int


class TopicRepository:
    """Rows of `topics` and `partitions`. A partition has a number within its topic, and an id."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[TopicRow]:
        """Read all topics in the order in which they were made; blocks. Raises MetadataError."""
        return [_topic(row) for row in self._store.read(_SELECT)]

    def partition_ids(self) -> dict[UUID, dict[int, int]]:
        """Read each topic's partition ids by number; blocks. Raises MetadataError."""
        found: dict[UUID, dict[int, int]] = {}
        for partition_id, topic_id, number in self._store.read(_SELECT_PARTITIONS):
            found.setdefault(UUID(hex=topic_id), {})[number] = partition_id
        return found

    def partition_ids_given(self) -> int:
        """Read the highest id that any partition ever had; blocks. Raises MetadataError."""
        rows = self._store.read(_SELECT_GIVEN, {"name": _GIVEN})
        return int(rows[0][1]) if rows else 0

    async def insert(self, topic: TopicRow, partition_ids: Mapping[int, int]) -> None:
        """Store a topic with its partitions, whose ids by number are higher than all before.

        One transaction: a topic without its partitions is never seen, not even after a crash.
        Raises MetadataError.
        """
        inserted = Change(_INSERT, [_parameters(topic)])
        await self._store.write(inserted, *_partitions(topic.id, partition_ids))

    async def insert_partitions(self, topic_id: UUID, partition_ids: Mapping[int, int]) -> None:
        """Store more partitions, with ids by number as `insert` has them. Raises MetadataError."""
        await self._store.write(*_partitions(topic_id, partition_ids))

    async def keep_partition_ids_given(self, highest: int) -> None:
        """Store the highest id that any partition ever had. Raises MetadataError."""
        await self._store.write(_given(highest))

    async def update(self, topic: TopicUpdate) -> None:
        """Give a topic another name or configuration. Raises MetadataError."""
        await self._store.write(topic_updates([topic]))

    async def delete(self, topic_id: UUID) -> None:
        """Delete a topic and every row that is about it, and note that its folder has to go.

        Raises MetadataError.
        """
        of_topic = {"id": topic_id.hex}
        await self._store.write(Change(_DELETE, [of_topic]), Change(_INSERT_DELETED, [of_topic]))

    async def delete_partitions(self, partitions: Iterable[DeletedPartition]) -> None:
        """Delete partitions and every row that is about them, and note that their folders have to
        go. Raises MetadataError.
        """
        rows = [{**each._asdict(), "topic_id": each.topic_id.hex} for each in partitions]
        deleted = Change(_DELETE_PARTITIONS, [{"id": row["id"]} for row in rows])
        await self._store.write(deleted, Change(_INSERT_DELETED_PARTITIONS, rows))

    def deleted(self) -> list[UUID]:
        """Read which deleted topics may have a folder still; blocks. Raises MetadataError."""
        return [UUID(hex=topic_id) for (topic_id,) in self._store.read(_SELECT_DELETED)]

    async def forget_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Deleted topics' folders are gone. Raises MetadataError."""
        gone = [{"id": topic_id.hex} for topic_id in topic_ids]
        await self._store.write(Change(_FORGET_DELETED, gone))

    def deleted_partitions(self) -> list[DeletedPartition]:
        """Read which deleted partitions may have a folder still; blocks. Raises MetadataError."""
        rows = self._store.read(_SELECT_DELETED_PARTITIONS)
        return [DeletedPartition(UUID(hex=topic_id), *row) for topic_id, *row in rows]

    async def forget_deleted_partitions(self, partitions: Iterable[DeletedPartition]) -> None:
        """Deleted partitions' folders are gone. Raises MetadataError."""
        gone = [{"topic_id": each.topic_id.hex, "id": each.id} for each in partitions]
        await self._store.write(Change(_FORGET_DELETED_PARTITIONS, gone))


def topic_updates(topics: Iterable[TopicUpdate]) -> Change:
    """Return the change of several topics, for a transaction that other rows are part of."""
    return Change(_UPDATE, [_parameters(topic) for topic in topics])


def _partitions(topic_id: UUID, ids: Mapping[int, int]) -> list[Change]:
    of_topic = {"topic_id": topic_id.hex}
    rows = [{**of_topic, "id": each, "number": number} for number, each in ids.items()]
    return [Change(_INSERT_PARTITIONS, rows), _given(max(ids.values()))] if rows else []


def _given(highest: int) -> Change:
    return Change(_UPSERT_GIVEN, [{"name": _GIVEN, "value": str(highest)}])


def _topic(row: Row) -> TopicRow:
    values = dict(zip(TopicRow._fields, row, strict=True))
    values["id"] = UUID(hex=values["id"])
    values["partitioned"] = bool(values["partitioned"])  # SQLite has numbers for it.
    values["config"] = json.loads(values["config"])
    return TopicRow(**values)


def _parameters(topic: TopicRow | TopicUpdate) -> Parameters:
    return {**topic._asdict(), "id": topic.id.hex, "config": json.dumps(dict(topic.config))}
