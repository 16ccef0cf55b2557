"""Does with whichever Spark what a user does, and prints as JSON what came of it.

    python spark_place.py '{"way": "master", "address": "local[2]", "servers": …}'

The Python of the place runs it, which need not have the tests' libraries. The fields are those of
`Place`. What the table in its folder holds is what the topic held when this began.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

SERVERS = "penstock.bootstrap.servers"
ADDED = 10
"""Rows that are written to the topic when it was read and streamed once."""

ATTEMPTS = 3
OTHER_ROWS = "read other rows than it does now"
"""What a stream ends with where an older checkpoint was put back, and more has come."""

TOO_SLOW = "Python worker failed to connect back"
"""What a stream ends with where a machine is too busy to start a Python in Spark's ten seconds."""


@dataclass(frozen=True)
class Place:
    """A Spark, and what is there to be read."""

    way: str
    """`master`, or `remote` for Spark Connect."""
    address: str
    servers: str
    topic: str
    """JSON objects with a field `id`, in two partitions."""
    copy: str
    """An empty topic."""
    table: str
    checkpoint: str
    mode: str = "auto"
    settings: dict[str, str] = field(default_factory=dict)

    def session(self) -> SparkSession:
        builder = SparkSession.builder
        opened = builder.remote if self.way == "remote" else builder.master
        builder = opened(self.address)
        for name, value in self.settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def options(self, **more: str) -> dict[str, str]:
        return {SERVERS: self.servers, "subscribe": self.topic, "readMode": self.mode, **more}

    def read(self, spark: SparkSession, **more: str) -> DataFrame:
        return spark.read.format("penstock").options(**self.options(**more)).load()


def main(place: Place) -> None:
    spark = place.session()
    found = {"spark": spark.version, **read(place, spark)}
    append(place.read(spark).select("key", "value"), place, place.copy)
    stream(place, spark)
    checkpoint = Path(place.checkpoint)
    older = Path(shutil.copytree(checkpoint, checkpoint.with_name("older")))
    added = spark.range(ADDED).selectExpr("to_json(struct(1000 + id AS id)) AS value")
    append(added, place, place.topic)
    stream(place, spark)
    found["copied"] = ids(place.read(spark, subscribe=place.copy))
    found |= tables(place, spark)
    append(added, place, place.topic)
    shutil.rmtree(checkpoint)
    shutil.copytree(older, checkpoint)
    try:
        stream(place, spark)
    except StreamingQueryException as error:
        found["refused"] = OTHER_ROWS in str(error)
    sys.stdout.write(json.dumps(found))
    spark.stop()


def read(place: Place, spark: SparkSession) -> dict[str, Any]:
    """Read the topic in the ways that a batch can."""
    rows = place.read(spark, includeHeaders="true")
    counts = rows.groupBy("partition").count().collect()
    (headers,) = rows.select("headers").distinct().collect()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    some = place.read(spark, filterPushdown="true").where("partition = 1 AND offset >= 100")
    found = {
        "counts": {row["partition"]: row["count"] for row in counts},
        "headers": [[each["key"], bytes(each["value"]).decode()] for each in headers["headers"]],
        "filtered": some.count(),
    }
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    typed = place.read(spark, schema="id BIGINT")
    (total,) = typed.selectExpr("sum(value.id) AS total").collect()
    return found | {"total": total["total"]}


def append(rows: DataFrame, place: Place, topic: str) -> None:
    rows.write.format("penstock").mode("append").options(
        **{SERVERS: place.servers, "topic": topic}
    ).save()


def stream(place: Place, spark: SparkSession) -> None:
    """Copy what is new in the topic since the last call."""
    source = spark.readStream.format("penstock")
    rows = source.options(**place.options(startingOffsets="earliest")).load()
    sink = rows.select("key", "value").writeStream.format("penstock")
    sink = sink.options(**{SERVERS: place.servers, "topic": place.copy})
    sink = sink.option("checkpointLocation", place.checkpoint).trigger(availableNow=True)
    for attempt in range(ATTEMPTS):
        try:
            sink.start().awaitTermination()
        except StreamingQueryException as error:
            if TOO_SLOW not in str(error) or attempt == ATTEMPTS - 1:
                raise
        else:
            return


def ids(rows: DataFrame) -> list[int]:
    return sorted(json.loads(bytes(row["value"]))["id"] for row in rows.collect())


def tables(place: Place, spark: SparkSession) -> dict[str, Any]:
    """Read the topic's table together with what the topic got since."""
    from penstock.pipeline.live.table import live_table
    from penstock.pipeline.live.view import register_view

    live = live_table(spark, Path(place.table))
    view = spark.table(register_view(spark, place.table))
    by_options = spark.read.format("penstock").options(read="table", table=place.table).load()
    return {"live": ids(live), "view": ids(view), "by_options": ids(by_options)}


if __name__ == "__main__":
    main(Place(**json.loads(sys.argv[1])))
