"""Consumer groups of one topic each, as Iggy has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from penstock.metadata.store import Change
from penstock.metadata.tables import CONSUMER_GROUPS

if TYPE_CHECKING:
    from penstock.metadata.store import MetadataStore

_SELECT: Final = CONSUMER_GROUPS.select(order_by=["group_id"])
_INSERT: Final = CONSUMER_GROUPS.insert()
_DELETE: Final = CONSUMER_GROUPS.delete(where=["topic_id", "group_id"])


class TopicGroupRow(NamedTuple):
    """A group, numbered within its topic."""

    topic_id: UUID
    group_id: int
    name: str


class TopicGroupRepository:
    """Rows of `consumer_groups`. The database deletes them with their topic."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[TopicGroupRow]:
        """Read all of them in the order of their numbers; blocks. Raises MetadataError."""
        return [
            TopicGroupRow(UUID(hex=topic_id), group_id, name)
            for topic_id, group_id, name in self._store.read(_SELECT)
        ]

    async def insert(self, group: TopicGroupRow) -> None:
        """Store a new group. Raises MetadataError."""
        row = {**group._asdict(), "topic_id": group.topic_id.hex}
        await self._store.write(Change(_INSERT, [row]))

    async def delete(self, topic_id: UUID, group_id: int) -> None:
        """Delete a group. Raises MetadataError."""
        key = {"topic_id": topic_id.hex, "group_id": group_id}
        await self._store.write(Change(_DELETE, [key]))
