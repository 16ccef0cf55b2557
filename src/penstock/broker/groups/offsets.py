"""How far consumers and groups have read: committed offsets of Kafka and Iggy."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits, wall_clock
from penstock.broker.errors import TooManyOffsetsError
from penstock.memory import Holding, text_bytes
from penstock.metadata.offsets import OffsetRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.memory import Memory
    from penstock.metadata.offsets import OffsetRepository

_ROW_BYTES: Final = 320
"""About what an offset takes in memory, and again the one who committed it."""


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
    """By `CommittedOffsets.next_time_ms`."""


class CommittedOffsets:
    """Answers from memory; what `commit` and `delete` did is durable when they return."""

    def __init__(
        self, repository: OffsetRepository, has_partition: Callable[[int], bool], memory: Memory
    ) -> None:
        self._repository = repository
        self._has_partition = has_partition
        self._offsets: dict[OffsetOwner, dict[int, CommittedOffset]] = {}
        self._owners: dict[int, set[OffsetOwner]] = {}
        """Who has an offset of a partition."""
        self._account = memory.metadata
        self._held = Holding(memory.metadata)
        self._last_ms = 0
        for row in repository.all():
            self.passed(row.committed_at_ms)
            committed = CommittedOffset(row.offset, row.leader_epoch, row.note, row.committed_at_ms)
            self._put(OffsetOwner(row.kind, row.name), {row.partition_id: committed})

    def next_time_ms(self) -> int:
        """Return when an offset is committed that a client commits now.

        It is later than that of any commit before, whatever the clock does: which of two offsets
        came last goes by it.
        """
        self.passed(max(wall_clock.now_ms(), self._last_ms + 1))
        return self._last_ms

    def passed(self, committed_at_ms: int) -> None:
        """An offset was committed then, so that all that come are later."""
        self._last_ms = max(self._last_ms, committed_at_ms)

    def get(self, owner: OffsetOwner, partition_id: int) -> CommittedOffset | None:
        return self._offsets.get(owner, {}).get(partition_id)

    def of_owner(self, owner: OffsetOwner) -> Mapping[int, CommittedOffset]:
        """Every offset of one owner, by partition id."""
        return self._offsets.get(owner, {})

    def of_partition(self, partition_id: int) -> dict[OffsetOwner, CommittedOffset]:
        """Every owner's offset of one partition."""
        owners = self._owners.get(partition_id, ())
        return {owner: self._offsets[owner][partition_id] for owner in owners}

    def owners(self, kind: str) -> list[OffsetOwner]:
        return [owner for owner in self._offsets if owner.kind == kind]

    async def commit(self, owner: OffsetOwner, given: Mapping[int, CommittedOffset]) -> set[int]:
        """Store offsets by partition id, but for those of partitions that are gone.

        Returns the ids of those. Those that are stored together are stored all or none; where
        there are more, a failure leaves the first ones stored. Raises TooManyOffsetsError and
        MetadataError.
        """
        if len(given) <= limits.OFFSETS_COMMITTED_TOGETHER:
            return await self._commit(owner, given)
        gone: set[int] = set()
        left = iter(given.items())
        while together := dict(islice(left, limits.OFFSETS_COMMITTED_TOGETHER)):
            gone |= await self._commit(owner, together)
        return gone

    async def _commit(self, owner: OffsetOwner, given: Mapping[int, CommittedOffset]) -> set[int]:
        # In the turn that puts the write in line: a deletion's rows go before it, or after.
        offsets = {each: given[each] for each in given if self._has_partition(each)}
        gone = given.keys() - offsets.keys()
        if not offsets:
            return gone
        growth = self._growth(owner, offsets)
        if growth > 0 and not self._has_room(growth):
            raise TooManyOffsetsError("the broker keeps as many committed offsets as it may")
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
        self._put(owner, offsets)
        return gone

    def committed(self, owner: OffsetOwner, offsets: Mapping[int, CommittedOffset]) -> None:
        """Take in what a transaction has committed: it is stored already."""
        self._put(owner, offsets)

    async def delete(self, owner: OffsetOwner, partition_ids: Iterable[int] | None = None) -> None:
        """Forget an owner's offsets: those of some partitions, or all of them.

        Those of many partitions are forgotten some together, as they are stored.
        """
        if partition_ids is None:
            await self._repository.delete_owner(*owner)
            self._drop(owner, list(self._offsets.get(owner, ())))
            return
        left = iter(partition_ids)
        while together := list(islice(left, limits.OFFSETS_COMMITTED_TOGETHER)):
            await self._repository.delete(*owner, together)
            self._drop(owner, together)

    def forget_partitions(self, partition_ids: Iterable[int]) -> None:
        """Partitions were deleted, and the database has dropped their rows with them."""
        for partition_id in partition_ids:
            for owner in tuple(self._owners.get(partition_id, ())):
                self._drop(owner, [partition_id])

    def _drop(self, owner: OffsetOwner, partition_ids: list[int]) -> None:
        kept = self._offsets.get(owner)
        if kept is None:
            return
        for partition_id in partition_ids:
            dropped = kept.pop(partition_id, None)
            if dropped is not None:
                self._held.grow(-_size(dropped))
                self._owners[partition_id].discard(owner)
                if not self._owners[partition_id]:
                    del self._owners[partition_id]
        if not kept:
            del self._offsets[owner]
            self._held.grow(-_ROW_BYTES - text_bytes(owner.name))

    def _put(self, owner: OffsetOwner, offsets: Mapping[int, CommittedOffset]) -> None:
        self._held.grow(self._growth(owner, offsets))
        self._offsets.setdefault(owner, {}).update(offsets)
        for partition_id in offsets:
            self._owners.setdefault(partition_id, set()).add(owner)

    def _has_room(self, growth: int) -> bool:
        within = self._held.size + growth <= limits.COMMITTED_OFFSET_BYTES
        return within and self._account.fits(growth)

    def _growth(self, owner: OffsetOwner, offsets: Mapping[int, CommittedOffset]) -> int:
        """Return how many bytes more there would be."""
        kept = self._offsets.get(owner)
        growth = _ROW_BYTES + text_bytes(owner.name) if kept is None else 0
        for partition_id, committed in offsets.items():
            before = kept.get(partition_id) if kept else None
            growth += _size(committed) - (_size(before) if before else 0)
        return growth


def _size(committed: CommittedOffset) -> int:
    return _ROW_BYTES + text_bytes(committed.note)
