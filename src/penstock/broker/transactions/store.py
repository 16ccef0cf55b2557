"""Where the coordinator's state lasts: each decision before it is acted upon, and ends soon after.

That a transaction has ended need not be durable before the client hears of it: after a crash it is
ended once more, which changes nothing. So it is stored with the next one of its producer, or with
others' a moment later.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import TYPE_CHECKING, Final

from penstock import limits
from penstock.broker.transactions.states import PREPARED, TransactionState
from penstock.metadata.errors import MetadataError
from penstock.metadata.transactions import TransactionRow
from penstock.pace import Pace
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.metadata.store import Change
    from penstock.metadata.transactions import TransactionRepository

SAVE_DELAY_SECONDS: Final = 0.1
"""How long an end may be in memory only."""
RETRY_SECONDS: Final = 1.0
"""How long after a write that failed the next one is tried."""

logger = logging.getLogger(__name__)


class TransactionStore:
    """The rows of transactions. Writes are carried out in the order of the calls."""

    def __init__(self, repository: TransactionRepository) -> None:
        self._repository = repository
        self._ended: dict[int, TransactionRow] = {}
        """By their producers' ids those that have ended and are stored as about to end."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = Tasks()
        self._closing = False

    def load(self) -> list[tuple[TransactionRow, set[int], set[str]]]:
        """Read what is open or about to end, with the partitions and others that have a part.

        Blocks. Raises MetadataError.
        """
        partitions: dict[int, set[int]] = {}
        for producer_id, partition_id in self._repository.partitions():
            partitions.setdefault(producer_id, set()).add(partition_id)
        others: dict[int, set[str]] = {}
        for producer_id, name in self._repository.participants():
            others.setdefault(producer_id, set()).add(name)
        nothing: set[int] = set()
        nobody: set[str] = set()
        return [
            (row, partitions.get(row.producer_id, nothing), others.get(row.producer_id, nobody))
            for row in self._repository.in_states([TransactionState.ONGOING, *PREPARED])
        ]

    async def load_idle(self) -> dict[str, TransactionRow]:
        """Read all transactional ids by their names, the one that was used last at the end.

        Raises MetadataError.
        """
        pace = Pace()
        ids: dict[str, TransactionRow] = {}
        found = await self._repository.all()
        for fields in found:
            row = TransactionRow(*fields)
            if row.transactional_id:
                ids[row.transactional_id] = row
            if pace.is_over():
                await pace.others()
        await pace.emptied(found)
        return ids

    async def save(self, rows: Sequence[TransactionRow], with_them: Sequence[Change] = ()) -> None:
        """Store rows, and `with_them`, in one transaction. Raises MetadataError."""
        ended = {
            row.producer_id: self._ended.pop(row.producer_id)
            for row in rows
            if row.producer_id in self._ended
        }
        try:
            await self._repository.write([self._repository.saved(rows), *with_them])
        except MetadataError:
            for producer_id, row in ended.items():
                self._ended.setdefault(producer_id, row)
            raise

    async def begin(
        self,
        row: TransactionRow,
        partition_ids: Iterable[int],
        names: Iterable[str],
        with_it: Sequence[Change] = (),
    ) -> None:
        """Store a transaction with its first parts. Raises MetadataError."""
        repository = self._repository
        before = repository.parts_deleted([row.producer_id])
        parts = repository.added(row.producer_id, partition_ids, names)
        await self.save([row], [*before, *parts, *with_it])

    async def add(
        self,
        row: TransactionRow,
        partition_ids: Iterable[int],
        names: Iterable[str],
        with_it: Sequence[Change] = (),
    ) -> None:
        """Store further parts of a transaction, whose row is stored. Raises MetadataError."""
        parts = self._repository.added(row.producer_id, partition_ids, names)
        await self._repository.write([*parts, *with_it])

    async def replace(self, producer_id: int, row: TransactionRow) -> None:
        """Store a row in the place of another producer id's. Raises MetadataError."""
        await self.save([row], self._forgotten([producer_id]))
        self._ended.pop(producer_id, None)

    async def forget(self, producer_ids: Iterable[int]) -> None:
        """Forget producers that nobody uses. Raises MetadataError."""
        gone = list(producer_ids)
        await self._repository.write(self._forgotten(gone))
        for producer_id in gone:
            self._ended.pop(producer_id, None)

    def save_soon(self, row: TransactionRow) -> None:
        """Have it stored that a transaction has ended; who has no name is forgotten with it."""
        self._ended[row.producer_id] = row
        if self._timer is None and not self._tasks:
            self._begin_after(SAVE_DELAY_SECONDS)

    async def close(self) -> None:
        """Store all ends."""
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.ended()
        await self._save_ended()

    def _begin_after(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._tasks.start(self._save_and_go_on(), "save transactions that have ended")

    async def _save_and_go_on(self) -> None:
        is_saved = await self._save_ended()
        if self._ended and not self._closing:
            self._begin_after(SAVE_DELAY_SECONDS if is_saved else RETRY_SECONDS)

    async def _save_ended(self) -> bool:
        """Store the ends that there are now; False where that fails."""
        left = len(self._ended)
        while left > 0:
            rows = dict(islice(self._ended.items(), min(left, limits.TRANSACTIONS_SAVED_TOGETHER)))
            left -= len(rows)
            try:
                await self._repository.write(self._ends(rows))
            except MetadataError:
                logger.exception("the ends of %d transactions were not saved", len(rows))
                return False
            for producer_id, row in rows.items():
                # Not one whose next transaction has begun meanwhile.
                if self._ended.get(producer_id) is row:
                    del self._ended[producer_id]
        return True

    def _ends(self, rows: dict[int, TransactionRow]) -> list[Change]:
        repository = self._repository
        named = [row for row in rows.values() if row.transactional_id]
        others = [row.producer_id for row in rows.values() if not row.transactional_id]
        return [
            repository.saved(named),
            *repository.parts_deleted(rows),
            repository.deleted(others),
        ]

    def _forgotten(self, producer_ids: Sequence[int]) -> list[Change]:
        repository = self._repository
        return [repository.deleted(producer_ids), *repository.parts_deleted(producer_ids)]
