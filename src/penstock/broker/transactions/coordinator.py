"""The coordinator of transactions: who may write in one, what has a part in it, how it ends.

A producer with a transactional id has one transaction after another; one without has one only. A
transaction begins with its first part. Its end is decided in one SQL transaction, in which what
its participants keep for it takes effect too; then each of its partitions gets a control batch, and
only when all of them are safe has it ended. What a crash leaves half done is done at the next
start, so that a transaction is whole or absent everywhere.

State is answered from memory; what changes it waits for the database, one request of a producer
after another.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from penstock import limits, wall_clock
from penstock.broker.errors import (
    BrokerError,
    ConcurrentTransactionsError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    InvalidTransactionTimeoutError,
    NotInTransactionError,
    UnknownPartitionError,
)
from penstock.broker.transactions import states
from penstock.broker.transactions.endings import Endings
from penstock.broker.transactions.known import KnownTransactions, writer_of
from penstock.broker.transactions.open import OpenTransaction
from penstock.broker.transactions.orphans import Orphans
from penstock.broker.transactions.states import PREPARED, Producer, TransactionState, producer_of
from penstock.pace import Pace
from penstock.tasks import Tasks, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import Any

    from penstock.broker.producers.ids import ProducerIds
    from penstock.broker.transactions import on_partition
    from penstock.broker.transactions.markers import Markers
    from penstock.broker.transactions.participants import Participant
    from penstock.broker.transactions.settings import TransactionSettings
    from penstock.broker.transactions.store import TransactionStore
    from penstock.memory import Memory
    from penstock.metadata.store import Change
    from penstock.metadata.transactions import TransactionRow

ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)


def _no_rows() -> Sequence[Change]:
    return ()


def _nothing() -> None:
    pass


class Described(NamedTuple):
    """A producer of transactions, and the ids of the partitions of what is open."""

    row: TransactionRow
    partition_ids: frozenset[int]


class _Part(NamedTuple):
    """Somebody by name who takes part; see `Coordinator.add_name`."""

    name: str
    rows: Callable[[], Sequence[Change]]
    then: Callable[[], None]
    begins: bool


class Coordinator:
    """All transactions of one node. Where a transactional id is asked for, "" stands for none."""

    def __init__(
        self,
        store: TransactionStore,
        markers: Markers,
        producer_ids: ProducerIds,
        has_partition: Callable[[int], bool],
        settings: TransactionSettings,
        memory: Memory,
        now_ms: Callable[[], int] = wall_clock.steady_ms,
    ) -> None:
        self._store = store
        self._producer_ids = producer_ids
        self._has_partition = has_partition
        self.settings = settings
        self._now_ms = now_ms
        self._known = KnownTransactions(store, memory)
        self._endings = Endings(self._known, store, markers, producer_ids, now_ms)
        self._orphans = Orphans(self._known, markers)
        self._checks = Tasks()
        self._next_check: asyncio.TimerHandle | None = None

    def add_participant(self, participant: Participant) -> None:
        """Have a participant hear of each decision."""
        self._endings.add_participant(participant)

    def load(self) -> None:
        """Read what is open, and go on with what was left half done. Blocks for the former.

        Ids of which nothing is open are read while others are served already: they may be many.
        Raises MetadataError.
        """
        for row, partition_ids, names in self._store.load():
            self._known.put(row)
            found = OpenTransaction(row)
            # Its writer had nobody to tell that it is at work.
            found.seen_at_ms = self._now_ms() if writer_of(row.transactional_id) else -1
            self._known.add_parts(found, partition_ids, names)
            if row.state in PREPARED:
                self._endings.go_on(found)
        self._checks.start(self._load_idle(), "read transactional ids")

    async def close(self) -> None:
        """Store what has ended; what is about to end goes on at the next start."""
        if self._next_check is not None:
            self._next_check.cancel()
            self._next_check = None
        self._checks.cancel()
        await self._checks.ended()
        await self._orphans.close()
        await self._endings.close()
        await self._store.close()

    async def loaded(self) -> None:
        """Return when all ids are known."""
        if not self._known.loaded.is_set():
            await self._known.loaded.wait()

    # What producers ask for

    async def initialise(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None = None
    ) -> Producer:
        """Return the next instance of a producer; what an instance before it has open is aborted.

        With `expected` it goes on as the next epoch of the one it says it was (KIP-360).

        Raises InvalidTransactionTimeoutError, ProducerFencedError, TooManyTransactionsError,
        ConcurrentTransactionsError where the last transaction can't be ended now, and
        MetadataError.
        """
        self._check_timeout(timeout_ms)
        return await _to_its_end(self._initialise(transactional_id, timeout_ms, expected))

    async def begin(self, timeout_ms: int, address: str | None = None) -> Producer:
        """Begin a transaction of a producer that is there for it only, for a client at an address.

        Raises InvalidTransactionTimeoutError, TooManyTransactionsError and MetadataError.
        """
        self._check_timeout(timeout_ms)
        return await _to_its_end(self._begin(timeout_ms, address))

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partition_ids: Iterable[int],
        address: str | None = None,
    ) -> None:
        """Have partitions take part in a producer's transaction, which begins with the first one.

        It counts as one of the client's `address` then; None is not bounded.

        Raises UnknownTransactionError, ProducerFencedError, ConcurrentTransactionsError,
        InvalidTransactionStateError for more than one may have, TooManyTransactionsError,
        UnknownPartitionError where one was deleted, and MetadataError.
        """
        wanted = set(partition_ids)
        found = self._known.open.get(producer.id)
        if found is None or not found.has(transactional_id, producer, wanted):
            await _to_its_end(self._add(transactional_id, producer, wanted, address))

    async def add_name(
        self,
        transactional_id: str,
        producer: Producer,
        name: str,
        rows: Callable[[], Sequence[Change]] = _no_rows,
        then: Callable[[], None] = _nothing,
        *,
        begins: bool = True,
        address: str | None = None,
    ) -> None:
        """Have somebody who is no partition take part, and store what it keeps for the producer.

        `rows` are stored with it, and `then` is called when they are: what they return and do is
        part of the transaction, however soon it ends. Neither may await anything.

        Raises as `add_partitions`; NotInTransactionError where nothing `begins` by this, and `name`
        has no part yet; and what `rows` raises, which changes nothing.
        """
        part = _Part(name, rows, then, begins)
        await _to_its_end(self._add(transactional_id, producer, set(), address, part))

    async def end(
        self, transactional_id: str, producer: Producer, *, committed: bool, bumps: bool = False
    ) -> Producer:
        """End a transaction; return its producer as it is now, which `bumps` gives the next epoch.

        It has ended for readers, too, but where a partition can't be written to: there it ends when
        that is mended.

        Raises UnknownTransactionError, ProducerFencedError, InvalidTransactionStateError,
        ConcurrentTransactionsError, MetadataError, and LogError where something of it is not safe.
        """
        return await _to_its_end(self._end(transactional_id, producer, committed, bumps))

    async def commit_together(
        self, producers: Mapping[str, Producer], with_it: Sequence[Change]
    ) -> None:
        """Commit what producers have open, by their transactional ids, all of it or nothing.

        `with_it` is stored in the same SQL transaction. Each gets the next epoch, so that nobody
        who wrote in it goes on. Raises as `end`.
        """
        await self.loaded()
        async with AsyncExitStack() as turns:
            decisions, pace = [], Pace()
            for transactional_id in sorted(producers):
                await turns.enter_async_context(self._known.turn(transactional_id))
                decisions.append(self._committed(transactional_id, producers[transactional_id]))
                if pace.is_over():
                    await pace.others()
            await self._endings.carry_out_together(decisions, with_it)

    async def abort_all(self, producer_ids: Iterable[int]) -> None:
        """Abort what is open of producers, and fence them."""
        found = [self._known.open[each] for each in producer_ids if each in self._known.open]
        for start in range(0, len(found), limits.TRANSACTIONS_SAVED_TOGETHER):
            together = found[start : start + limits.TRANSACTIONS_SAVED_TOGETHER]
            await asyncio.gather(*map(self._abort, together))

    def of_writer(self, writer: str) -> list[OpenTransaction]:
        """Return what is open of a writer (see `epochs`)."""
        return [self._known.open[each] for each in self._known.of_writer.get(writer, ())]

    def verify(self, producer_id: int, epoch: int, partition_id: int) -> None:
        """Check that a batch of a transaction may be appended to a partition.

        Raises InvalidProducerEpochError and NotInTransactionError.
        """
        found = self._known.open.get(producer_id)
        if found is None or partition_id not in found.partition_ids:
            raise NotInTransactionError("the partition has no part in an open transaction")
        if epoch != found.row.epoch:
            raise InvalidProducerEpochError(
                f"producer {producer_id} has epoch {found.row.epoch}, the batch has {epoch}"
            )
        if not found.is_ongoing:
            raise NotInTransactionError("the transaction is about to end")

    def verify_name(self, transactional_id: str, producer: Producer, name: str) -> None:
        """Check that somebody who is no partition has a part in what a producer has open.

        Raises as `check`.
        """
        self.check(transactional_id, producer)
        found = self._known.open.get(producer.id)
        if found is None or not found.is_ongoing or name not in found.names:
            raise NotInTransactionError(f"{name} has no part in an open transaction")

    def check(
        self, transactional_id: str, producer: Producer, partition_ids: Iterable[int] = ()
    ) -> None:
        """Check that partitions have a part in what a producer has open.

        Raises UnknownTransactionError, ProducerFencedError, ConcurrentTransactionsError and
        NotInTransactionError.
        """
        row = self._known.row(transactional_id, producer.id)
        states.check_producer(row, producer)
        states.check_idle(row)
        for partition_id in partition_ids:
            self.verify(producer.id, producer.epoch, partition_id)

    def log_opened(self, partition_id: int, found: Iterable[on_partition.OpenTransaction]) -> None:
        """Of what is open in a partition's log, have ended what has an end nobody will write."""
        self._orphans.look_for(partition_id, found)

    # What others ask for

    def describe(self, transactional_id: str) -> Described | None:
        """Return what is known of a transactional id, once all are `loaded`."""
        row = self._known.ids.get(transactional_id)
        if row is None:
            return None
        found = self._known.open.get(row.producer_id)
        return Described(row, frozenset(found.partition_ids if found else ()))

    def all(self) -> Mapping[str, TransactionRow]:
        """All transactional ids, once they are `loaded`; a view that others change."""
        return self._known.ids

    def how_ended(self, producer_id: int) -> bool | None:
        """Whether the one transaction of a producer was committed; None where that is not known."""
        return self._known.how_ended(producer_id)

    async def check_times(self) -> None:
        """Abort what is open for too long, and forget ids that nobody has used for too long."""
        now = self._now_ms()
        late, pace = [], Pace()
        for found in list(self._known.open.values()):
            if found.is_late(now):
                late.append(found)
            if pace.is_over():
                await pace.others()
        for start in range(0, len(late), limits.TRANSACTIONS_SAVED_TOGETHER):
            together = late[start : start + limits.TRANSACTIONS_SAVED_TOGETHER]
            await asyncio.gather(*map(self._abort_late, together))
        await self._known.forget_idle(now - self.settings.id_expiration_ms)

    # How

    async def _initialise(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> Producer:
        await self.loaded()
        async with self._known.turn(transactional_id):
            row = self._known.ids.get(transactional_id)
            if row is None:
                await self._known.make_room(self._now_ms(), len(transactional_id))
                producer_id = await self._producer_ids.take()
                row = states.made(transactional_id, producer_id, timeout_ms, self._now_ms())
                await self._store.save([row])
            else:
                row = await self._replaced(row, timeout_ms, expected)
            self._known.put(row)
            return producer_of(row)

    async def _replaced(
        self, row: TransactionRow, timeout_ms: int, expected: Producer | None
    ) -> TransactionRow:
        states.check_idle(row)
        states.check_expected(row, expected)
        if row.state == TransactionState.ONGOING:
            if expected is not None:
                states.check_producer(row, expected)
                expected = None
            found = self._known.open[row.producer_id]
            row = await self._endings.carry_out(found, states.fenced(row, self._now_ms()))
            states.check_idle(row)
        if not states.needs_new_id(row, expected):
            row = states.with_next_epoch(row, expected, timeout_ms, self._now_ms())
            await self._store.save([row])
            return row
        producer_id = await self._producer_ids.take()
        replacing = states.with_new_id(row, producer_id, timeout_ms, self._now_ms())
        await self._store.replace(row.producer_id, replacing)
        return replacing

    async def _begin(self, timeout_ms: int, address: str | None) -> Producer:
        await self._known.make_room(self._now_ms())
        self._known.check_count(address)
        producer_id = await self._producer_ids.take()
        row = states.made("", producer_id, timeout_ms, self._now_ms())
        row = states.begun(row, self._now_ms())
        await self._store.save([row])
        self._known.add_parts(OpenTransaction(row, address), set(), set())
        return producer_of(row)

    async def _add(
        self,
        transactional_id: str,
        producer: Producer,
        wanted: set[int],
        address: str | None,
        part: _Part | None = None,
    ) -> None:
        await self.loaded()
        async with self._known.turn(transactional_id, producer.id):
            row = self._known.row(transactional_id, producer.id)
            states.check_producer(row, producer)
            begun = states.begun(row, self._now_ms())
            found = self._known.open.get(producer.id)
            if part and not part.begins and (found is None or part.name not in found.names):
                raise NotInTransactionError(f"{part.name} has no part in the transaction")
            if found is None:
                self._known.check_count(address)
                found = OpenTransaction(begun, address)
            new = wanted - found.partition_ids
            names = {part.name} - found.names if part else set()
            await self._known.make_room_in(found, len(new), names, self._now_ms())
            # From here to the store nothing is awaited: a deletion's rows go before, or after.
            if not all(map(self._has_partition, new)):
                raise UnknownPartitionError("a partition was deleted")
            rows = part.rows() if part else ()
            store = self._store.add if begun is row else self._store.begin
            await store(begun, new, names, rows)
            self._known.add_parts(found, new, names)
            self._known.put(begun)
            if part:
                part.then()

    async def _end(
        self, transactional_id: str, producer: Producer, committed: bool, bumps: bool
    ) -> Producer:
        await self.loaded()
        async with self._known.turn(transactional_id, producer.id):
            row = self._known.row(transactional_id, producer.id)
            if states.has_ended(row, producer, committed=committed, bumps=bumps):
                return producer_of(row)
            found = self._known.open.get(row.producer_id) or OpenTransaction(row)
            decision = states.prepared(row, self._now_ms(), committed=committed, bumps=bumps)
            row = await self._endings.carry_out(found, decision)
            if row.epoch > states.LAST_EPOCH:
                raise ConcurrentTransactionsError("the producer's next id is not known yet")
            return producer_of(row)

    def _committed(
        self, transactional_id: str, producer: Producer
    ) -> tuple[OpenTransaction, TransactionRow]:
        """Return what a producer has open, and its row as it is once that is to be committed."""
        row = self._known.row(transactional_id, producer.id)
        if states.has_ended(row, producer, committed=True, bumps=False):
            raise InvalidTransactionStateError(f"the transaction is {row.state}")
        decision = states.prepared(row, self._now_ms(), committed=True, bumps=True)
        return self._known.open[row.producer_id], decision

    async def _abort_late(self, found: OpenTransaction) -> None:
        await self._abort(found, lambda: found.is_late(self._now_ms()))

    async def _abort(
        self, found: OpenTransaction, is_due: Callable[[], bool] = lambda: True
    ) -> None:
        """Abort a transaction if it is open by then, and that is still due."""
        producer_id = found.row.producer_id
        try:
            async with self._known.turn(found.row.transactional_id, producer_id):
                if self._known.open.get(producer_id) is found and found.is_ongoing and is_due():
                    logger.info("producer %d: its transaction is given up", producer_id)
                    await self._endings.carry_out(found, states.fenced(found.row, self._now_ms()))
        except Exception:
            # Others' go on, and this one is tried again when it has been open for too long.
            logger.exception("a transaction that was given up was not aborted")

    def _check_timeout(self, timeout_ms: int) -> None:
        if not 0 < timeout_ms <= self.settings.max_timeout_ms:
            raise InvalidTransactionTimeoutError(
                f"a transaction may be open for 1 to {self.settings.max_timeout_ms} ms, "
                f"not {timeout_ms}"
            )

    async def _load_idle(self) -> None:
        await self._known.load()
        self._check_later()

    def _check_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_check = loop.call_later(limits.TRANSACTION_CHECK_SECONDS, self._begin_check)

    def _begin_check(self) -> None:
        self._checks.start(self._check_and_go_on(), "look after transactions")

    async def _check_and_go_on(self) -> None:
        try:
            await self.check_times()
        finally:
            if self._next_check is not None:
                self._check_later()


async def _to_its_end(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Go on although a client leaves: its request may be decided."""
    return await uninterrupted(work, "a transaction", refusals=BrokerError)
