"""Offsets that take effect with the transactions in which they were committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.offsets import OffsetRow
from penstock.metadata.store import Change
from penstock.metadata.tables import COMMITTED_OFFSETS, PENDING_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.store import MetadataStore

_SELECT: Final = PENDING_OFFSETS.select()
_UPSERT: Final = PENDING_OFFSETS.upsert()
_DELETE: Final = PENDING_OFFSETS.delete(where=["producer_id"])
_COMMIT: Final = COMMITTED_OFFSETS.upsert()


class PendingOffsetRow(NamedTuple):
    """An offset, and the producer in whose transaction it was committed."""

    producer_id: int
    offset: OffsetRow


class PendingOffsetRepository:
    """Rows of `pending_offsets`. The database deletes them with their partition."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> list[PendingOffsetRow]:
        """Read all of them; blocks. Raises MetadataError."""
        rows = self._store.read(_SELECT)
        return [PendingOffsetRow(row[0], OffsetRow(*row[1:])) for row in rows]

    @staticmethod
    def saved(producer_id: int, offsets: Iterable[OffsetRow]) -> Change:
        """Keep offsets until the producer's transaction ends, over those of before."""
        rows = [{"producer_id": producer_id, **offset._asdict()} for offset in offsets]
        return Change(_UPSERT, rows)

    @staticmethod
    def ended(producer_id: int, committed: Iterable[OffsetRow]) -> list[Change]:
        """Forget what was pending, and commit these offsets."""
        return [
            Change(_COMMIT, [offset._asdict() for offset in committed]),
            Change(_DELETE, [{"producer_id": producer_id}]),
        ]
