"""What of a pipeline can be seen to be wrong before it runs, and before Spark is started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from penstock.pipeline.causes import cause_of
from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.jobs.batch_ends import CheckpointError
from penstock.pipeline.jobs.config import DefinitionError
from penstock.pipeline.jobs.going_on import loss_of, newest_batch
from penstock.pipeline.jobs.opening import computing
from penstock.pipeline.jobs.settings import source_options, table_config
from penstock.pipeline.jobs.steps import MET
from penstock.pipeline.session import open_session
from penstock.pipeline.source.dividing import bytes_in
from penstock.pipeline.source.errors import SourceError
from penstock.pipeline.source.offsets import OffsetRange, from_json, to_json, topic_ids
from penstock.pipeline.source.options import OptionError, parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.tables.interface import TableError
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.values.errors import SchemaError

if TYPE_CHECKING:
    from penstock.pipeline.jobs.checkpoint import PlannedBatch
    from penstock.pipeline.jobs.config import PipelineConfig
    from penstock.pipeline.source.offsets import OffsetsJson


class CheckError(Exception):
    """The pipeline can't run as it is; the message says what to do."""


@dataclass(frozen=True)
class Found:
    """What a look at the broker found."""

    partitions: int
    rows: int
    """That are still to be read: of a new table, those from the starting offsets on."""
    size_bytes: int
    """What these rows take in the log, about."""
    starting: OffsetsJson
    """Where a new table begins."""


def look(config: PipelineConfig, done: OffsetsJson | None = None) -> Found:
    """Ask the broker for the topics and their offsets; raises CheckError.

    `done` is where an earlier run ended, which the topics have to have still.
    """
    try:
        options = parse(source_options(config), streaming=True)
        with open_cluster(options) as cluster:
            planner = Planner(options, cluster)
            ids = planner.topic_ids()
            starting, latest = planner.starting(), planner.latest()
            begin = starting if done is None else from_json(done)
            if done is not None and options.fail_on_data_loss:
                planner.following(planner.of_same_topics(begin, topic_ids(done), ids), latest)
            waiting = [
                OffsetRange(source, begin.get(source, 0), end)
                for source, end in latest.items()
                if end > begin.get(source, 0)
            ]
            extents = cluster.extents([each.source for each in waiting]) if waiting else {}
    except (DefinitionError, OptionError, SourceError) as error:
        raise CheckError(str(error)) from error
    size = sum(bytes_in(each, extents.get(each.source, ())) for each in waiting)
    return Found(len(latest), sum(each.rows for each in waiting), size, to_json(starting, ids))


def look_at_table(config: PipelineConfig) -> PlannedBatch | None:
    """Look whether a run could go on: its checkpoint, its table, and the table's data files.

    Returns the newest batch that a run has planned. Nothing is changed. Raises CheckError.
    """
    try:
        table = open_table(table_config(config))
        newest = newest_batch(config, table)
        has_table = config.target_topic is None and newest is not None and table.is_there()
        loss = loss_of(table) if has_table else None
    except (CheckpointError, TableError) as error:
        raise CheckError(str(error)) from error
    if loss is not None:
        raise CheckError(loss)
    return newest


def look_at_steps(config: PipelineConfig) -> list[tuple[str, str]]:
    """Have Spark look at conditions and schema; return the columns of the table.

    Raises CheckError and SessionError.
    """
    spark = open_session("penstock pipeline", config.master, Path(os.devnull))
    try:
        rows = computing(config).begin(spark).drop(MET)
    except (DefinitionError, OptionError, SchemaError, AnalysisException) as error:
        raise CheckError(cause_of(error)) from error
    return rows.dtypes
