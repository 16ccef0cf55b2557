"""A stream from topic to topic, for tests that end its process as a crash does.

The arguments of a process of its own are the broker's address, both topics, the folder of the
checkpoint, how many rows a batch has, and Spark's master.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(address: str, source: str, target: str, checkpoint: str, rows: str, master: str) -> None:
    copy(open_session("copy", master), address, source, target, checkpoint, rows)


def copy(
    spark: SparkSession, address: str, source: str, target: str, checkpoint: str, rows: str
) -> None:
    """Copy all that is there, from where the checkpoint says. Raises what the query fails with."""
    servers = {"kafka.bootstrap.servers": address}
    reading = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": rows}
    frame = spark.readStream.format("penstock").options(**servers, **reading).load()
    query = (
        frame.select("key", "value")
        .writeStream.format("penstock")
        .options(**servers, topic=target, checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
