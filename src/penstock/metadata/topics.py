"""Topics and their partitions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.metadata.store import Change
from penstock.metadata.tables import PARTITIONS, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.metadata.database import Parameters, Row
    from penstock.metadata.store import MetadataStore

_SELECT: Final = TOPICS.select(order_by=["created_at_us"])
_INSERT: Final = TOPICS.insert()
_UPDATE: Final = TOPICS.update("tenant", "namespace", "topic", "kafka_name", "config", where=["id"])
_DELETE: Final = TOPICS.delete(where=["id"])

_SELECT_PARTITIONS: Final = PARTITIONS.select()
_SELECT_PARTITIONS_OF: Final = PARTITIONS.select(where=["topic_id"])
_INSERT_PARTITIONS: Final = PARTITIONS.insert()


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

    async def insert(self, topic: TopicRow, partitions: int) -> dict[int, int]:
        """Store a topic with its partitions, and return their ids by number.

        One transaction: a topic without its partitions is never seen, not even after a crash.
        Raises MetadataError.
        """
        return await self._insert(
            topic.id, range(partitions), Change(_INSERT, [_parameters(topic)])
        )

    async def insert_partitions(self, topic_id: UUID, numbers: range) -> dict[int, int]:
        """Store more partitions, and return their ids by number. Raises MetadataError."""
        return await self._insert(topic_id, numbers)

    async def update(self, topic: TopicUpdate) -> None:
        """Give a topic another name or configuration. Raises MetadataError."""
        await self._store.write(topic_updates([topic]))

    async def delete(self, topic_id: UUID) -> None:
        """Delete a topic and every row that is about it. Raises MetadataError."""
        await self._store.write(Change(_DELETE, [{"id": topic_id.hex}]))

    async def _insert(self, topic_id: UUID, numbers: range, *first: Change) -> dict[int, int]:
        of_topic = {"topic_id": topic_id.hex}
        found = await self._store.write(
            *first,
            Change(_INSERT_PARTITIONS, [{**of_topic, "number": number} for number in numbers]),
            Change(_SELECT_PARTITIONS_OF, [of_topic]),
        )
        return {number: partition_id for partition_id, _, number in found if number in numbers}


def topic_updates(topics: Iterable[TopicUpdate]) -> Change:
    """Return the change of several topics, for a transaction that other rows are part of."""
    return Change(_UPDATE, [_parameters(topic) for topic in topics])


def _topic(row: Row) -> TopicRow:
    values = dict(zip(TopicRow._fields, row, strict=True))
    values["id"] = UUID(hex=values["id"])
    values["partitioned"] = bool(values["partitioned"])  # SQLite has numbers for it.
    values["config"] = json.loads(values["config"])
    return TopicRow(**values)


def _parameters(topic: TopicRow | TopicUpdate) -> Parameters:
    return {**topic._asdict(), "id": topic.id.hex, "config": json.dumps(dict(topic.config))}
