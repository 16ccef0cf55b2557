"""Epochs of any Pulsar with transactions: what is committed is decided by a note of the driver's.

Tasks leave their transactions open. The driver looks whether all are, notes the number of the epoch
with the list of them (that is the decision), ends one after the other, and notes that none is left.
Who does the epoch again finds the decision, and ends what is left.

A broker does not know of a transaction that is over how it ended. So each has one message more, a
token in a topic of the query's own, which is there if the transaction was committed.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clients.closing import Closing
from penstock.clients.kafka.transactions import WRITER_PREFIX
from penstock.clients.pulsar.client import PulsarClient
from penstock.clients.pulsar.connection import RefusedError
from penstock.clients.pulsar.producing import LostReceiptError, Producers
from penstock.clients.pulsar.transactions import (
    GONE,
    Coordinators,
    NoTransactionsError,
    TransactionId,
)
from penstock.pipeline.sink.epochs.attempt import (
    UNNAMED,
    check_epoch,
    check_fingerprint,
    ended_too_soon,
    lost,
)
from penstock.pipeline.sink.epochs.pulsar import PulsarTopics, check_topic, in_words, packer_of
from penstock.pipeline.sink.epochs.pulsar_journal import Decision, Journal
from penstock.pipeline.sink.epochs.pulsar_notes import unique_sender
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.options import AT_LEAST_ONCE, PULSAR_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from penstock.clients.asking import Ask
    from penstock.clients.pulsar.producing import Sender
    from penstock.pipeline.sink.epochs.attempt import Attempt, Outcome
    from penstock.pipeline.sink.options import SinkOptions
    from penstock.pipeline.sink.pulsar_packing import PulsarPacker

TIMEOUT_MS: Final = 900_000
"""Nothing lengthens it while a task is at work, and what was decided has to be ended within it."""


class PulsarEpochs(Closing):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`."""

    def __init__(self, options: SinkOptions, ask: Ask) -> None:
        self._options = options
        self._ask = ask
        self._client = PulsarClient(options.servers, options.address.access)
        self._coordinators = Coordinators(self._client)

    def close(self) -> None:
        self._client.close()

    def check(self) -> None:
        check_topic(self._client, self._options, self._ask)
        with in_words():
            try:
                probe = self._ask(lambda: self._coordinators.begin(TIMEOUT_MS))
            except NoTransactionsError as error:
                raise SinkError(
                    f"the broker at {self._options.servers} has no transactions: have its "
                    f"transactionCoordinatorEnabled be true, or set {AT_LEAST_ONCE} to true if it "
                    f"is no harm that rows may be there twice ({error})"
                ) from error
            self._abort([probe])

    def last(self, writer: str) -> int:
        with in_words():
            return self._journal(writer).read().decision.epoch

    @contextmanager
    def at_work(self, writer: str) -> Iterator[int]:
        yield self.last(writer)

    def task(self, attempt: Attempt) -> TransactionWriter:
        return TransactionWriter(self._client, self._options, attempt, self._ask)

    def commit(
        self, writer: str, epoch: int, outcomes: Sequence[Outcome], fingerprint: str = ""
    ) -> bool:
        wanted = Decision(epoch, [TransactionId._make(each) for each in outcomes], fingerprint)
        journal = self._journal(writer)
        with in_words():
            found = journal.read()
            if found.decision.epoch < epoch and wanted.transactions:
                self._check_open(wanted.transactions, journal)
                journal.decide(wanted)
                found = journal.read()
            check_epoch(writer, epoch, found.decision.epoch)
            decision = found.decision if found.decision.epoch == epoch else wanted
            self._abort(found.abandoned(epoch))
            if decision.transactions:
                self._finish(writer, decision, journal)
                journal.forget(found)
            if writer.startswith(UNNAMED):
                journal.drop()
        # What was decided is finished first: it would end without its rows before long.
        check_fingerprint(writer, epoch, decision.fingerprint, fingerprint)
        return decision is wanted or (bool(wanted.transactions) and decision == wanted)

    def abort(self, writer: str) -> None:
        with in_words():
            journal = self._journal(writer)
            # What is decided is to be committed, by whoever does the epoch again.
            self._abort(journal.read().abandoned())
            if writer.startswith(UNNAMED):
                journal.drop()

    def _journal(self, writer: str) -> Journal:
        return Journal(self._client, writer, self._options.topic, self._ask)

    def _check_open(self, transactions: Iterable[TransactionId], journal: Journal) -> None:
        """Raise SinkError where one is over."""
        topic = journal.committed_topic
        for each in transactions:
            try:
                # It has that topic before, and it is as it was.
                self._ask(lambda: self._coordinators.add(each, topic))  # noqa: B023  # at once
            except RefusedError as error:
                if error.code in GONE:
                    raise ended_too_soon(each, PULSAR_TIMEOUT) from error
                raise

    def _finish(self, writer: str, decision: Decision, journal: Journal) -> None:
        """Commit all, and note that. Raises SinkError where one was aborted before."""
        gone = [each for each in decision.transactions if not self._commits(each)]
        committed = journal.committed()
        if missing := [each for each in gone if each not in committed]:
            record = f"the topic {journal.topic}"
            raise lost((writer, decision.epoch), missing, PULSAR_TIMEOUT, record)
        journal.decide(decision._replace(transactions=()))
        if ids := [committed[each] for each in decision.transactions if each in committed]:
            journal.forget_committed(max(ids))

    def _commits(self, transaction: TransactionId) -> bool:
        """Commit a transaction; False where it has ended before."""
        try:
            self._ask(lambda: self._coordinators.end(transaction, committed=True))
        except RefusedError as error:
            if error.code in GONE:
                return False
            raise
        return True

    def _abort(self, transactions: Iterable[TransactionId]) -> None:
        """End what attempts have left of which nobody wants to know any more."""
        for each in transactions:
            try:
                self._ask(lambda: self._coordinators.end(each, committed=False))  # noqa: B023  # now
            except RefusedError as error:
                if error.code not in GONE:
                    raise


