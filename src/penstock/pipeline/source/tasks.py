"""What a Spark task does: stored batches in, Arrow batches out. Runs on the executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clients.kafka.committed import CommittedBatches
from penstock.pipeline.clusters.opening import opening
from penstock.pipeline.source.corruption import Corruption, Damage
from penstock.pipeline.source.rows import Rows
from penstock.pipeline.source.runs import may_hold_transactions
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.values.flattening import flattened
from penstock.pipeline.values.origin import Origin, running_batch
from penstock.records import judging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from penstock.pipeline.clusters.opening import Batches, Met
    from penstock.pipeline.source.options import SourceOptions
    from penstock.pipeline.source.planning import Task
    from penstock.pipeline.values.in_place import RowsInPlace
    from penstock.pipeline.values.reading import TypedReading
    from penstock.session import Buffer


def read_tasks(
    tasks: Iterable[Task],
    options: SourceOptions,
    typed: TypedReading | None = None,
    of_batch: tuple[str, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of several ranges, one after the other, with the columns of the options.

    `of_batch` is the query and its batch that they are read for, Spark's own unless it is given.
    Raises SourceError where some can't be had, unless `onCorruption` lets them be left out. With
    typed columns, what is not of its schema raises what `TypedReading.rows` does.
    """
    judging.have_it_used()  # For each batch has its sum, which costs half of it otherwise.
    with opening(options) as opened:
        for task in tasks:
            if typed is None:
                yield from (each.rows for each in _read(task, options, options.columns, opened))
                continue
            columns = typed.stored(options.columns)
            raw = _read(task, options, columns, opened, typed.in_place)
            origin = Origin(
                *(of_batch or running_batch()),
                *task.range.source,
                task.range.start,
                task.range.end,
            )
            rows = typed.rows(raw, arrow_schema(options.columns), origin)
            yield from map(flattened, rows) if options.flatten else rows


def read_task(
    task: Task, options: SourceOptions, typed: TypedReading | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one range, as `read_tasks` does."""
    return read_tasks([task], options, typed)


def _read(
    task: Task,
    options: SourceOptions,
    columns: Sequence[str],
    opened: Callable[[Task, Met], Batches],
    in_place: Sequence[str] = (),
) -> Iterator[RowsInPlace]:
    corruption = Corruption(options, task.topic_id)

    def met(damage: Damage) -> None:
        corruption.met(damage)
        committed.forget()

    stored = opened(task, met)
    committed = CommittedBatches(stored.aborted)
    rows = Rows(task.range, columns, stored.earlier, corruption.met, in_place)
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
