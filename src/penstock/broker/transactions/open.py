"""A transaction that is open, with all that has a part in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.transactions.states import TransactionState

if TYPE_CHECKING:
    from penstock.broker.transactions.states import Producer
    from penstock.metadata.transactions import TransactionRow

_OPEN_BYTES: Final = 900
"""About what one takes in memory besides its parts."""
_PART_BYTES: Final = 120
"""About what each of its parts takes, besides a name's own bytes."""


class OpenTransaction:
    """The row of a transaction, the ids of its partitions and the names of its participants.

    `ending`: nothing may be added any more, though it may not be decided yet how it ends.
    `address`: of the client that began it; None where that was before the last start.
    `seen_at_ms`: when its writer last said that it is at work; -1 where there is none.
    """

    __slots__ = ("address", "ending", "names", "partition_ids", "row", "seen_at_ms")

    def __init__(self, row: TransactionRow, address: str | None = None) -> None:
        self.row = row
        self.address = address
        self.partition_ids: set[int] = set()
        self.names: set[str] = set()
        self.ending = False
        self.seen_at_ms = -1

    @property
    def is_ongoing(self) -> bool:
        """Whether something may be written in it."""
        return self.row.state == TransactionState.ONGOING and not self.ending

    @property
    def part_count(self) -> int:
        return len(self.partition_ids) + len(self.names)

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return _OPEN_BYTES + self.size_of(len(self.partition_ids), self.names)

    @staticmethod
    def size_of(partitions: int, names: set[str]) -> int:
        """About how many bytes so many partitions and these names take in memory."""
        return (partitions + len(names)) * _PART_BYTES + sum(map(len, names))

    def has(self, transactional_id: str, producer: Producer, partition_ids: set[int]) -> bool:
        """Whether it is this producer's, and partitions have a part in it already."""
        row = self.row
        return (
            (row.transactional_id, row.epoch) == (transactional_id, producer.epoch)
            and self.is_ongoing
            and partition_ids <= self.partition_ids
        )

    def is_late(self, now_ms: int) -> bool:
        """Whether it is open for longer than its producer wanted."""
        began = max(self.row.started_at_ms, self.seen_at_ms)
        return self.is_ongoing and now_ms - began > self.row.timeout_ms
