"""How often each partition changed hands between producers that had it to themselves (PIP-68)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.exclusive_epochs import ExclusiveEpochRepository


class ExclusiveEpochs:
    """The epochs of all partitions that ever had such a producer."""

    def __init__(self, repository: ExclusiveEpochRepository) -> None:
        self._repository = repository
        self._epochs: dict[int, int] = {}

    def load(self) -> None:
        """Read the database. Blocks. Raises MetadataError."""
        self._epochs = self._repository.all()

    def get(self, partition_id: int) -> int | None:
        """Return the epoch of the last one, which may not be durable yet; None before the first."""
        return self._epochs.get(partition_id)

    async def begin(self, partition_id: int, epoch: int) -> None:
        """Return once the epoch is durable; it counts at once. Raises MetadataError."""
        self._epochs[partition_id] = epoch
        await self._repository.save(partition_id, epoch)

    def forget(self, partition_ids: Iterable[int]) -> None:
        """Partitions were deleted, and the database has dropped their epochs with them."""
        for partition_id in partition_ids:
            self._epochs.pop(partition_id, None)
