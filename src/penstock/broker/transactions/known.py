"""What the coordinator knows of transactions, and how much memory that may take."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from penstock import limits
from penstock.broker.errors import (
    InvalidTransactionStateError,
    TooManyTransactionsError,
    UnknownTransactionError,
)
from penstock.broker.transactions.states import TransactionState
from penstock.memory import Holding
from penstock.metadata.errors import MetadataError
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.transactions.open import OpenTransaction
    from penstock.broker.transactions.store import TransactionStore
    from penstock.memory import Memory
    from penstock.metadata.transactions import TransactionRow

logger = logging.getLogger(__name__)

WRITER_PREFIX: Final = "penstock-writer/"
"""Begins the transactional ids of a writer's tasks: its name follows, a slash, and the task's."""

_ID_BYTES: Final = 500
"""About what a transactional id takes in memory besides its own bytes."""
_LEAST_BYTES: Final = 1024
"""What there has to be room for when anything is added."""


class KnownTransactions:
    """Of all producers. Where a transactional id is asked for, "" stands for none.

    `ids` are the rows of transactional ids by their names; those that were used last come last.
    `open` are transactions by their producers' ids, until they have ended.
    """

    def __init__(self, store: TransactionStore, memory: Memory) -> None:
        self.ids: dict[str, TransactionRow] = {}
        self.open: dict[int, OpenTransaction] = {}
        self.loaded = asyncio.Event()
        """Until it is set, only ids of which something is open are known."""
        self.of_writer: dict[str, set[int]] = {}
        """The producers' ids of those that are open, by writers' names (see `epochs`)."""
        self._of_address: Counter[str] = Counter()
        """How many of those that are open the clients of an address began."""
        self._ended: OrderedDict[int, bool] = OrderedDict()
        """How those ended whose producers are no more."""
        self._turns: WeakValueDictionary[str | int, asyncio.Lock] = WeakValueDictionary()
        self._store = store
        self._account = memory.metadata
        self._held = Holding(memory.metadata)

    def turn(self, transactional_id: str, producer_id: int = -1) -> asyncio.Lock:
        """Return what a request holds while it changes what a producer has.

        A row that was read before it is held may be another one by then.
        """
        key = transactional_id or producer_id
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = asyncio.Lock()
        return turn

    async def load(self) -> None:
        """Read the ids of which nothing is open, while others are served already."""
        try:
            found = await self._store.load_idle()
        except MetadataError:
            logger.exception("transactional ids can't be read: their producers have to begin anew")
        else:
            idle = sum(await Pace().each(found.values(), _size_of))
            # What is here is newer, and counted.
            idle -= sum(_size_of(found[name]) for name in self.ids if name in found)
            found.update(self.ids)
            self.ids = found
            self._held.grow(idle)
        self.loaded.set()

    def row(self, transactional_id: str, producer_id: int) -> TransactionRow:
        """Return what is known of a producer. Raises UnknownTransactionError."""
        if transactional_id:
            row = self.ids.get(transactional_id)
        else:
            found = self.open.get(producer_id)
            row = found.row if found and not found.row.transactional_id else None
        if row is None:
            raise UnknownTransactionError("no producer has this transactional id")
        return row

    def put(self, row: TransactionRow) -> None:
        """Keep the row of a transactional id in the place of the one before."""
        if not row.transactional_id:
            return
        if self.ids.pop(row.transactional_id, None) is None:
            self._held.grow(_size_of(row))
        self.ids[row.transactional_id] = row

    def add_parts(self, found: OpenTransaction, partition_ids: set[int], names: set[str]) -> None:
        """Keep a transaction that is open, and what has a part in it now."""
        producer_id = found.row.producer_id
        before = found.size if producer_id in self.open else 0
        if producer_id not in self.open and found.address is not None:
            self._of_address[found.address] += 1
        self.open[producer_id] = found
        if writer := writer_of(found.row.transactional_id):
            self.of_writer.setdefault(writer, set()).add(producer_id)
        found.partition_ids |= partition_ids
        found.names |= names
        self._held.grow(found.size - before)

    def keep_partitions(self, found: OpenTransaction, partition_ids: set[int]) -> None:
        """Of a transaction that is about to end only these partitions have not heard yet."""
        before = found.size
        found.partition_ids &= partition_ids
        if found.row.producer_id in self.open:
            self._held.grow(found.size - before)

    def end(self, found: OpenTransaction, ended: TransactionRow) -> None:
        """A transaction has ended; the row may be one of another producer id."""
        if self.open.pop(found.row.producer_id, None) is not None:
            self._held.grow(-found.size)
            self._uncount(found.address)
            self._leave_writer(found.row)
        found.row = ended
        self.put(ended)
        if not ended.transactional_id:
            self._ended[ended.producer_id] = ended.state == TransactionState.COMPLETE_COMMIT
            if len(self._ended) > limits.TRANSACTIONS_ENDED:
                self._ended.popitem(last=False)

    def how_ended(self, producer_id: int) -> bool | None:
        """Whether the one transaction of a producer was committed; None where that is not known."""
        return self._ended.get(producer_id)

    def check_count(self, address: str | None) -> None:
        """Raise TooManyTransactionsError where no more may be open: of one address, or of all."""
        if address and self._of_address[address] >= limits.ADDRESS_OPEN_TRANSACTIONS:
            raise TooManyTransactionsError(
                f"{address} has {limits.ADDRESS_OPEN_TRANSACTIONS} transactions open"
            )
        if len(self.open) >= limits.OPEN_TRANSACTIONS:
            raise TooManyTransactionsError("as many transactions are open as may be")

    async def make_room(self, now_ms: int, size: int = 0) -> None:
        """Forget ids that nobody uses where there are too many.

        Raises TooManyTransactionsError where that is not enough, and MetadataError.
        """
        if self._has_room(size):
            return
        await self.forget_idle(now_ms - limits.TRANSACTIONAL_ID_IDLE_SECONDS * 1000)
        if not self._has_room(size):
            raise TooManyTransactionsError("there is no room for one more transaction yet")

    async def make_room_in(
        self, found: OpenTransaction, partitions: int, names: set[str], now_ms: int
    ) -> None:
        """Have room for more parts of a transaction. Raises as `make_room`, and where it has as
        many as it may, InvalidTransactionStateError.
        """
        if found.part_count + partitions + len(names) > limits.TRANSACTION_PARTS:
            raise InvalidTransactionStateError(
                f"a transaction has at most {limits.TRANSACTION_PARTS} parts"
            )
        await self.make_room(now_ms, found.size_of(partitions, names))

    async def forget_idle(self, before_ms: int) -> None:
        """Forget some ids that were last used before this time. Raises MetadataError."""
        idle: list[TransactionRow] = []
        for row in self.ids.values():
            if row.changed_at_ms >= before_ms or len(idle) == limits.TRANSACTIONS_SAVED_TOGETHER:
                break
            if row.producer_id not in self.open and row.transactional_id not in self._turns:
                idle.append(row)
        for row in idle:
            del self.ids[row.transactional_id]
            self._held.grow(-_size_of(row))
        if idle:
            await self._store.forget(row.producer_id for row in idle)

    def _leave_writer(self, row: TransactionRow) -> None:
        writer = writer_of(row.transactional_id)
        if writer:
            others = self.of_writer[writer]
            others.discard(row.producer_id)
            if not others:
                del self.of_writer[writer]

    def _uncount(self, address: str | None) -> None:
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def _has_room(self, size: int) -> bool:
        size += _LEAST_BYTES
        within = self._held.size + size <= limits.TRANSACTION_BYTES
        return within and self._account.fits(size)


def writer_of(transactional_id: str) -> str:
    """Return whose epochs the transactions of an id are part of; "" where nobody's."""
    if not transactional_id.startswith(WRITER_PREFIX):
        return ""
    return transactional_id[len(WRITER_PREFIX) :].rpartition("/")[0]


def _size_of(row: TransactionRow) -> int:
    return _ID_BYTES + len(row.transactional_id)
