"""The node's own facts, one a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.metadata.store import Change
from penstock.metadata.tables import PROPERTIES

if TYPE_CHECKING:
    from penstock.metadata.store import MetadataStore

_SELECT: Final = PROPERTIES.select(where=["name"])
_UPSERT: Final = PROPERTIES.upsert()

_EPOCH: Final = "node_epoch"
_CLUSTER_ID: Final = "cluster_id"
_IDENTITIES: Final = "folders_are_identified"
_PRODUCER_IDS: Final = "producer_ids_reserved"


class PropertyRepository:
    """Rows of `properties` by their names."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def cluster_id(self) -> str | None:
        """Return whose data this is, None where nobody said so; blocks. Raises MetadataError."""
        return self._text(_CLUSTER_ID)

    def keep_cluster_id(self, cluster_id: str) -> None:
        """Store whose data this is; blocks, for the start. Raises MetadataError."""
        self._store.write_at_start(_change(_CLUSTER_ID, cluster_id))

    def folders_are_identified(self) -> bool:
        """Whether every topic's folder was made to say what it is; blocks. Raises MetadataError."""
        return self._text(_IDENTITIES) is not None

    def folders_were_identified(self) -> None:
        """Store that they were; blocks, for the start. Raises MetadataError."""
        self._store.write_at_start(_change(_IDENTITIES, "yes"))

    def epoch(self) -> int:
        """Return the epoch of the last start, -1 before the first; blocks. Raises MetadataError."""
        before = self._number(_EPOCH)
        return -1 if before is None else before

    def next_epoch(self) -> int:
        """Return a number that no start before this one was given: 0 at the first, then one more.

        It is durable when this returns, so that no two starts ever share one, and no crash takes it
        back. Blocks, and is meant for the start only. Raises MetadataError.
        """
        epoch = self.epoch() + 1
        self._store.write_at_start(_change(_EPOCH, epoch))
        return epoch

    async def take_epoch(self) -> int:
        """Return an epoch above all that were ever taken, for a leadership that begins later than
        the start. Raises MetadataError.
        """
        epoch = self.epoch() + 1
        await self._store.write(_change(_EPOCH, epoch))
        return epoch

    def raise_numbers(self, epoch: int, producer_ids_reserved: int) -> None:
        """Store the last start's epoch and the producer ids taken; blocks. Raises MetadataError."""
        self._store.write_at_start(
            _change(_EPOCH, epoch), _change(_PRODUCER_IDS, producer_ids_reserved)
        )

    def producer_ids_reserved(self) -> int:
        """Return the number below which producer ids are taken; blocks. Raises MetadataError."""
        return self._number(_PRODUCER_IDS) or 0

    async def reserve_producer_ids(self, below: int) -> None:
        """Have all producer ids below this number taken. Raises MetadataError."""
        await self._store.write(_change(_PRODUCER_IDS, below))

    def _number(self, name: str) -> int | None:
        text = self._text(name)
        return None if text is None else int(text)

    def _text(self, name: str) -> str | None:
        rows = self._store.read(_SELECT, {"name": name})
        return str(rows[0][1]) if rows else None


def _change(name: str, value: int | str) -> Change:
    return Change(_UPSERT, [{"name": name, "value": str(value)}])
