"""What a task of a write does: Arrow batches in, one open transaction out. Runs on the executors.

Each attempt of a task has a transaction of its own, which only the driver ends. Its transactional
id is that of the same task of the batch before, so that what a crash left open ends when the batch
is done again.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.clients.kafka.client import KafkaClient, KafkaError
from penstock.pipeline.sink.epochs.attempt import CLIENT_ID, errors_in_words
from penstock.pipeline.sink.epochs.opening import open_epochs
from penstock.pipeline.sink.errors import SinkError
from penstock.pipeline.sink.topics import BrokerTopics
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.clients.kafka.coordinator import ProducerState
    from penstock.clients.kafka.transactions import TransactionalProducer
    from penstock.pipeline.sink.epochs.attempt import Attempt
    from penstock.pipeline.sink.epochs.opening import Epochs
    from penstock.pipeline.sink.options import SinkOptions

logger = logging.getLogger(__name__)


def write_task(
    rows: Iterator[pa.RecordBatch], attempt: Attempt, options: SinkOptions
) -> ProducerState | None:
    """Write the rows of one task; return whose open transaction has them, None where nobody's.

    Rows of an epoch that was committed before are not written. Raises SinkError.
    """
    with (
        errors_in_words(options.servers),
        open_epochs(options, Patience(answered=True).ask) as epochs,
        epochs.at_work(attempt.writer) as last,
    ):
        if last == attempt.epoch:
            logger.warning("epoch %d of %s is written already", attempt.epoch, attempt.writer)
            for _ in rows:  # for Spark wants all of them to be taken
                pass
            return None
        check_epoch(attempt.writer, attempt.epoch, last)
        return _written(rows, attempt, options, epochs)


def _written(
    rows: Iterator[pa.RecordBatch], attempt: Attempt, options: SinkOptions, epochs: Epochs
) -> ProducerState | None:
    # The driver plans without numpy and the compiled functions.
    from penstock.pipeline.sink.packing import Packer  # noqa: PLC0415
    from penstock.pipeline.sink.placing import Placing  # noqa: PLC0415

    ask = Patience(answered=True).ask
    producer: TransactionalProducer | None = None
    access = options.address.access
    with KafkaClient(options.servers, client_id=CLIENT_ID, access=access) as client:
        topics = BrokerTopics(client, options.servers, ask)
        placing = Placing(topics, options.topic, options.partitioner, attempt.partition)
        packer = Packer(placing, options.codec, options.batch_bytes)
        try:
            for batch in filter(len, rows):
                if producer is None:
                    producer = epochs.producer(attempt)
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


def check_epoch(writer: str, epoch: int, last: int) -> None:
    """Raise SinkError where later epochs of a writer are written than the one to be written."""
    if epoch < last:
        raise SinkError(
            f"batch {epoch} of {writer} is to be written, and batch {last} was: the checkpoint, or "
            "txnVersion, is older than what the topics hold, and can't go on with them"
        )
