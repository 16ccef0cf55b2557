"""How far consumers and groups have read: committed offsets of Kafka and Iggy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, select
from sqlalchemy.dialects.sqlite import insert

from penstock.metadata.schema import committed_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import ColumnElement

    from penstock.metadata.store import MetadataStore


class OffsetOwner(NamedTuple):
    """Who commits: kind is `kafka`, `iggy-consumer` or `iggy-group`, as each numbers its own."""

    kind: str
    name: str


class CommittedOffset(NamedTuple):
    """The next offset to read, in Kafka's words; `note` is the client's own text."""

    offset: int
    leader_epoch: int = -1
    note: str = ""
    committed_at_ms: int = 0


class CommittedOffsets:
    """Answers from memory; what `commit` and `delete` did is durable when they return."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._offsets: dict[OffsetOwner, dict[int, CommittedOffset]] = {}
        for row in store.query(select(committed_offsets)):
            self._offsets.setdefault(OffsetOwner(row.kind, row.name), {})[row.partition_id] = (
                CommittedOffset(row.offset, row.leader_epoch, row.note, row.committed_at_ms)
            )

    def get(self, owner: OffsetOwner, partition_id: int) -> CommittedOffset | None:
        return self._offsets.get(owner, {}).get(partition_id)

    def of_owner(self, owner: OffsetOwner) -> Mapping[int, CommittedOffset]:
        """Every offset of one owner, by partition id."""
        return self._offsets.get(owner, {})

    def owners(self, kind: str) -> list[OffsetOwner]:
        return [owner for owner in self._offsets if owner.kind == kind]

    async def commit(self, owner: OffsetOwner, offsets: Mapping[int, CommittedOffset]) -> None:
        """Store offsets by partition id, all or none. Raises MetadataError."""
        if not offsets:
            return
        rows = [
            {
                "kind": owner.kind,
                "name": owner.name,
                "partition_id": partition_id,
                "offset": committed.offset,
                "leader_epoch": committed.leader_epoch,
                "note": committed.note,
                "committed_at_ms": committed.committed_at_ms,
            }
            for partition_id, committed in offsets.items()
        ]
        await self._store.write(_UPSERT, rows)
        self._offsets.setdefault(owner, {}).update(offsets)

    async def delete(self, owner: OffsetOwner, partition_ids: Iterable[int] | None = None) -> None:
        """Forget an owner's offsets: those of some partitions, or all of them."""
        condition: ColumnElement[bool] = and_(
            committed_offsets.c.kind == owner.kind, committed_offsets.c.name == owner.name
        )
        if partition_ids is None:
            await self._store.write(delete(committed_offsets).where(condition))
            self._offsets.pop(owner, None)
            return
        gone = list(partition_ids)
        condition = and_(condition, committed_offsets.c.partition_id.in_(gone))
        await self._store.write(delete(committed_offsets).where(condition))
        self._drop(owner, gone)

    def forget_partitions(self, partition_ids: Iterable[int]) -> None:
        """Partitions were deleted, and the database has dropped their rows with them."""
        gone = list(partition_ids)
        for owner in tuple(self._offsets):
            self._drop(owner, gone)

    def _drop(self, owner: OffsetOwner, partition_ids: list[int]) -> None:
        kept = self._offsets.get(owner)
        if kept is None:
            return
        for partition_id in partition_ids:
            kept.pop(partition_id, None)
        if not kept:
            del self._offsets[owner]


_insert = insert(committed_offsets)
_UPSERT = _insert.on_conflict_do_update(
    index_elements=list(committed_offsets.primary_key),
    set_={
        column.name: _insert.excluded[column.name]
        for column in committed_offsets.c
        if not column.primary_key
    },
)
