"""A stream from topic to topic, for tests that end its process as a crash does.

The arguments of a process of its own are where the source is and its topic, the same of the
target, the folder of the checkpoint, how many rows a batch has, and Spark's master.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(*words: str) -> None:
    *given, master = words
    copy(open_session("copy", master), *given)


def copy(
    spark: SparkSession,
    from_servers: str,
    source: str,
    to_servers: str,
    target: str,
    checkpoint: str,
    rows: str,
) -> None:
    """Copy all that is there, from where the checkpoint says. Raises what the query fails with."""
    reading = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": rows}
    servers = {"kafka.bootstrap.servers": from_servers}
    frame = spark.readStream.format("penstock").options(**servers, **reading).load()
    query = (
        frame.select("key", "value")
        .writeStream.format("penstock")
        .option("penstock.bootstrap.servers", to_servers)
        .options(topic=target, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
