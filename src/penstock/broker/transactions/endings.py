"""How a transaction ends: it is decided, what is kept for it takes effect, its partitions hear."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.broker.transactions import states
from penstock.metadata.errors import MetadataError
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.producers.ids import ProducerIds
    from penstock.broker.transactions.known import KnownTransactions
    from penstock.broker.transactions.markers import Markers
    from penstock.broker.transactions.open import OpenTransaction
    from penstock.broker.transactions.participants import Participant
    from penstock.broker.transactions.store import TransactionStore
    from penstock.metadata.transactions import TransactionRow

RETRY_SECONDS: Final = 1.0
"""How long after a control batch that could not be written the next try comes."""


class Endings:
    """Ends transactions. Whoever asks for it holds the producer's turn."""

    def __init__(
        self,
        known: KnownTransactions,
        store: TransactionStore,
        markers: Markers,
        producer_ids: ProducerIds,
        now_ms: Callable[[], int],
    ) -> None:
        self._known = known
        self._store = store
        self._markers = markers
        self._producer_ids = producer_ids
        self._now_ms = now_ms
        self._participants: list[Participant] = []
        self._tasks = Tasks()
        self._retries: dict[OpenTransaction, asyncio.TimerHandle] = {}

    def add_participant(self, participant: Participant) -> None:
        """Have a participant hear of each decision."""
        self._participants.append(participant)

    async def close(self) -> None:
        """Begin nothing more, and return when nothing goes on."""
        for retry in self._retries.values():
            retry.cancel()
        await self._tasks.ended()

    async def carry_out(self, found: OpenTransaction, decision: TransactionRow) -> TransactionRow:
        """Decide how a transaction ends, and end it; return its producer's row as it is then.

        It is still about to end where a partition can't be written to: that is tried again. Raises
        MetadataError and LogError where nothing is decided.
        """
        found.ending = True
        try:
            await self._decide(found, decision)
        except BaseException:
            found.ending = False
            raise
        await self._finish(found)
        return found.row

    def go_on(self, found: OpenTransaction) -> None:
        """End a transaction that was decided before, but for partitions that have not heard."""
        self._retries.pop(found, None)
        self._tasks.start(self._go_on(found), "end a transaction")

    async def _decide(self, found: OpenTransaction, decision: TransactionRow) -> None:
        producer_id, committed = decision.producer_id, states.is_commit(decision)
        if committed:
            await self._markers.safe(found.partition_ids)
        for participant in self._participants:
            await participant.settled(producer_id)
        outcomes = [
            change
            for participant in self._participants
            for change in participant.outcome(producer_id, committed=committed)
        ]
        await self._store.save(decision, outcomes)
        found.row = decision
        self._known.put(decision)
        for participant in self._participants:
            participant.decided(producer_id, committed=committed)

    async def _go_on(self, found: OpenTransaction) -> None:
        async with self._known.turn(found.row.transactional_id, found.row.producer_id):
            await self._finish(found)

    async def _finish(self, found: OpenTransaction) -> None:
        row = found.row
        failed = await self._markers.write(
            row.producer_id, row.epoch, found.partition_ids, committed=states.is_commit(row)
        )
        self._known.keep_partitions(found, failed)
        try:
            ended = None if failed else await self._stored(states.completed(row, self._now_ms()))
        except MetadataError:
            ended = None
        if ended is not None:
            self._known.end(found, ended)
        else:
            loop = asyncio.get_running_loop()
            self._retries[found] = loop.call_later(RETRY_SECONDS, self.go_on, found)

    async def _stored(self, ended: TransactionRow) -> TransactionRow:
        """Have an end stored soon; at once where the producer has used up its epochs with it.

        It gets another id then, of which it is told. Raises MetadataError.
        """
        if not ended.epoch > states.LAST_EPOCH == ended.last_epoch:
            self._store.save_soon(ended)
            return ended
        producer_id = await self._producer_ids.take()
        replacing = states.with_new_id(ended, producer_id, ended.timeout_ms, self._now_ms())
        replacing = replacing._replace(state=ended.state)
        await self._store.replace(ended.producer_id, replacing)
        return replacing
