"""Epochs of any Kafka: what is committed is decided in one small transaction of the driver's own.

Tasks leave their transactions open. The driver looks whether all are, has the query's group keep
the number of the epoch with the list of them (that is the decision), ends one after the other, and
notes that none is left. Who does the epoch again finds the decision, and ends what is left.

Both drivers and tasks begin by becoming the producer of the driver's transactional id. So a driver
that was taken for dead can't decide any more, when the tasks of another one have begun.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from penstock.clients.closing import Closing
from penstock.clients.kafka.client import KafkaError
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.kafka.coordinator import ProducerState, Transactions
from penstock.clients.kafka.transactions import WRITER_PREFIX, TransactionalProducer
from penstock.kafka.wire import ErrorCode
from penstock.pipeline.sink.epochs.attempt import (
    CLIENT_ID,
    TIMEOUT_S,
    check_epoch,
    check_fingerprint,
    ended_too_soon,
    lost,
)
from penstock.pipeline.sink.epochs.decision import Decision, last_noted, noted
from penstock.pipeline.sink.epochs.transaction import TransactionWriter, check_topic
from penstock.pipeline.sink.options import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.clients.asking import Ask
    from penstock.pipeline.sink.epochs.attempt import Attempt, Outcome
    from penstock.pipeline.sink.options import SinkOptions

logger = logging.getLogger(__name__)

TIMEOUT_MS: Final = 900_000
"""What a broker takes at most where nothing else is set (`transaction.max.timeout.ms`).

Nothing lengthens it while a task is at work, and what was decided has to be ended within it.
"""

_DECIDING_MS: Final = 60_000
"""How long a driver may be about its decision."""

_TRIES: Final = 3
"""How often a driver decides whom a task that was given up got in the way of."""

_FENCED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
    }
)


class _FencedError(Exception):
    """Somebody else has become the driver."""

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class KafkaEpochs(Closing):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`."""

    def __init__(self, options: SinkOptions, ask: Ask) -> None:
        self._options = options
        self._ask = ask
        self._timeout_ms = options.timeout_ms or TIMEOUT_MS
        self._connection = self._new_connection()
        self._transactions = Transactions(self._connection)

    def close(self) -> None:
        self._transactions.close()
        self._connection.close()

    def check(self) -> None:
        check_topic(self._options, self._ask)
        self._begin(f"{WRITER_PREFIX}check", self._timeout_ms)

    def last(self, writer: str) -> int:
        decision = self._decided(writer)
        return -1 if decision is None else decision.epoch

    @contextmanager
    def at_work(self, writer: str) -> Iterator[int]:
        self._begin(_driver(writer), _DECIDING_MS)
        yield self.last(writer)

    def task(self, attempt: Attempt) -> TransactionWriter:
        return TransactionWriter(self._options, attempt, self._ask, self._producer)

    def _producer(self, attempt: Attempt) -> TransactionalProducer:
        return TransactionalProducer(
            self._new_connection(),
            attempt.transactional_id,
            self._timeout_ms,
            self._ask,
            names_partitions=True,
        )

    def commit(
        self, writer: str, epoch: int, outcomes: Sequence[Outcome], fingerprint: str = ""
    ) -> bool:
        producers = [ProducerState._make(each) for each in outcomes]
        wanted = Decision(epoch, producers, "", fingerprint)
        decision, is_new, driver = self._decide(writer, wanted)
        self._finish(writer, decision)
        if decision.producers:
            with suppress(_FencedError):  # Then it is found out anew that all are committed.
                self._note(writer, driver, decision._replace(producers=()))
        self._abort_but(writer, {each.transactional_id for each in decision.producers})
        # What was decided is finished first: it would end without its rows before long.
        check_fingerprint(writer, epoch, decision.fingerprint, fingerprint)
        return is_new

    def abort(self, writer: str) -> None:
        decision = self._decided(writer)
        # What is decided is to be committed, by whoever does the epoch again.
        spared = decision.producers if decision else ()
        self._abort_but(writer, {each.transactional_id for each in spared})

    def _decide(self, writer: str, wanted: Decision) -> tuple[Decision, bool, ProducerState]:
        """Return what holds from now on, whether it was decided here, and who the driver is."""
        for tries_left in reversed(range(_TRIES)):
            driver = self._begin(_driver(writer), _DECIDING_MS)
            found = self._decided(writer)
            if found is not None and found.epoch >= wanted.epoch:
                check_epoch(writer, wanted.epoch, found.epoch)
                return found, _same(found, wanted), driver
            if not wanted.producers:
                return wanted, True, driver
            topics = [topic for each in wanted.producers for topic in self._topics(each)]
            decision = wanted._replace(topic=min(topics))
            try:
                self._note(writer, driver, decision)
            except _FencedError as error:
                if not tries_left:
                    raise error.cause from error
            else:
                return decision, True, driver
        raise AssertionError("the last try returns or raises")

    def _note(self, writer: str, driver: ProducerState, decision: Decision) -> None:
        kept = noted(decision, _prefix(writer))
        try:
            self._ask(lambda: self._transactions.keep_offset(driver, _group(writer), kept))
            self._ask(lambda: self._transactions.end(driver, committed=True))
        except KafkaError as error:
            if error.code in _FENCED:
                raise _FencedError(error) from error
            raise

    def _topics(self, producer: ProducerState) -> list[str]:
        """Return where a task has written. Raises SinkError where its transaction is over."""
        found = self._ask(lambda: self._transactions.ongoing(producer.transactional_id))
        if found is None or found.producer != producer:
            raise ended_too_soon(producer.transactional_id, TIMEOUT)
        return found.topics

    def _finish(self, writer: str, decision: Decision) -> None:
        gone = []
        for each in decision.producers:
            try:
                self._ask(lambda: self._transactions.end(each, committed=True))  # noqa: B023  # now
            except KafkaError as error:
                if error.code not in _FENCED:
                    raise
                gone.append(each.transactional_id)
        if gone:
            raise lost((writer, decision.epoch), gone, TIMEOUT, f"the group {_group(writer)}")

    def _abort_but(self, writer: str, spared: set[str]) -> None:
        """End what attempts have left of which nobody wants to know any more."""
        prefix = _prefix(writer)
        for each in self._ask(lambda: self._transactions.all_ongoing(prefix)):
            if each not in spared:
                logger.info("aborting what is open under %s", each)
                # It is aborted from the first answer on, which is that this is going on.
                with suppress(OSError):
                    self._transactions.begin(each, self._timeout_ms)

    def _begin(self, transactional_id: str, timeout_ms: int) -> ProducerState:
        return self._ask(lambda: self._transactions.begin(transactional_id, timeout_ms))

    def _decided(self, writer: str) -> Decision | None:
        kept = self._ask(lambda: self._transactions.kept_offsets(_group(writer)))
        return last_noted(kept, _prefix(writer))

    def _new_connection(self) -> ClientConnection:
        address = self._options.address
        return ClientConnection(address.servers, CLIENT_ID, TIMEOUT_S, address.access)


def _prefix(writer: str) -> str:
    return f"{WRITER_PREFIX}{writer}/"


def _driver(writer: str) -> str:
    return f"{_prefix(writer)}driver"


def _group(writer: str) -> str:
    return f"{WRITER_PREFIX}{writer}"


def _same(found: Decision, wanted: Decision) -> bool:
    return bool(found.producers) and sorted(found.producers) == sorted(wanted.producers)
