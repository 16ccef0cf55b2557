"""Durable subscriptions and their cursors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.metadata.store import MetadataStore

_SELECT: Final = SUBSCRIPTIONS.select()
_INSERT: Final = SUBSCRIPTIONS.insert()
# An update and no upsert: the cursor of a partition that was deleted meanwhile changes no row.
_SAVE: Final = SUBSCRIPTIONS.update("mark_delete", "acknowledged", where=["partition_id", "name"])
_DELETE: Final = SUBSCRIPTIONS.delete(where=["partition_id", "name"])


class CursorRow(NamedTuple):
    """How far a subscription is: all before `mark_delete`, and some after it in packed ranges."""

    partition_id: int
    name: str
    mark_delete: int
    acknowledged: bytes


class SubscriptionRow(NamedTuple):
    """A subscription as a whole; `properties` are kept as JSON."""

    partition_id: int
    name: str
    mark_delete: int
    acknowledged: bytes
    properties: Mapping[str, str]


class SubscriptionRepository:
    """Rows of `subscriptions`. The database deletes them with their partition."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[SubscriptionRow]:
        """Read all of them; blocks. Raises MetadataError."""
        rows = self._store.read(_SELECT)
        return [
            SubscriptionRow(partition_id, name, mark_delete, acknowledged, json.loads(properties))
            for partition_id, name, mark_delete, acknowledged, properties in rows
        ]

    async def insert(self, subscription: SubscriptionRow) -> None:
        """Store a new subscription. Raises MetadataError."""
        properties = json.dumps(dict(subscription.properties))
        row = {**subscription._asdict(), "properties": properties}
        await self._store.write(Change(_INSERT, [row]))

    async def save(self, cursors: Iterable[CursorRow]) -> None:
        """Store where cursors are, all or none. Raises MetadataError."""
        await self._store.write(Change(_SAVE, [cursor._asdict() for cursor in cursors]))

    async def delete(self, partition_id: int, name: str) -> None:
        """Delete a subscription. Raises MetadataError."""
        await self._store.write(Change(_DELETE, [{"partition_id": partition_id, "name": name}]))
