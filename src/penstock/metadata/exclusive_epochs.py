"""How often each partition has changed hands between producers that had it to themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.metadata.store import Change
from penstock.metadata.tables import EXCLUSIVE_EPOCHS

if TYPE_CHECKING:
    from penstock.metadata.store import MetadataStore

_SELECT: Final = EXCLUSIVE_EPOCHS.select()
_UPSERT: Final = EXCLUSIVE_EPOCHS.upsert()


class ExclusiveEpochRepository:
    """Rows of `exclusive_epochs`, which go with their partitions."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> dict[int, int]:
        """Read the epoch of each partition by its id; blocks. Raises MetadataError."""
        return dict(self._store.read(_SELECT))

    async def save(self, partition_id: int, epoch: int) -> None:
        """Store a partition's epoch. Raises MetadataError."""
        await self._store.write(Change(_UPSERT, [{"partition_id": partition_id, "epoch": epoch}]))
