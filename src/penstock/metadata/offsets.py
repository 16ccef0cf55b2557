"""Committed offsets: how far consumers and groups have read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import COMMITTED_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.store import MetadataStore

_SELECT: Final = COMMITTED_OFFSETS.select()
_UPSERT: Final = COMMITTED_OFFSETS.upsert()
_DELETE: Final = COMMITTED_OFFSETS.delete(where=["kind", "name", "partition_id"])
_DELETE_OWNER: Final = COMMITTED_OFFSETS.delete(where=["kind", "name"])


class OffsetRow(NamedTuple):
    """An offset of the owner that is named by its kind and its name."""

    kind: str
    name: str
    partition_id: int
    offset: int
    leader_epoch: int
    note: str
    committed_at_ms: int


class OffsetRepository:
    """Rows of `committed_offsets`. The database deletes them with their partition."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[OffsetRow]:
        """Read all of them; blocks. Raises MetadataError."""
        return [OffsetRow(*row) for row in self._store.read(_SELECT)]

    async def save(self, offsets: Iterable[OffsetRow]) -> None:
        """Store offsets over those of before, all or none. Raises MetadataError."""
        await self._store.write(Change(_UPSERT, [offset._asdict() for offset in offsets]))

    async def delete(self, kind: str, name: str, partition_ids: Iterable[int]) -> None:
        """Delete an owner's offsets of some partitions, all or none. Raises MetadataError."""
        rows = [{"kind": kind, "name": name, "partition_id": each} for each in partition_ids]
        await self._store.write(Change(_DELETE, rows))

    async def delete_owner(self, kind: str, name: str) -> None:
        """Delete all offsets of an owner. Raises MetadataError."""
        await self._store.write(Change(_DELETE_OWNER, [{"kind": kind, "name": name}]))
