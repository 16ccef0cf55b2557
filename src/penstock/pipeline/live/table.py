"""A live table as Spark's rows: history natively from its files, the rest from the logs' end.

    live_table(spark, Path("orders-table")).createOrReplaceTempView("orders")

Spark reads the files itself, with pruning and statistics. Each commit says up to which offsets its
table goes, and the source reads on from there, so each row is there once.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.pipeline.jobs.config import DefinitionError, PipelineConfig
from penstock.pipeline.jobs.definition import ENDING, load
from penstock.pipeline.jobs.recording import recorded
from penstock.pipeline.jobs.settings import table_config
from penstock.pipeline.live.end import live_end
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.live.steps import as_written, is_deletion, newest_of_each_key
from penstock.pipeline.tables.interface import ChangeForm, TableError
from penstock.pipeline.tables.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.pipeline.live.end import LiveEnd
    from penstock.pipeline.tables.interface import Snapshot

BROADCAST_ROWS: Final = 1_000_000
"""Changed keys up to which each task gets all of them; more are exchanged, as is the table."""


def live_table(spark: SparkSession, place: Path | str | PipelineConfig) -> DataFrame:
    """Return all rows of a table, and those that its job has yet to write.

    `place` is the table's folder, a pipeline's file, or the pipeline itself. What comes after this
    call is no part of it. Raises LiveTableError.
    """
    config = pipeline_of(place)
    snapshot = snapshot_of(config)
    end = live_end(config, snapshot)
    history = history_of(spark, snapshot)
    if history is not None and not end.rows:
        return history
    newest = as_written(_end(spark, end), config)
    if config.key:
        return _upserted(config, history, newest, end.rows)
    return newest if history is None else history.unionByName(newest, allowMissingColumns=True)


def pipeline_of(place: Path | str | PipelineConfig) -> PipelineConfig:
    """Return the pipeline that writes a table. Raises LiveTableError where it can't be live."""
    try:
        config = place if isinstance(place, PipelineConfig) else _found(Path(place))
    except DefinitionError as error:
        raise LiveTableError(str(error)) from error
    if config.target_topic is not None:
        raise LiveTableError(f"the pipeline writes the topic {config.target} and no table: read it")
    if config.deduplication:
        raise LiveTableError(
            f"{config.table} is written by a pipeline with [deduplicate], and only its job knows "
            "which rows were there before: read the table, or leave that step out"
        )
    if config.changes is not ChangeForm.ROWS:
        raise LiveTableError(
            f'{config.table} follows changes = "{config.changes}", which only its job can: read '
            "the table"
        )
    return config


def snapshot_of(config: PipelineConfig) -> Snapshot | None:
    """Return what a pipeline's table is made of now; None of one with no batch yet.

    Raises LiveTableError.
    """
    try:
        return open_table(table_config(config)).snapshot()
    except TableError as error:
        raise LiveTableError(str(error)) from error


def history_of(spark: SparkSession, snapshot: Snapshot | None) -> DataFrame | None:
    """Return the rows of a table's files by Spark's own reader; None where there is no file.

    Raises LiveTableError where Spark knows no such store.
    """
    if snapshot is None or not snapshot.files:
        return None
    schema = from_arrow_schema(snapshot.schema)
    # To Spark a path is a pattern.
    paths = [re.sub(r"([\\*?\[\]{}])", r"\\\1", file) for file in snapshot.files]
    try:
        return spark.read.schema(schema).parquet(*paths)
    except Exception as error:
        if "No FileSystem for scheme" not in str(error):
            raise
        raise LiveTableError(
            f"{snapshot.files[0]} is in a store that this Spark has no file system for: start it "
            "with one and its jar (spark.jars.packages, spark.hadoop.fs.SCHEME.impl), or read the "
            'table without one by .format("penstock").option("read", "table")'
        ) from error


def _found(place: Path) -> PipelineConfig:
    return load(place) if place.suffix == ENDING else recorded(place.absolute())


def _upserted(
    config: PipelineConfig, history: DataFrame | None, changes: DataFrame, count: int
) -> DataFrame:
    newest = newest_of_each_key(changes, config)
    staying = newest.where(~is_deletion(newest.columns))
    if history is None:
        return staying
    changed = newest.select(*config.key)
    if count <= BROADCAST_ROWS:
        changed = f.broadcast(changed)
    unchanged = history.join(changed, list(config.key), "left_anti")
    return unchanged.unionByName(staying, allowMissingColumns=True)


def _end(spark: SparkSession, end: LiveEnd) -> DataFrame:
    return spark.read.format("penstock").options(**end.options).load()
