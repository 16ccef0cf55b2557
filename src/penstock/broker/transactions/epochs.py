"""Writers of many tasks whose transactions take effect together, one epoch after the other.

Each attempt of a task writes in a transaction of its own, whose transactional id begins with the
writer's name, and leaves it open. One request commits those that make the epoch, and stores the
epoch, in one SQL transaction. So an epoch is written as a whole or not at all, and once: whoever
comes with it again finds it stored, and what it wrote is aborted. What other attempts of the writer
have left is aborted with the decision, or when its time is over, which begins anew each time that
the writer says it is at work.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

from penstock import limits, wall_clock
from penstock.broker.errors import (
    BrokerError,
    InvalidEpochError,
    InvalidWriterError,
    TooManyTransactionsError,
)
from penstock.broker.transactions.known import writer_of
from penstock.memory import Holding
from penstock.metadata.epochs import EpochRow
from penstock.tasks import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.broker.transactions.coordinator import Coordinator
    from penstock.broker.transactions.states import Producer
    from penstock.memory import Memory
    from penstock.metadata.epochs import EpochRepository

logger = logging.getLogger(__name__)

NO_EPOCH: Final = -1

_ROW_BYTES: Final = 500
"""About what a writer takes in memory besides its name, with a fingerprint."""


class Decided(NamedTuple):
    """What holds of an epoch once it was asked to be committed."""

    written: bool
    """Whether it was committed now, and not before."""
    fingerprint: str
    """Of what was committed; empty where its writer did not say."""


class Epochs:
    """The last epochs of all writers of one node."""

    def __init__(
        self,
        repository: EpochRepository,
        coordinator: Coordinator,
        memory: Memory,
        now_ms: Callable[[], int] = wall_clock.steady_ms,
    ) -> None:
        self._repository = repository
        self._coordinator = coordinator
        self._now_ms = now_ms
        self._rows: dict[str, EpochRow] | None = None
        """By writers' names, the one that was used last at the end; None until they are read."""
        self._reading = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._held = Holding(memory.metadata)

    async def commit(
        self, writer: str, epoch: int, producers: Mapping[str, Producer], fingerprint: str = ""
    ) -> Decided:
        """Commit what producers, by their transactional ids, have open, as one epoch of a writer.

        Whatever else is open of the writer is aborted. Where the epoch was committed before, what
        these producers have open is aborted. The fingerprint is kept with the epoch, so that who
        comes with it again can tell whether it is made of the same; up to
        `limits.FINGERPRINT_CHARACTERS`.

        Raises InvalidWriterError, InvalidEpochError, TooManyTransactionsError, and as
        `Coordinator.end`; nothing is committed then.
        """
        work = self._commit(writer, epoch, producers, fingerprint)
        return await uninterrupted(work, "an epoch", refusals=BrokerError)

    async def abort(self, writer: str) -> None:
        """Abort all that is open of a writer. Raises InvalidWriterError."""
        _check_writer(writer)
        await self._coordinator.loaded()
        async with self._turn(writer):
            await self._abort_open(writer)

    async def seen(self, writer: str) -> int:
        """Have a writer be at work, and return its last epoch, NO_EPOCH where it has none.

        Raises InvalidWriterError and MetadataError.
        """
        _check_writer(writer)
        rows = await self._read()
        now = self._now_ms()
        for found in self._coordinator.of_writer(writer):
            found.seen_at_ms = now
        return rows[writer].epoch if writer in rows else NO_EPOCH

    async def _commit(
        self, writer: str, epoch: int, producers: Mapping[str, Producer], fingerprint: str
    ) -> Decided:
        _check_writer(writer)
        _check_producers(writer, producers)
        _check_fingerprint(fingerprint)
        await self._coordinator.loaded()
        rows = await self._read()
        async with self._turn(writer):
            last = rows[writer].epoch if writer in rows else NO_EPOCH
            if epoch == last:
                await self._abort_these(writer, producers)
                return Decided(written=False, fingerprint=rows[writer].fingerprint)
            if epoch < last or epoch < 0:
                raise InvalidEpochError(f"epoch {epoch} was asked for after epoch {last}")
            if last == NO_EPOCH:
                await self._make_room(rows)
            row = EpochRow(writer, epoch, self._now_ms(), fingerprint)
            await self._coordinator.commit_together(producers, [self._repository.saved(row)])
            if rows.pop(writer, None) is None:
                self._held.grow(_size_of(row))
            rows[writer] = row
            await self._abort_open(writer)
            return Decided(written=True, fingerprint=fingerprint)

    async def _abort_open(self, writer: str) -> None:
        found = self._coordinator.of_writer(writer)
        await self._coordinator.abort_all([each.row.producer_id for each in found])

    async def _abort_these(self, writer: str, producers: Mapping[str, Producer]) -> None:
        """Abort what is open of those that are still who they were."""
        await self._coordinator.abort_all(
            [
                found.row.producer_id
                for found in self._coordinator.of_writer(writer)
                if producers.get(found.row.transactional_id)
                == (found.row.producer_id, found.row.epoch)
            ]
        )

    async def _read(self) -> dict[str, EpochRow]:
        """Return all writers, which are read when somebody first asks. Raises MetadataError."""
        async with self._reading:
            if self._rows is None:
                found = [EpochRow(*fields) for fields in await self._repository.all()]
                self._rows = {row.writer: row for row in found}
                self._held.grow(sum(map(_size_of, found)))
            return self._rows

    async def _make_room(self, rows: dict[str, EpochRow]) -> None:
        """Forget who has not written for long; more of them where there are too many.

        Raises TooManyTransactionsError where that is not enough, and MetadataError.
        """
        now = self._now_ms()
        await self._forget(rows, now - self._coordinator.settings.id_expiration_ms)
        if len(rows) >= limits.WRITERS:
            await self._forget(rows, now - limits.TRANSACTIONAL_ID_IDLE_SECONDS * 1000)
        if len(rows) >= limits.WRITERS:
            raise TooManyTransactionsError(f"{limits.WRITERS} writers are known already")

    async def _forget(self, rows: dict[str, EpochRow], before_ms: int) -> None:
        idle: list[EpochRow] = []
        for row in rows.values():
            if row.changed_at_ms >= before_ms or len(idle) == limits.TRANSACTIONS_SAVED_TOGETHER:
                break
            if row.writer not in self._turns and not self._coordinator.of_writer(row.writer):
                idle.append(row)
        if not idle:
            return
        await self._repository.forget([row.writer for row in idle])
        for row in idle:
            if rows.get(row.writer) is row:
                del rows[row.writer]
                self._held.grow(-_size_of(row))

    def _turn(self, writer: str) -> asyncio.Lock:
        """Return what is held while a writer's epoch is decided."""
        turn = self._turns.get(writer)
        if turn is None:
            turn = self._turns[writer] = asyncio.Lock()
        return turn


def _check_writer(writer: str) -> None:
    if not 0 < len(writer) <= limits.WRITER_CHARACTERS or "/" in writer:
        raise InvalidWriterError(
            f"a writer's name has 1 to {limits.WRITER_CHARACTERS} characters and no slash"
        )


def _check_producers(writer: str, producers: Mapping[str, Producer]) -> None:
    if len(producers) > limits.EPOCH_PRODUCERS:
        raise InvalidEpochError(
            f"an epoch has at most {limits.EPOCH_PRODUCERS} producers, not {len(producers)}"
        )
    for transactional_id in producers:
        if writer_of(transactional_id) != writer:
            raise InvalidWriterError(f"{transactional_id[:100]!r} is no transactional id of it")


def _check_fingerprint(fingerprint: str) -> None:
    if len(fingerprint) > limits.FINGERPRINT_CHARACTERS:
        raise InvalidEpochError(
            f"a fingerprint has at most {limits.FINGERPRINT_CHARACTERS} characters"
        )


def _size_of(row: EpochRow) -> int:
    return _ROW_BYTES + len(row.writer)
