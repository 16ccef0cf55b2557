"""What cases do with all rows of a topic, by our source or by Spark's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from schema_registry import schema_registry
from versus.spark.orders import AVRO_ORDER, ORDER, SCHEMA_ID, WIRE_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Session: TypeAlias = "Callable[[], SparkSession]"
"""Opens the application's session, which not all cases need."""


@dataclass(frozen=True)
class Work:
    """What a case is given."""

    address: str
    """Of the broker that this case reads."""
    topic: str
    folder: Path
    """Empty, and the case's own."""
    prepared: Path
    """Where `Case.prepare` has made what it makes."""


def ours(session: Session, work: Work, mode: str, **options: str) -> DataFrame:
    reader = session().read.format("penstock").option("kafka.bootstrap.servers", work.address)
    return reader.option("readMode", mode).options(subscribe=work.topic, **options).load()


def theirs(session: Session, work: Work) -> DataFrame:
    reader = session().read.format("kafka").option("kafka.bootstrap.servers", work.address)
    return reader.option("subscribe", work.topic).load()


def scan(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def scan_log(session: Session, work: Work) -> None:
    scan(ours(session, work, "log"))


def scan_wire(session: Session, work: Work) -> None:
    scan(ours(session, work, "wire"))


def scan_kafka(session: Session, work: Work) -> None:
    scan(theirs(session, work))


def bytes_ours(session: Session, work: Work) -> None:
    """Have the values as they are: what is read before anything is made of them."""
    scan(ours(session, work, "log", columns="value"))


def bytes_kafka(session: Session, work: Work) -> None:
    scan(theirs(session, work).select("value"))


def json_ours(session: Session, work: Work) -> None:
    values(session, work, ORDER)


def values(session: Session, work: Work, schema: str) -> None:
    """Have the values as columns, and no other ones: Spark's source can't leave them out."""
    scan(ours(session, work, "log", schema=schema, columns="value", flatten="true"))


def json_kafka(session: Session, work: Work) -> None:
    from pyspark.sql import functions as sql  # the driver of all has no Spark

    rows = theirs(session, work)  # A column can't be named before there is a session.
    value = sql.from_json(sql.col("value").cast("string"), ORDER).alias("value")
    scan(rows.select(value).select("value.*"))


def avro_ours(session: Session, work: Work) -> None:
    with schema_registry() as registry:
        assert registry.register(f"{work.topic}-value", AVRO_ORDER) == SCHEMA_ID
        values(session, work, registry.url)


def avro_kafka(session: Session, work: Work) -> None:
    """What one does who has no registry at hand: cut the id off, and name the schema."""
    from pyspark.sql.avro.functions import from_avro  # the driver of all has no Spark

    rows = theirs(session, work)
    record = rows["value"].substr(len(WIRE_FORMAT) + 1, 1 << 30)
    scan(rows.select(from_avro(record, json.dumps(AVRO_ORDER)).alias("value")).select("value.*"))


def table_ours(session: Session, work: Work) -> None:  # noqa: ARG001
    run_pipeline(work, work.folder / "table")


def run_pipeline(work: Work, table: Path) -> None:
    """The command a person types, with the session that it opens itself."""
    command = [sys.executable, "-m", "penstock", "pipeline", "run", work.topic]
    command += ["--table", str(table), "--server", work.address]
    subprocess.run(command, check=True)


def table_kafka(session: Session, work: Work) -> None:
    """What a job of one's own does."""
    reader = session().readStream.format("kafka").option("kafka.bootstrap.servers", work.address)
    rows = reader.options(subscribe=work.topic, startingOffsets="earliest").load()
    writer = rows.writeStream.format("parquet").trigger(availableNow=True)
    writer = writer.option("path", str(work.folder / "table")).option("compression", "zstd")
    writer.option("checkpointLocation", str(work.folder / "checkpoint")).start().awaitTermination()
