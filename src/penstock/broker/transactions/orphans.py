"""Transactions that are open in a log and nowhere else: no control batch would ever end them.

The coordinator knows a transaction until its control batches are safe, so what it does not know has
lost one: to a flipped bit, to a power cut where nobody waited for a flush, or with a database that
was built anew. Readers of what is committed would wait for its end for ever.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.broker.transactions.states import TransactionState
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.broker.transactions.known import KnownTransactions
    from penstock.broker.transactions.markers import Markers
    from penstock.broker.transactions.on_partition import OpenTransaction
    from penstock.metadata.transactions import TransactionRow

logger = logging.getLogger(__name__)


class Orphans:
    """Ends them as their transactions ended where that is still known, and aborts the others."""

    def __init__(self, known: KnownTransactions, markers: Markers) -> None:
        self._known = known
        self._markers = markers
        self._tasks = Tasks()

    def look_for(self, partition_id: int, found: Iterable[OpenTransaction]) -> None:
        """Have those ended that are open in the log of a partition, which was just opened."""
        orphans = [each for each in found if not self._is_known(each, partition_id)]
        if orphans:
            self._tasks.start(self._end(partition_id, orphans), "end what nobody else would")

    async def close(self) -> None:
        """Give up, until the log is opened again."""
        self._tasks.cancel()
        await self._tasks.ended()

    async def _end(self, partition_id: int, orphans: Sequence[OpenTransaction]) -> None:
        await self._known.loaded.wait()
        wanted = {each.producer_id for each in orphans}
        ids = self._known.ids.values()
        rows = {row.producer_id: row for row in ids if row.producer_id in wanted}
        for each in orphans:
            row = rows.get(each.producer_id)
            name = row.transactional_id if row else ""
            async with self._known.turn(name, each.producer_id):
                if not self._is_known(each, partition_id):
                    await self._end_one(partition_id, each, row)

    async def _end_one(
        self, partition_id: int, orphan: OpenTransaction, row: TransactionRow | None
    ) -> None:
        committed = self._was_committed(orphan, row)
        logger.warning(
            "partition %d: the transaction of producer %d from offset %d on has lost its end: %s",
            *(partition_id, orphan.producer_id, orphan.first_offset),
            "it was committed, and is again" if committed else "it is aborted",
        )
        await self._markers.write(
            orphan.producer_id, orphan.producer_epoch, [partition_id], committed=committed
        )

    def _is_known(self, transaction: OpenTransaction, partition_id: int) -> bool:
        found = self._known.open.get(transaction.producer_id)
        return found is not None and partition_id in found.partition_ids

    def _was_committed(self, orphan: OpenTransaction, row: TransactionRow | None) -> bool:
        if row is None:
            return self._known.how_ended(orphan.producer_id) is True
        # With KIP-890's second part the epoch goes up with the end.
        is_last = orphan.producer_epoch in {row.epoch, row.last_epoch}
        return is_last and row.state == TransactionState.COMPLETE_COMMIT
