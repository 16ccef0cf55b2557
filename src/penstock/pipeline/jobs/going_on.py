"""Whether a table is whole, and of the same moment as the checkpoint of its job.

A checkpoint says what was read, and a table up to where it holds what was read. Each may have been
put back, changed or damaged without the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.pipeline.jobs.beginning import Beginning
from penstock.pipeline.jobs.checkpoint import Checkpoint
from penstock.pipeline.jobs.settings import checkpoint_of, quarantine_config
from penstock.pipeline.source.offsets import from_json, topic_ids
from penstock.pipeline.tables.interface import (
    differ,
    of_another_format,
    older_checkpoint,
    older_table,
    state_folder,
    table_gone,
    taken_back,
)
from penstock.pipeline.tables.opening import found_format, open_table

if TYPE_CHECKING:
    from penstock.pipeline.jobs.checkpoint import PlannedBatch
    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import OffsetsJson
    from penstock.pipeline.tables.interface import Held
    from penstock.pipeline.tables.table import Table

NAMED_MAX: Final = 3
"""Files that a message names."""


def newest_batch(config: PipelineConfig, table: Table) -> PlannedBatch | None:
    """Return the newest batch that a job has planned; None of one that has yet to begin.

    Nothing is changed. Raises CheckpointError, and TableError where the job can't go on.
    """
    checkpoint = Checkpoint(checkpoint_of(config, table))
    newest = checkpoint.newest()
    if newest is not None and config.quarantines and config.fail_on_data_loss:
        _check_quarantine(config, checkpoint)
    if newest is None or config.target_topic is not None:
        return newest
    if table.is_there():
        beginning = Beginning(state_folder(config.table)).read() or {}
        _check_same_moment(
            table, checkpoint, newest, beginning if config.fail_on_data_loss else None
        )
    elif newest.number > 0 or newest.is_done:
        kind = found_format(table.place.folder)
        if kind not in {None, config.table_format}:
            raise of_another_format(table.place.uri, kind)
        raise table_gone(table.place.uri, str(checkpoint.folder))
    return newest


def _check_quarantine(config: PipelineConfig, checkpoint: Checkpoint) -> None:
    quarantine = open_table(quarantine_config(config))
    if quarantine.is_there() and quarantine.was_taken_back(checkpoint.query()):
        raise taken_back(quarantine.place.uri)


def _check_same_moment(
    table: Table, checkpoint: Checkpoint, newest: PlannedBatch, beginning: OffsetsJson | None
) -> None:
    """Raise TableError where going on from the checkpoint would leave rows out or double some.

    `beginning` is where the table begins, None for a job that may go on without rows: it notes
    offsets of which a table never had any. Raises CheckpointError.
    """
    held = table.held(checkpoint.query())
    if held is not None:
        _check_not_newer(table, held, newest)
    if beginning is not None and table.lacks_filled(checkpoint.query()):
        raise taken_back(table.place.uri)
    done = newest.number if newest.is_done else newest.number - 1
    if beginning is None or done < 0 or (held and held.batch >= done):
        return
    reached = beginning if held is None else held.positions
    # A batch that had nothing to read is none of the table's.
    if (
        table.was_taken_back(checkpoint.query())
        if reached is None
        else _goes_back(checkpoint.end_of(done), reached)
    ):
        raise older_table(table.place.uri, str(checkpoint.folder), done)


def _check_not_newer(table: Table, held: Held, newest: PlannedBatch) -> None:
    if held.positions is None:
        return
    if held.batch > newest.number or (
        differ(held.positions, newest.end)
        if held.batch == newest.number
        else _goes_back(held.positions, newest.end)
    ):
        raise older_checkpoint(table.place.uri, held.batch)


def loss_of(table: Table) -> str | None:
    """Return what is to be said of data files that are gone; None where all are there.

    Raises TableError where what names them is gone or damaged.
    """
    gone = table.missing()
    if not gone:
        return None
    names = ", ".join(gone[:NAMED_MAX]) + (", …" if len(gone) > NAMED_MAX else "")
    return (
        f"{len(gone)} data files of {table.place.uri} are gone with their rows ({names}): put them "
        "back, or begin another table from another checkpoint"
    )


def _goes_back(earlier: OffsetsJson, later: OffsetsJson) -> bool:
    """Whether a partition that both name goes back, of a topic that is the same in both."""
    known, after = topic_ids(earlier), topic_ids(later)
    ends = from_json(later)
    return any(
        ends.get(source, offset) < offset
        for source, offset in from_json(earlier).items()
        if known.get(source.topic) == after.get(source.topic)
    )
