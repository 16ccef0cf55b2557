"""The node's own numbers, one a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.metadata.store import Change
from penstock.metadata.tables import PROPERTIES

if TYPE_CHECKING:
    from penstock.metadata.store import MetadataStore

_SELECT: Final = PROPERTIES.select(where=["name"])
_UPSERT: Final = PROPERTIES.upsert()

_EPOCH: Final = "node_epoch"
_PRODUCER_IDS: Final = "producer_ids_reserved"


class PropertyRepository:
    """Rows of `properties` that are numbers."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def next_epoch(self) -> int:
        """Return a number that no start before this one was given: 0 at the first, then one more.

        It is durable when this returns, so that no two starts ever share one, and no crash takes it
        back. Blocks, and is meant for the start only. Raises MetadataError.
        """
        before = self._number(_EPOCH)
        epoch = 0 if before is None else before + 1
        self._store.write_at_start(_change(_EPOCH, epoch))
        return epoch

    def producer_ids_reserved(self) -> int:
        """Return the number below which producer ids are taken; blocks. Raises MetadataError."""
        return self._number(_PRODUCER_IDS) or 0

    async def reserve_producer_ids(self, below: int) -> None:
        """Have all producer ids below this number taken. Raises MetadataError."""
        await self._store.write(_change(_PRODUCER_IDS, below))

    def _number(self, name: str) -> int | None:
        rows = self._store.read(_SELECT, {"name": name})
        return int(rows[0][1]) if rows else None


def _change(name: str, number: int) -> Change:
    return Change(_UPSERT, [{"name": name, "value": str(number)}])
