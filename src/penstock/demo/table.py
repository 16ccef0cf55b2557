"""The Spark part of the demo: topic to Parquet table, and a figure of that table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.demo.flights import CarrierDelay
from penstock.pipeline.jobs.job import PipelineConfig, Progress, Run
from penstock.pipeline.session import open_session
from penstock.pipeline.tables.interface import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_COLUMNS: Final = "carrier string, arr_delay double"


def write_table(address: str, topic: str, table: Path, report: Callable[[Progress], None]) -> int:
    """Bring the table up to date with the topic; return the rows written."""
    config = PipelineConfig(servers=address, topics=(topic,), table=table)
    # A job does without Spark where there is little to read, and Spark is what is to be seen.
    open_session("penstock demo", log=state_folder(table) / "spark.log")
    return Run(config).run(report).rows


def delays_by_carrier(table: Path) -> list[CarrierDelay]:
    """Compute the mean delay by carrier from the table."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # Spark is imported when its part begins

    rows = open_session("penstock demo").read.parquet(str(table))
    flights = rows.select(f.from_json(rows.value.cast("string"), _COLUMNS).alias("flight"))
    grouped = flights.groupBy("flight.carrier").agg(
        f.count("*").alias("flights"), f.avg("flight.arr_delay").alias("mean_delay")
    )
    return [CarrierDelay(*row) for row in grouped.orderBy("carrier").collect()]
