"""Offsets that groups commit within transactions: they take effect with them, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock import limits
from penstock.broker.errors import TooManyOffsetsError
from penstock.broker.groups.offsets import CommittedOffset, OffsetOwner
from penstock.memory import Holding, text_bytes
from penstock.metadata.offsets import OffsetRow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.broker.groups.offsets import CommittedOffsets
    from penstock.memory import Memory
    from penstock.metadata.pending_offsets import PendingOffsetRepository
    from penstock.metadata.store import Change

_ROW_BYTES = 400
"""About what an offset takes in memory besides its note, with the one who committed it."""


class _Place(NamedTuple):
    """What an offset is of."""

    owner: OffsetOwner
    partition_id: int


class PendingOffsets:
    """Those of open transactions, by the ids of their producers.

    A `penstock.broker.transactions.participants.Participant`.
    """

    def __init__(
        self,
        repository: PendingOffsetRepository,
        offsets: CommittedOffsets,
        has_partition: Callable[[int], bool],
        memory: Memory,
    ) -> None:
        self._repository = repository
        self._offsets = offsets
        self._has_partition = has_partition
        self._pending: dict[int, dict[_Place, CommittedOffset]] = {}
        self._producers: dict[_Place, set[int]] = {}
        """Who has something pending for an offset."""
        self._taking_effect: dict[int, dict[_Place, CommittedOffset]] = {}
        """What the decisions put in place that are being written."""
        self._account = memory.metadata
        self._held = Holding(memory.metadata)

    def load(self) -> None:
        """Read the database. Blocks. Raises MetadataError."""
        for producer_id, row in self._repository.all():
            place = _Place(OffsetOwner(row.kind, row.name), row.partition_id)
            committed = CommittedOffset(row.offset, row.leader_epoch, row.note, row.committed_at_ms)
            self._offsets.passed(row.committed_at_ms)
            self._put(producer_id, {place: committed})

    def is_pending(self, owner: OffsetOwner, partition_id: int) -> bool:
        """Whether an open transaction may yet commit another offset."""
        return _Place(owner, partition_id) in self._producers

    def rows(
        self, producer_id: int, owner: OffsetOwner, offsets: Mapping[int, CommittedOffset]
    ) -> list[Change]:
        """Return what is to be stored before `put`. Raises TooManyOffsetsError."""
        growth = sum(_size(_Place(owner, each), offsets[each]) for each in offsets)
        within = self._held.size + growth <= limits.COMMITTED_OFFSET_BYTES
        if not within or not self._account.fits(growth):
            raise TooManyOffsetsError("the broker keeps as many committed offsets as it may")
        there = [each for each in offsets if self._has_partition(each)]
        rows = [_row(_Place(owner, each), offsets[each]) for each in there]
        return [self._repository.saved(producer_id, rows)]

    def put(
        self, producer_id: int, owner: OffsetOwner, offsets: Mapping[int, CommittedOffset]
    ) -> None:
        """Keep offsets whose `rows` are stored."""
        self._put(
            producer_id,
            {
                _Place(owner, each): offset
                for each, offset in offsets.items()
                if self._has_partition(each)
            },
        )

    async def settled(self, producer_id: int) -> None:
        """See Participant: offsets are saved by the coordinator, in the producer's turn."""

    def outcome(self, producer_id: int, *, committed: bool) -> Sequence[Change]:
        """See Participant."""
        pending = self._pending.get(producer_id)
        if pending is None:
            return ()
        takes_effect = {
            place: offset
            for place, offset in pending.items()
            if committed
            and self._has_partition(place.partition_id)
            and self._is_last(place, offset)
        }
        self._taking_effect[producer_id] = takes_effect
        rows = [_row(place, offset) for place, offset in takes_effect.items()]
        return self._repository.ended(producer_id, rows)

    def decided(self, producer_id: int, *, committed: bool) -> None:
        """See Participant."""
        pending = self._pending.pop(producer_id, {})
        for place, offset in pending.items():
            self._held.grow(-_size(place, offset))
            producers = self._producers[place]
            producers.discard(producer_id)
            if not producers:
                del self._producers[place]
        takes_effect = self._taking_effect.pop(producer_id, {})
        if committed:
            for (owner, partition_id), offset in takes_effect.items():
                if self._has_partition(partition_id):
                    self._offsets.committed(owner, {partition_id: offset})

    def _is_last(self, place: _Place, offset: CommittedOffset) -> bool:
        """Whether nobody has committed another one since: a group does not go back to this one."""
        there = self._offsets.get(*place)
        return there is None or there.committed_at_ms < offset.committed_at_ms

    def _put(self, producer_id: int, offsets: Mapping[_Place, CommittedOffset]) -> None:
        pending = self._pending.setdefault(producer_id, {})
        for place, offset in offsets.items():
            before = pending.get(place)
            self._held.grow(_size(place, offset) - (_size(place, before) if before else 0))
            pending[place] = offset
            self._producers.setdefault(place, set()).add(producer_id)


def _size(place: _Place, offset: CommittedOffset) -> int:
    return _ROW_BYTES + text_bytes(place.owner.name) + text_bytes(offset.note)


def _row(place: _Place, committed: CommittedOffset) -> OffsetRow:
    return OffsetRow(
        *place.owner,
        place.partition_id,
        committed.offset,
        committed.leader_epoch,
        committed.note,
        committed.committed_at_ms,
    )
