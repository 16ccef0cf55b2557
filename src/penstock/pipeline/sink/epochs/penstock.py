"""Epochs of Penstock: one request ends the transactions of all tasks, and is remembered."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from penstock.clients.closing import Closing
from penstock.clients.kafka.client import KafkaError
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.kafka.coordinator import ProducerState
from penstock.clients.kafka.transactions import TransactionalProducer, WriterClient
from penstock.kafka.wire import ErrorCode
from penstock.pipeline.sink.epochs.attempt import (
    CLIENT_ID,
    TIMEOUT_S,
    check_epoch,
    check_fingerprint,
    once,
)
from penstock.pipeline.sink.epochs.transaction import TransactionWriter, check_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.clients.asking import Ask
    from penstock.pipeline.sink.epochs.attempt import Attempt, Outcome
    from penstock.pipeline.sink.options import SinkOptions

BEATS: Final = 6
"""In the time after which a transaction is given up of which nobody has heard."""

TIMEOUT_MS: Final = 60_000

_LAST_BEAT_SECONDS: Final = 1
"""How long a task waits for an answer that nobody needs any more."""


class PenstockEpochs(Closing):
    """See `penstock.pipeline.sink.epochs.opening.Epochs`."""

    def __init__(self, options: SinkOptions, ask: Ask) -> None:
        self._options = options
        self._ask = ask
        self._timeout_ms = options.timeout_ms or TIMEOUT_MS
        self._writers = WriterClient(self._connection(), ask)

    def close(self) -> None:
        self._writers.close()

    def check(self) -> None:
        check_topic(self._options, self._ask)

    def last(self, writer: str) -> int:
        return self._writers.heartbeat(writer)

    @contextmanager
    def at_work(self, writer: str) -> Iterator[int]:
        last = self.last(writer)
        ended = threading.Event()
        arguments = writer, ended
        thread = threading.Thread(
            target=self._beat, args=arguments, name="penstock at work", daemon=True
        )
        thread.start()
        try:
            yield last
        finally:
            ended.set()
            thread.join(_LAST_BEAT_SECONDS)

    def task(self, attempt: Attempt) -> TransactionWriter:
        return TransactionWriter(self._options, attempt, self._ask, self._producer)

    def _producer(self, attempt: Attempt) -> TransactionalProducer:
        connection = self._connection()
        return TransactionalProducer(
            connection, attempt.transactional_id, self._timeout_ms, self._ask
        )

    def commit(
        self, writer: str, epoch: int, outcomes: Sequence[Outcome], fingerprint: str = ""
    ) -> bool:
        producers = [ProducerState._make(each) for each in outcomes]
        try:
            ended = self._writers.commit_epoch(writer, epoch, producers, fingerprint)
        except KafkaError as error:
            if error.code == ErrorCode.INVALID_TXN_STATE:
                check_epoch(writer, epoch, self.last(writer))
            raise
        check_fingerprint(writer, epoch, ended.fingerprint, fingerprint)
        return ended.written

    def abort(self, writer: str) -> None:
        self._writers.abort_writer(writer)

    def _connection(self) -> ClientConnection:
        address = self._options.address
        return ClientConnection(address.servers, CLIENT_ID, TIMEOUT_S, address.access)

    def _beat(self, writer: str, ended: threading.Event) -> None:
        with WriterClient(self._connection(), once) as client:
            while not ended.wait(self._timeout_ms / 1000 / BEATS):
                # Where it can't be said now, there are further times to say it.
                with suppress(KafkaError, OSError):
                    client.heartbeat(writer)
