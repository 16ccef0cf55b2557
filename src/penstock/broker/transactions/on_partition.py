"""What a partition knows of transactions: which are open on it, and which were aborted (KIP-98).

It is a function of the batches in the log: a transaction begins with the first batch of its
producer that is marked as transactional, and ends with the control batch of that producer. A
snapshot lies in the log's checkpoint, and batches after it are replayed by `update`.

A transaction counts as ended once its marker is safe: before, a crash can take the marker back.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import limits
from penstock.broker.errors import InvalidTransactionStateError, TooManyProducersError
from penstock.broker.transactions.aborted import NONE_ABORTED, AbortedTransactions
from penstock.broker.transactions.aborted_range import AbortedRange
from penstock.broker.transactions.aborted_stretch import AbortedTransaction
from penstock.log.header import ATTRIBUTE_CONTROL, ATTRIBUTE_TRANSACTIONAL
from penstock.log.pieces import Pieces
from penstock.memory import Holding
from penstock.records.kafka.control import is_commit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log.header import BatchHeader
    from penstock.log.pieces import State
    from penstock.memory import SharedAccount
    from penstock.session import Buffer

_VERSION: Final = 2
_HEAD: Final = struct.Struct(">BI")
_OPEN: Final = struct.Struct(">qhq")
_RESTORING: Final = {
    _VERSION: AbortedTransactions.restore,
    1: AbortedTransactions.restore_from_columns,
}
"""By version, how those that were aborted are read."""
_STORED_BYTES: Final = _OPEN.size + 24
"""At most what an open transaction takes in a checkpoint, or one that has aborted."""
_OPEN_BYTES: Final = 300
"""About what an open transaction takes of memory."""


class OpenTransaction(NamedTuple):
    """It has no marker in the log yet."""

    producer_id: int
    producer_epoch: int
    first_offset: int


class EndedTransaction(NamedTuple):
    """Its marker is in line to be written, or is written and not safe yet."""

    transaction: OpenTransaction
    marker_offset: int
    committed: bool


class PartitionTransactions:
    """The transactions of one partition."""

    def __init__(self, account: SharedAccount) -> None:
        self.open: dict[int, OpenTransaction] = {}
        """By their producers' ids, in the order in which they began."""
        self.ended: list[EndedTransaction] = []
        """Those whose markers are not safe yet, in the order of the markers."""
        self._first_ended: int | None = None
        """The first offset of all that ended and are not safe."""
        self._aborted: AbortedTransactions | None = None
        """None where nobody ever aborted, as on most partitions."""
        self._account = account
        self._held = Holding(account)

    @property
    def began(self) -> bool:
        """Whether there is any that holds back those who read what is committed."""
        return bool(self.open or self.ended)

    @property
    def has_aborted(self) -> bool:
        """Whether any has aborted whose messages may still be in the log."""
        return self._aborted is not None

    def check(self, header: BatchHeader) -> None:
        """Raise InvalidTransactionStateError where a batch can't be written by what is open here:
        one of no transaction by a producer that has one open, or one of nobody's transaction.

        Raises TooManyProducersError where there is no room for one more transaction.
        """
        if not header.attributes & ATTRIBUTE_TRANSACTIONAL:
            raise InvalidTransactionStateError(
                f"producer {header.producer_id} has a transaction open, and wrote outside of it"
            )
        if header.producer_id < 0:
            raise InvalidTransactionStateError("a batch of a transaction has a producer id")
        if header.producer_id not in self.open and not self._has_room:
            raise TooManyProducersError("there is no room for one more transaction yet")

    @property
    def _has_room(self) -> bool:
        """Whether there is memory for one more, and place in a checkpoint, as one that aborts."""
        stored = 0 if self._aborted is None else self._aborted.packed_bytes
        stored += (len(self.open) + len(self.ended)) * _STORED_BYTES
        return stored < limits.ABORTED_TRANSACTION_BYTES and self._account.room(self._held.size) > 0

    def appended(self, header: BatchHeader, offset: int, batch: Buffer) -> None:
        """A batch of a transaction was appended at an offset, or the marker at its end, which may
        be that of a transaction that is not open here.
        """
        producer_id = header.producer_id
        if header.attributes & ATTRIBUTE_CONTROL:
            transaction = self.open.pop(producer_id, None)
            if transaction is not None:
                self.ended.append(EndedTransaction(transaction, offset, is_commit(batch)))
                if self._first_ended is None or transaction.first_offset < self._first_ended:
                    self._first_ended = transaction.first_offset
        elif producer_id not in self.open:
            self.open[producer_id] = OpenTransaction(producer_id, header.producer_epoch, offset)
            self._count()

    def stable_end(self, safe_offset: int) -> int:
        """Return the last stable offset: what lies below is safe, and of no open transaction."""
        self.settle(safe_offset)
        if self._first_ended is not None:
            safe_offset = min(safe_offset, self._first_ended)
        if self.open:
            return min(safe_offset, next(iter(self.open.values())).first_offset)
        return safe_offset

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return those that were aborted and have messages from `start` up to `end`, which is at
        most the last stable offset, by their first offsets. What became safe is settled.
        """
        return [] if self._aborted is None else self._aborted.overlapping(start, end)

    def packed(self, start: int, end: int) -> AbortedRange:
        """Return the same as they are packed."""
        return AbortedRange((), end) if self._aborted is None else self._aborted.packed(start, end)

    def named(self, start: int, end: int) -> Buffer:
        """Return the same as answers name them, in rows of aborted_rows.ROW."""
        return b"" if self._aborted is None else self._aborted.named(start, end)

    def near_end(self, start: int, end: int) -> int:
        """Return how far a reader at `start` reads at once; see AbortedTransactions.near_end."""
        return end if self._aborted is None else self._aborted.near_end(start, end)

    def settle(self, safe_offset: int) -> None:
        """Take in what has become safe since: what ended below is remembered only if it aborted."""
        if not self.ended:
            return
        settled = bisect_left(self.ended, safe_offset, key=attrgetter("marker_offset"))
        if not settled:
            return
        for ended in self.ended[:settled]:
            if not ended.committed:
                self._aborted = self._aborted or AbortedTransactions()
                self._aborted.add(_aborted(ended))
        del self.ended[:settled]
        self._find_first_ended()
        self._count()

    def cut(self, end_offset: int) -> None:
        """Forget the batches from `end_offset` on: they could not be written."""
        again = [*self.open.values()]
        while self.ended and self.ended[-1].marker_offset >= end_offset:
            again.append(self.ended.pop().transaction)
        begun = (each for each in again if each.first_offset < end_offset)
        self._reopen(sorted(begun, key=attrgetter("first_offset")))
        self._find_first_ended()
        self._count()

    def trim(self, start_offset: int) -> None:
        """The log begins at `start_offset` now, and so does what was open below it."""
        if self._aborted is not None:
            self._aborted.trim(start_offset)
        if self.open and next(iter(self.open.values())).first_offset < start_offset:
            self._reopen([_not_below(each, start_offset) for each in self.open.values()])
        if self._first_ended is not None and self._first_ended < start_offset:
            self.ended = [
                EndedTransaction(_not_below(transaction, start_offset), marker_offset, committed)
                for transaction, marker_offset, committed in self.ended
            ]
            self._find_first_ended()
        self._count()

    def compacted(self, end: int) -> None:
        """Nothing is left below an offset of what was aborted: forget most of what ended there.

        Who has read before that, and asks only now, hears nothing of what that holds of them.
        """
        if self._aborted is not None:
            self._aborted.trim(end)
            self._count()

    def close(self) -> None:
        """The partition is gone."""
        self._become([], None)

    def update(self, header: BatchHeader, batch: Buffer) -> None:
        """Take a stored batch into account."""
        if header.attributes & ATTRIBUTE_TRANSACTIONAL:
            self.appended(header, header.base_offset, batch)
            self.settle(header.next_offset)

    def snapshot(self) -> State:
        """Return the state for `restore`, as if all that was appended were safe."""
        parts = [_HEAD.pack(_VERSION, len(self.open))]
        parts += starmap(_OPEN.pack, self.open.values())
        ended = [_aborted(each) for each in self.ended if not each.committed]
        if self._aborted is None and not ended:
            return b"".join((*parts, NONE_ABORTED))
        aborted = self._aborted or AbortedTransactions()
        return Pieces([*parts, *aborted.snapshot(ended)])

    def restore(self, snapshot: bytes) -> Iterator[None]:
        """Replace the state by a snapshot's, in steps; b"" is the state of an empty log.

        Raises ValueError for bytes that no `snapshot` of this version wrote, and changes nothing.
        """
        begun: list[OpenTransaction] = []
        aborted: AbortedTransactions | None = None
        if snapshot:
            version, data, end = _parse(snapshot)
            for each in _OPEN.iter_unpack(data[_HEAD.size : end]):
                begun.append(OpenTransaction(*each))
                yield
            if data[end:] != NONE_ABORTED:
                aborted = AbortedTransactions()
                yield from _RESTORING[version](aborted, data[end:])
        self._become(begun, aborted)

    def _become(self, begun: list[OpenTransaction], aborted: AbortedTransactions | None) -> None:
        self.ended.clear()
        self._first_ended = None
        self._aborted = aborted
        self._reopen(begun)
        self._count()

    def _reopen(self, begun: list[OpenTransaction]) -> None:
        self.open = {each.producer_id: each for each in begun}

    def _find_first_ended(self) -> None:
        firsts = (each.transaction.first_offset for each in self.ended)
        self._first_ended = min(firsts, default=None)

    def _count(self) -> None:
        begun = len(self.open) + len(self.ended)
        aborted = 0 if self._aborted is None else self._aborted.used_bytes
        self._held.follow(begun * _OPEN_BYTES + aborted)


def _not_below(transaction: OpenTransaction, offset: int) -> OpenTransaction:
    if transaction.first_offset >= offset:
        return transaction
    producer_id, epoch, _ = transaction
    return OpenTransaction(producer_id, epoch, offset)


def _aborted(ended: EndedTransaction) -> AbortedTransaction:
    producer_id, _, first_offset = ended.transaction
    return AbortedTransaction(producer_id, first_offset, ended.marker_offset)


def _parse(snapshot: bytes) -> tuple[int, memoryview, int]:
    """Return the version, all there is, and where in it the transactions end that are open."""
    try:
        version, count = _HEAD.unpack_from(snapshot)
    except struct.error as error:
        raise ValueError("the snapshot of transactions is cut off") from error
    if version not in _RESTORING:
        raise ValueError(f"the snapshot of transactions has version {version}, not {_VERSION}")
    end = _HEAD.size + count * _OPEN.size
    if end > len(snapshot):
        raise ValueError("the snapshot of transactions is cut off")
    return version, memoryview(snapshot), end
