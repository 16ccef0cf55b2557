"""How a transaction ends: it is decided, what is kept for it takes effect, its partitions hear."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from penstock.broker.transactions import states
from penstock.metadata.errors import MetadataError
from penstock.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.broker.producers.ids import ProducerIds
    from penstock.broker.transactions.known import KnownTransactions
    from penstock.broker.transactions.markers import Markers
    from penstock.broker.transactions.open import OpenTransaction
    from penstock.broker.transactions.participants import Participant
    from penstock.broker.transactions.store import TransactionStore
    from penstock.metadata.store import Change
    from penstock.metadata.transactions import TransactionRow

RETRY_SECONDS: Final = 1.0
"""How long after a control batch that could not be written the next try comes."""

_FINISHED_TOGETHER: Final = 100
"""Transactions that write their control batches at once, and so share flushes."""


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
        await self.carry_out_together([(found, decision)])
        return found.row

    async def carry_out_together(
        self,
        decisions: Sequence[tuple[OpenTransaction, TransactionRow]],
        with_it: Sequence[Change] = (),
    ) -> None:
        """Decide how transactions end, and store `with_it`, in one step; then end each of them.

        Raises as `carry_out`, and nothing is decided of any.
        """
        for found, _ in decisions:
            found.ending = True
        try:
            await self._decide(decisions, with_it)
        except BaseException:
            for found, _ in decisions:
                found.ending = False
            raise
        for start in range(0, len(decisions), _FINISHED_TOGETHER):
            together = decisions[start : start + _FINISHED_TOGETHER]
            await asyncio.gather(*(self._finish(found) for found, _ in together))

    def go_on(self, found: OpenTransaction) -> None:
        """End a transaction that was decided before, but for partitions that have not heard."""
        self._retries.pop(found, None)
        self._tasks.start(self._go_on(found), "end a transaction")

    async def _decide(
        self,
        decisions: Sequence[tuple[OpenTransaction, TransactionRow]],
        with_it: Sequence[Change],
    ) -> None:
        committed = [found for found, decision in decisions if states.is_commit(decision)]
        if committed:
            await self._markers.safe({each for found in committed for each in found.partition_ids})
        for _, decision in decisions:
            for participant in self._participants:
                await participant.settled(decision.producer_id)
        outcomes = [
            change
            for _, decision in decisions
            for participant in self._participants
            for change in participant.outcome(
                decision.producer_id, committed=states.is_commit(decision)
            )
        ]
        await self._store.save([decision for _, decision in decisions], [*outcomes, *with_it])
        for found, decision in decisions:
            found.row = decision
            self._known.put(decision)
            for participant in self._participants:
                participant.decided(decision.producer_id, committed=states.is_commit(decision))

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
