"""What is measured: a case is one thing done with all rows of a topic; a bar compares two cases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from versus.spark.topics import BYTES_100, BYTES_1000, ORDER, ORDERS, SMALL, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Work:
    """What a case is given."""

    address: str
    """Of the broker that this case reads."""
    topic: str
    folder: Path
    """Empty, and the case's own."""


@dataclass(frozen=True)
class Case:
    """One thing to do, by our source or by Spark's."""

    name: str
    topic: Topic
    reads: str
    """The broker: `penstock` or `kafka`."""
    do: Callable[[Callable[[], SparkSession], Work], None]
    """Gets a function that opens the application's session, which not all cases need."""
    warm: bool = True
    """Done once before it is measured; otherwise the application's start is part of it."""


@dataclass(frozen=True)
class Bar:
    """Ours ÷ theirs of one figure, and what it has to be at least."""

    ours: str
    theirs: str
    figure: str
    at_least: float


def ours(session: Callable[[], SparkSession], work: Work, mode: str, **options: str) -> DataFrame:
    reader = session().read.format("penstock").option("kafka.bootstrap.servers", work.address)
    return reader.option("readMode", mode).options(subscribe=work.topic, **options).load()


def theirs(session: Callable[[], SparkSession], work: Work) -> DataFrame:
    reader = session().read.format("kafka").option("kafka.bootstrap.servers", work.address)
    return reader.option("subscribe", work.topic).load()


def scan(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def scan_log(session: Callable[[], SparkSession], work: Work) -> None:
    scan(ours(session, work, "log"))


def scan_wire(session: Callable[[], SparkSession], work: Work) -> None:
    scan(ours(session, work, "wire"))


def scan_kafka(session: Callable[[], SparkSession], work: Work) -> None:
    scan(theirs(session, work))


def parse_ours(session: Callable[[], SparkSession], work: Work) -> None:
    scan(ours(session, work, "log", schema=ORDER).select("value.*"))


def parse_kafka(session: Callable[[], SparkSession], work: Work) -> None:
    from pyspark.sql import functions as sql  # the driver of all has no Spark

    rows = theirs(session, work)  # A column can't be named before there is a session.
    value = sql.from_json(sql.col("value").cast("string"), ORDER).alias("value")
    scan(rows.select(value).select("value.*"))


def table_ours(session: Callable[[], SparkSession], work: Work) -> None:  # noqa: ARG001
    """The command a person types, with the session that it opens itself."""
    command = [sys.executable, "-m", "penstock", "pipeline", "run", work.topic]
    command += ["--table", str(work.folder / "table"), "--server", work.address]
    subprocess.run(command, check=True)


def table_kafka(session: Callable[[], SparkSession], work: Work) -> None:
    """What a job of one's own does."""
    reader = session().readStream.format("kafka").option("kafka.bootstrap.servers", work.address)
    rows = reader.options(subscribe=work.topic, startingOffsets="earliest").load()
    writer = rows.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("path", str(work.folder / "table")).option("compression", "zstd")
    writer.option("checkpointLocation", str(work.folder / "checkpoint")).start().awaitTermination()


CASES: Final = {
    case.name: case
    for case in (
        Case("noop 100 B, log", BYTES_100, "penstock", scan_log),
        Case("noop 100 B, wire", BYTES_100, "penstock", scan_wire),
        Case("noop 100 B, Spark's Kafka source", BYTES_100, "kafka", scan_kafka),
        Case("noop 1 KB, log", BYTES_1000, "penstock", scan_log),
        Case("noop 1 KB, wire", BYTES_1000, "penstock", scan_wire),
        Case("noop 1 KB, Spark's Kafka source", BYTES_1000, "kafka", scan_kafka),
        Case("table 100 B, pipeline run", BYTES_100, "penstock", table_ours, warm=False),
        Case("table 100 B, Spark's Kafka source", BYTES_100, "kafka", table_kafka, warm=False),
        Case("JSON, schema option", ORDERS, "penstock", parse_ours),
        Case("JSON, from_json", ORDERS, "kafka", parse_kafka),
        Case("small job, pipeline run", SMALL, "penstock", table_ours, warm=False),
        Case("small job, Spark's Kafka source", SMALL, "kafka", table_kafka, warm=False),
    )
}

SPEED: Final = "rows a second"
EFFICIENCY: Final = "rows a CPU second"

BARS: Final = (
    Bar("noop 100 B, log", "noop 100 B, Spark's Kafka source", SPEED, 2.5),
    Bar("noop 100 B, wire", "noop 100 B, Spark's Kafka source", SPEED, 1.5),
    Bar("noop 1 KB, log", "noop 1 KB, Spark's Kafka source", SPEED, 2.0),
    Bar("noop 1 KB, wire", "noop 1 KB, Spark's Kafka source", SPEED, 1.5),
    Bar("table 100 B, pipeline run", "table 100 B, Spark's Kafka source", EFFICIENCY, 4.0),
    Bar("JSON, schema option", "JSON, from_json", EFFICIENCY, 3.0),
    Bar("small job, pipeline run", "small job, Spark's Kafka source", SPEED, 1.0),
)
