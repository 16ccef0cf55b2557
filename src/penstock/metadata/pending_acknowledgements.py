"""What transactions acknowledged of durable subscriptions, until the cursors have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import PENDING_ACKNOWLEDGEMENTS, SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.metadata.store import MetadataStore

_PLACE: Final = ["partition_id", "name", "producer_id"]
_SELECT: Final = PENDING_ACKNOWLEDGEMENTS.select()
# Nothing is kept of a subscription that was deleted meanwhile.
_SAVE: Final = PENDING_ACKNOWLEDGEMENTS.upsert_beside(SUBSCRIPTIONS)
_COMMIT: Final = PENDING_ACKNOWLEDGEMENTS.update("committed", where=_PLACE)
_DELETE: Final = PENDING_ACKNOWLEDGEMENTS.delete(where=_PLACE)
_BLOCK_BYTES: Final = 128


class PendingPlace(NamedTuple):
    """The subscription, and the producer whose transaction acknowledged something of it."""

    partition_id: int
    name: str
    producer_id: int


class PendingRow(NamedTuple):
    """A block of 1,024 offsets; bit i stands for the i-th offset after its first one."""

    place: PendingPlace
    number: int
    bits: int
    committed: bool


class PendingAcknowledgementRepository:
    """Rows of `pending_acknowledgements`; the database deletes them with a partition."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def all(self) -> Iterator[PendingRow]:
        """Read all of them; blocks. Raises MetadataError."""
        for *place, number, bits, committed in self._store.read(_SELECT):
            found = int.from_bytes(bits, "little")
            yield PendingRow(PendingPlace(*place), number, found, bool(committed))

    async def save(self, place: PendingPlace, blocks: Mapping[int, int]) -> None:
        """Store blocks that are not committed. Raises MetadataError."""
        rows = [
            {
                **place._asdict(),
                "number": number,
                "bits": bits.to_bytes(_BLOCK_BYTES, "little"),
                "committed": False,
            }
            for number, bits in blocks.items()
        ]
        await self._store.write(Change(_SAVE, rows))

    @staticmethod
    def outcome(places: Iterable[PendingPlace], *, committed: bool) -> list[Change]:
        """Return what becomes of rows with the end of their transaction.

        Committed ones are deleted once the cursors have them.
        """
        if committed:
            return [Change(_COMMIT, [{**place._asdict(), "committed": True} for place in places])]
        return [Change(_DELETE, [place._asdict() for place in places])]

    async def delete(self, places: Iterable[PendingPlace]) -> None:
        """Forget what the cursors have. Raises MetadataError."""
        await self._store.write(Change(_DELETE, [place._asdict() for place in places]))
