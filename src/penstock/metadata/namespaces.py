"""Namespaces of tenants, which Iggy calls streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import NAMESPACES
from penstock.metadata.topics import topic_updates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.store import MetadataStore
    from penstock.metadata.topics import TopicUpdate

_SELECT: Final = NAMESPACES.select(order_by=["stream_id"])
_INSERT: Final = NAMESPACES.insert()
_RENAME: Final = NAMESPACES.update("tenant", "namespace", where=["stream_id"])
_DELETE: Final = NAMESPACES.delete(where=["tenant", "namespace"])


class NamespaceRow(NamedTuple):
    """A namespace, with the number by which Iggy's clients know it."""

    tenant: str
    namespace: str
    stream_id: int
    created_at_us: int


class NamespaceRepository:
    """Rows of `namespaces`."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[NamespaceRow]:
        """Read all of them in the order of their numbers; blocks. Raises MetadataError."""
        return [NamespaceRow(*row) for row in self._store.read(_SELECT)]

    async def insert(self, namespace: NamespaceRow) -> None:
        """Store a new namespace. Raises MetadataError."""
        await self._store.write(Change(_INSERT, [namespace._asdict()]))

    async def rename(
        self, stream_id: int, tenant: str, namespace: str, topics: Iterable[TopicUpdate]
    ) -> None:
        """Give a namespace and its topics new names, in one transaction. Raises MetadataError."""
        renamed = {"stream_id": stream_id, "tenant": tenant, "namespace": namespace}
        await self._store.write(Change(_RENAME, [renamed]), topic_updates(topics))

    async def delete(self, tenant: str, namespace: str) -> None:
        """Delete a namespace that has no topics. Raises MetadataError."""
        await self._store.write(Change(_DELETE, [{"tenant": tenant, "namespace": namespace}]))
