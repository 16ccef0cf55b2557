"""A view of a live table: each query sees its topics as they are then.

    register_view(spark, "orders-table", "orders")

The files are those of the moment of the call, and the end of the topics begins where they end, so
each row is there once however late a query comes. A table that grew meanwhile makes nothing wrong,
only slower: what its newer files hold is read from the logs until the view is registered again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from penstock.pipeline.live.end import live_end
from penstock.pipeline.live.following import LiveEndSource
from penstock.pipeline.live.steps import as_written, is_deletion, newest_of_each_key
from penstock.pipeline.live.table import history_of, pipeline_of, snapshot_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.pipeline.jobs.config import PipelineConfig

_CHANGE: Final = "_penstock_change"


def register_view(
    spark: SparkSession, place: Path | str | PipelineConfig, name: str | None = None
) -> str:
    """Make or replace the session's temporary view of a table, and return its name.

    `place` is what `live_table` takes; without a name the view has that of the table's folder, with
    `_` for what no name in SQL has. Raises LiveTableError.
    """
    config = pipeline_of(place)
    view = name or re.sub(r"\W", "_", config.target.rstrip("/").rpartition("/")[2], flags=re.ASCII)
    _rows(spark, config).createOrReplaceTempView(view)
    return view


def _rows(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    snapshot = snapshot_of(config)
    end = live_end(config, snapshot)
    spark.dataSource.register(LiveEndSource)
    newest = spark.read.format(LiveEndSource.name()).options(**end.without_end()).load()
    newest = as_written(newest, config)
    history = history_of(spark, snapshot)
    if config.key:
        return _upserted(config, history, newest)
    return newest if history is None else history.unionByName(newest, allowMissingColumns=True)


def _upserted(config: PipelineConfig, history: DataFrame | None, rows: DataFrame) -> DataFrame:
    """Return the newest row of each key. The end is read once: twice, it would be two ends."""
    newest = newest_of_each_key(rows, config)
    if history is None:
        return newest.where(~is_deletion(newest.columns))
    changes = newest.select(*config.key, f.struct("*").alias(_CHANGE))
    both = history.join(changes, list(config.key), "full_outer")
    change = f.col(_CHANGE)
    if "value" in newest.columns:
        both = both.where(change.isNull() | change["value"].isNotNull())

    def current(name: str) -> Column:
        before = f.col(name) if name in history.columns else f.lit(None)
        after = change[name] if name in newest.columns else f.lit(None)
        return f.when(change.isNotNull(), after).otherwise(before).alias(name)

    return both.select(*map(current, dict.fromkeys([*history.columns, *newest.columns])))
