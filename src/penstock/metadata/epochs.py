"""Writers whose transactions are decided together, an epoch at a time, and the last one of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import WRITER_EPOCHS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.metadata.database import Row
    from penstock.metadata.store import MetadataStore

_SELECT: Final = WRITER_EPOCHS.select(order_by=["changed_at_ms"])
_UPSERT: Final = WRITER_EPOCHS.upsert()
_DELETE: Final = WRITER_EPOCHS.delete(where=["writer"])


class EpochRow(NamedTuple):
    """The last epoch of a writer that was committed, and when, in milliseconds since 1970."""

    writer: str
    epoch: int
    changed_at_ms: int
    fingerprint: str
    """Of what the epoch was made from; empty where nobody said."""


class EpochRepository:
    """Rows of `writer_epochs`; an epoch is stored in the transaction that commits it."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def all(self) -> list[Row]:
        """Read all of them, the one that was used last at the end. Raises MetadataError."""
        return await self._store.write(Change(_SELECT, [{}]))

    @staticmethod
    def saved(row: EpochRow) -> Change:
        """Store an epoch in the place of the writer's last one."""
        return Change(_UPSERT, [row._asdict()])

    async def forget(self, writers: Iterable[str]) -> None:
        """Forget writers. Raises MetadataError."""
        await self._store.write(Change(_DELETE, [{"writer": each} for each in writers]))
