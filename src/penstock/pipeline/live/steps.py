"""What a pipeline would make of the rows of the live end, as Spark's own operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from penstock.pipeline.jobs.config import Otherwise
from penstock.pipeline.jobs.steps import flattened
from penstock.pipeline.tables.interface import TableFormat
from penstock.pipeline.tables.partitions import Transform, parse_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.pipeline.jobs.config import Expectation, PipelineConfig
    from penstock.pipeline.tables.partitions import PartitionField

_DAY_MICROSECONDS: Final = 86_400_000_000
_HOUR_MICROSECONDS: Final = 3_600_000_000


def as_written(rows: DataFrame, config: PipelineConfig) -> DataFrame:
    """Return the rows that the pipeline's job would write of these, with the table's columns."""
    if config.parsing:
        rows = flattened(rows)
    if config.expectations:
        rows = rows.where(_stays(config.expectations))
    if config.table_format is TableFormat.DELTA:
        for field in map(parse_partition, config.partition_by):
            if field.is_derived:
                rows = rows.withColumn(field.name, _derived(field))
    return rows


def _stays(expectations: Sequence[Expectation]) -> Column:
    """Return whether a row does; the first expectation that it does not meet decides."""
    stays = f.lit(True)
    for each in reversed(expectations):
        if each.otherwise is Otherwise.KEEP:
            continue
        otherwise = f.lit(False)
        if each.otherwise is Otherwise.FAIL:
            otherwise = f.raise_error(f"expectation {each.name!r} ({each.that}) is not met")
        stays = f.when(f.expr(each.that), stays).otherwise(otherwise)
    return stays


def _derived(field: PartitionField) -> Column:
    """Return a column as `PartitionField.of` makes it, whatever the session's time zone."""
    micros = f.unix_micros(f.col(field.column))
    days = f.floor(micros / _DAY_MICROSECONDS)
    day = f.date_add(f.lit("1970-01-01").cast("date"), days.cast("int"))
    if field.transform is Transform.DAY:
        return day
    hour = f.floor(micros / _HOUR_MICROSECONDS) - days * 24
    return f.concat_ws("-", day.cast("string"), f.lpad(hour.cast("string"), 2, "0"))


def newest_of_each_key(rows: DataFrame, config: PipelineConfig) -> DataFrame:
    """Return the last row of each key, those that take theirs away included."""
    prefix = "_" if config.parsing else ""
    place = f.struct(*(f.col(prefix + name) for name in ("topic", "partition", "offset")))
    for key in config.key:
        missing = f"a change has no {key}, which is its key: the pipeline can't go on"
        rows = rows.where(f.when(f.col(key).isNull(), f.raise_error(missing)).otherwise(True))
    whole = f.max_by(f.struct(*rows.columns), place).alias("_row")
    return rows.groupBy(*config.key).agg(whole).select("_row.*")


def is_deletion(columns: Sequence[str]) -> Column:
    """Return whether a row, the newest of its key, takes it away: a tombstone."""
    return f.col("value").isNull() if "value" in columns else f.lit(False)
