"""How far consumers and groups have read: committed offsets of Kafka and Iggy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.metadata.offsets import OffsetRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.metadata.offsets import OffsetRepository


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

    def __init__(self, repository: OffsetRepository) -> None:
        self._repository = repository
        self._offsets: dict[OffsetOwner, dict[int, CommittedOffset]] = {}
        for row in repository.all():
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
        await self._repository.save(
            OffsetRow(
                *owner,
                partition_id,
                committed.offset,
                committed.leader_epoch,
                committed.note,
                committed.committed_at_ms,
            )
            for partition_id, committed in offsets.items()
        )
        self._offsets.setdefault(owner, {}).update(offsets)

    async def delete(self, owner: OffsetOwner, partition_ids: Iterable[int] | None = None) -> None:
        """Forget an owner's offsets: those of some partitions, or all of them."""
        if partition_ids is None:
            await self._repository.delete_owner(*owner)
            self._offsets.pop(owner, None)
            return
        gone = list(partition_ids)
        await self._repository.delete(*owner, gone)
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
