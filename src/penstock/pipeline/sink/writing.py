"""What a task of a write does: Arrow batches in, one open transaction out. Runs on the executors.

Each attempt of a task has a transaction of its own, which only the driver ends. Its transactional
id is that of the same task of the batch before, so that what a crash left open ends when the batch
is done again.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.clients.kafka.client import KafkaError
from penstock.pipeline.sink.epochs.attempt import check_epoch, errors_in_words
from penstock.pipeline.sink.epochs.opening import open_epochs
from penstock.pipeline.source.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.pipeline.sink.epochs.attempt import Attempt, Outcome
    from penstock.pipeline.sink.epochs.opening import Epochs
    from penstock.pipeline.sink.options import SinkOptions

logger = logging.getLogger(__name__)


def write_task(
    rows: Iterator[pa.RecordBatch], attempt: Attempt, options: SinkOptions
) -> Outcome | None:
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
        return _written(rows, attempt, epochs)


def _written(rows: Iterator[pa.RecordBatch], attempt: Attempt, epochs: Epochs) -> Outcome | None:
    with epochs.task(attempt) as task:
        try:
            for batch in filter(len, rows):
                task.write(batch)
            return task.finish()
        except BaseException:
            with suppress(KafkaError, OSError):  # Then it ends with its time-out.
                task.abort()
            raise
