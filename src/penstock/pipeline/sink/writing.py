"""What a task of a write does: Arrow batches in, one open transaction out. Runs on the executors.

Each attempt of a task has a transaction of its own, which only the driver ends; see EndEpoch. Its
transactional id is that of the same task of the batch before, so that what a crash left open ends
when the batch is done again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.clients.kafka.transactions import (
    WRITER_PREFIX,
    ProducerState,
    TransactionalProducer,
    WriterClient,
)
from penstock.kafka.wire import ErrorCode
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.topics import BrokerTopics
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import pyarrow as pa

    from penstock.pipeline.sink.options import SinkOptions

ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)

CLIENT_ID: Final = "penstock-spark"
BEATS: Final = 6
"""In the time after which a transaction is given up of which nobody has heard."""


_LAST_BEAT_SECONDS: Final = 1
"""How long a task waits for an answer that nobody needs any more."""


class Attempt(NamedTuple):
    """Whose attempt at a part of which epoch a task is."""

    writer: str
    epoch: int
    partition: int
    number: int

    @property
    def transactional_id(self) -> str:
        return f"{WRITER_PREFIX}{self.writer}/{self.partition}.{self.number}"


def write_task(
    rows: Iterator[pa.RecordBatch], attempt: Attempt, options: SinkOptions
) -> ProducerState | None:
    """Write the rows of one task; return whose open transaction has them, None where nobody's.

    Rows of an epoch that was committed before are not written. Raises SinkError.
    """
    with errors_in_words(options.servers), AtWork(attempt.writer, options) as at_work:
        if at_work.last_epoch == attempt.epoch:
            logger.warning("epoch %d of %s is written already", attempt.epoch, attempt.writer)
            for _ in rows:  # for Spark wants all of them to be taken
                pass
            return None
        check_epoch(attempt.writer, attempt.epoch, at_work.last_epoch)
        return _written(rows, attempt, options)


def _written(
    rows: Iterator[pa.RecordBatch], attempt: Attempt, options: SinkOptions
) -> ProducerState | None:
    # The driver plans without numpy and the compiled functions.
    from penstock.pipeline.sink.packing import Packer  # noqa: PLC0415
    from penstock.pipeline.sink.placing import Placing  # noqa: PLC0415

    ask = Patience(answered=True).ask
    producer: TransactionalProducer | None = None
    with KafkaClient(options.servers, client_id=CLIENT_ID) as client:
        topics = BrokerTopics(client, options.servers, ask)
        placing = Placing(topics, options.topic, options.partitioner, attempt.partition)
        packer = Packer(placing, options.codec, options.batch_bytes)
        try:
            for batch in filter(len, rows):
                if producer is None:
                    producer = TransactionalProducer(
                        options.servers,
                        attempt.transactional_id,
                        options.timeout_ms,
                        ask,
                        CLIENT_ID,
                    )
                for request in packer.requests(batch, producer):
                    producer.send(request)
            if producer is not None:
                producer.flush()
        except BaseException:
            if producer is not None:
                with suppress(KafkaError, OSError):  # Then it ends with its time-out.
                    producer.abort()
            raise
        finally:
            if producer is not None:
                producer.close()
    return None if producer is None else producer.state


class AtWork:
    """Says to the broker, now and from a thread, that a writer is at work."""

    def __init__(self, writer: str, options: SinkOptions) -> None:
        self._writer = writer
        self._servers = options.servers
        self._seconds = options.timeout_ms / 1000 / BEATS
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="penstock at work", daemon=True)
        ask = Patience(answered=True).ask
        with WriterClient(self._servers, ask, CLIENT_ID) as client:
            self.last_epoch = client.heartbeat(writer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(_LAST_BEAT_SECONDS)

    def _beat(self) -> None:
        with WriterClient(self._servers, once, CLIENT_ID) as client:
            while not self._ended.wait(self._seconds):
                # Where it can't be said now, there are further times to say it.
                with suppress(KafkaError, OSError):
                    client.heartbeat(self._writer)


def once(question: Callable[[], ResultT], /) -> ResultT:
    """Ask without patience."""
    return question()


def check_epoch(writer: str, epoch: int, last: int) -> None:
    """Raise SinkError where later epochs of a writer are written than the one to be written."""
    if epoch < last:
        raise SinkError(
            f"batch {epoch} of {writer} is to be written, and batch {last} was: the checkpoint, or "
            "txnVersion, is older than what the topics hold, and can't go on with them"
        )


@contextmanager
def errors_in_words(servers: str) -> Iterator[None]:
    """Raise SinkError for what a broker refuses, or does not answer."""
    try:
        yield
    except KafkaError as error:
        raise SinkError(_WORDS.get(error.code, "{}").format(error)) from error
    except OSError as error:
        raise UnreachableError(f"the broker at {servers} does not answer: {error}") from error


_WORDS: Final = {
    ErrorCode.UNSUPPORTED_VERSION: (
        "{}: this sink writes to Penstock alone; for another broker use Spark's own Kafka sink"
    ),
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "{}: kafka.transaction.timeout.ms is more than the broker's transaction_max_timeout_ms"
    ),
    **dict.fromkeys(
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        "{}: the transaction was ended by another run of the same query, or because nothing was "
        "heard of it for kafka.transaction.timeout.ms",
    ),
}
