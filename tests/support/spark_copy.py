"""A stream from topic to topic in a process of its own, for tests that end it as a crash does.

Its arguments are the broker's address, both topics, the folder of the checkpoint, how many rows a
batch has, and Spark's master.
"""

from __future__ import annotations

import sys

from penstock.pipeline.session import open_session


def main(address: str, source: str, target: str, checkpoint: str, rows: str, master: str) -> None:
    spark = open_session("copy", master)
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