class _Opened(NamedTuple):
    """A transaction that an attempt has begun, and what writes into it."""

    id: TransactionId
    journal: Journal
    sender: Sender
    packer: PulsarPacker
    producers: Producers


class TransactionWriter(Closing):
    """See `penstock.pipeline.sink.epochs.opening.TaskWriter`."""

    def __init__(
        self, client: PulsarClient, options: SinkOptions, attempt: Attempt, ask: Ask
    ) -> None:
        self._client = client
        self._options = options
        self._attempt = attempt
        self._ask = ask
        self._coordinators = Coordinators(client)
        self._opened: _Opened | None = None

    def close(self) -> None:
        """Nothing: the connection is somebody else's."""

    def write(self, rows: pa.RecordBatch) -> None:
        with self._in_words():
            if self._opened is None:
                self._opened = self._begin()
            for outgoing in self._opened.packer.entries(rows):
                self._opened.producers.send(outgoing)

    def finish(self) -> TransactionId | None:
        if self._opened is None:
            return None
        with self._in_words():
            self._opened.producers.send(self._opened.journal.token(self._opened.sender))
            self._opened.producers.flush()
        return self._opened.id

    def abort(self) -> None:
        if self._opened is not None:
            with suppress(RefusedError):  # Then it is over.
                self._coordinators.end(self._opened.id, committed=False)

    def _begin(self) -> _Opened:
        options, attempt = self._options, self._attempt
        found = self._ask(lambda: self._coordinators.begin(options.timeout_ms or TIMEOUT_MS))
        journal = Journal(self._client, attempt.writer, options.topic, self._ask)
        journal.begin(attempt.epoch, found)
        name = f"{WRITER_PREFIX}{attempt.writer}/{attempt.partition}.{attempt.number}"
        sender = unique_sender(name)._replace(transaction=found)
        topics = PulsarTopics(self._client, options.servers, self._ask)
        packer = packer_of(topics, options, attempt, sender)
        return _Opened(found, journal, sender, packer, Producers(self._client, sender, self._ask))

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            with in_words():
                yield
        except LostReceiptError as error:
            raise SinkError(
                f"the connection to {self._options.servers} failed while rows were on their way, "
                f"so this attempt is given up, and the task has to be done again ({error})"
            ) from error
