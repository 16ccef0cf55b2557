"""Transactions: who may have one, what state it is in, and who has a part in what is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.metadata.store import Change
from penstock.metadata.tables import (
    TRANSACTION_PARTICIPANTS,
    TRANSACTION_PARTITIONS,
    TRANSACTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.metadata.database import Row
    from penstock.metadata.store import MetadataStore

_SELECT: Final = TRANSACTIONS.select(order_by=["changed_at_ms"])
_SELECT_STATE: Final = TRANSACTIONS.select(where=["state"])
_SELECT_PARTITIONS: Final = TRANSACTION_PARTITIONS.select()
_SELECT_PARTICIPANTS: Final = TRANSACTION_PARTICIPANTS.select()
_UPSERT: Final = TRANSACTIONS.upsert()
_DELETE: Final = TRANSACTIONS.delete(where=["producer_id"])
_ADD_PARTITION: Final = TRANSACTION_PARTITIONS.insert()
_ADD_PARTICIPANT: Final = TRANSACTION_PARTICIPANTS.insert()
_DELETE_PARTITIONS: Final = TRANSACTION_PARTITIONS.delete(where=["producer_id"])
_DELETE_PARTICIPANTS: Final = TRANSACTION_PARTICIPANTS.delete(where=["producer_id"])


class TransactionRow(NamedTuple):
    """A producer of transactions and the state of its last one.

    `transactional_id` is empty where the producer is there for one transaction only. Times are
    milliseconds since 1970; `started_at_ms` is -1 where none is open. Epochs and
    `previous_producer_id` are -1 where there is none.
    """

    producer_id: int
    transactional_id: str
    previous_producer_id: int
    epoch: int
    last_epoch: int
    timeout_ms: int
    state: str
    started_at_ms: int
    changed_at_ms: int


class TransactionRepository:
    """Rows of `transactions`, `transaction_partitions` and `transaction_participants`.

    The changes that its methods return are written together with others'.
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def in_states(self, states: Iterable[str]) -> list[TransactionRow]:
        """Read those in some states; blocks. Raises MetadataError."""
        rows = (
            row for state in states for row in self._store.read(_SELECT_STATE, {"state": state})
        )
        return [TransactionRow(*row) for row in rows]

    async def all(self) -> list[Row]:
        """Read all of them, the one that was used last at the end. Raises MetadataError."""
        return await self._store.write(Change(_SELECT, [{}]))

    def partitions(self) -> list[tuple[int, int]]:
        """Read producer and partition ids of what is open; blocks. Raises MetadataError."""
        return [(row[0], row[1]) for row in self._store.read(_SELECT_PARTITIONS)]

    def participants(self) -> list[tuple[int, str]]:
        """Read producer ids and names of who has a part; blocks. Raises MetadataError."""
        return [(row[0], row[1]) for row in self._store.read(_SELECT_PARTICIPANTS)]

    async def write(self, changes: Sequence[Change]) -> None:
        """Return when all changes are durable, or none is. Raises MetadataError."""
        await self._store.write(*changes)

    @staticmethod
    def saved(rows: Iterable[TransactionRow]) -> Change:
        """Store rows in the places of those of the same producer ids."""
        return Change(_UPSERT, [row._asdict() for row in rows])

    @staticmethod
    def added(producer_id: int, partition_ids: Iterable[int], names: Iterable[str]) -> list[Change]:
        """Store that partitions, and others by their names, have a part in a transaction."""
        partitions = [{"producer_id": producer_id, "partition_id": each} for each in partition_ids]
        others = [{"producer_id": producer_id, "name": each} for each in names]
        return [Change(_ADD_PARTITION, partitions), Change(_ADD_PARTICIPANT, others)]

    @staticmethod
    def parts_deleted(producer_ids: Iterable[int]) -> list[Change]:
        """Forget who had a part in transactions."""
        keys = [{"producer_id": each} for each in producer_ids]
        return [Change(_DELETE_PARTITIONS, keys), Change(_DELETE_PARTICIPANTS, keys)]

    @staticmethod
    def deleted(producer_ids: Iterable[int]) -> Change:
        """Forget producers of which nothing is open."""
        return Change(_DELETE, [{"producer_id": each} for each in producer_ids])
