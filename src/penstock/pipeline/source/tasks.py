"""What a Spark task does: stored batches in, Arrow batches out. Runs on the executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clients.kafka.committed import CommittedBatches
from penstock.pipeline.source.corruption import Corruption, Damage
from penstock.pipeline.source.rows import Rows
from penstock.pipeline.source.runs import may_hold_transactions
from penstock.pipeline.source.stored import StoredBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import Task
    from penstock.session import Buffer


def read_task(task: Task, options: SourceOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task, with the columns of the options.

    Raises SourceError where some can't be had, unless `onCorruption` lets them be left out.
    """
    corruption = Corruption(options, task.topic_id)

    def met(damage: Damage) -> None:
        corruption.met(damage)
        committed.forget()

    with StoredBatches(task, options, met) as stored:
        committed = CommittedBatches(stored.aborted)
        rows = Rows(task.range, options.columns, stored.earlier, corruption.met)
        if options.committed:
            yield from rows.of(_kept(committed, stored.runs()))
        else:
            yield from rows.of(stored.runs())


def _kept(committed: CommittedBatches, runs: Iterator[Buffer]) -> Iterator[Buffer]:
    """Leave out what was aborted."""
    for run in runs:
        if may_hold_transactions(run):
            yield from committed.keep(run)
        else:
            yield run
