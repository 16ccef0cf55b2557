"""A stream into a table goes on over power cuts: each row is a message that is there, once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from crash_run import PARTITIONS, CrashRun
from faulty_broker import FaultyBroker
from stand import Stand

TOPIC = "power"
CUTS = 2
EVENTS_MIN = 200
SLOW_FLUSH_MS = 300
CAUGHT_UP_SECONDS = 240


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_table_holds_what_is_there_once(
    spark: SparkSession, stand: Stand, tmp_path: Path
) -> None:
    """Fault: the power is cut while clients of three protocols write, and Spark reads on."""
    broker = FaultyBroker(stand.fresh_folder())
    stand.add(broker)
    stand.allow("recovered|recovery|cut off|torn")
    run = CrashRun(broker, TOPIC, pause_seconds=0.2)
    reader = spark.readStream.format("penstock").option("penstock.bootstrap.servers", broker.kafka)
    frame = reader.options(subscribe=TOPIC, startingOffsets="earliest").load()
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")
    writer = frame.writeStream.format("parquet").option("path", table)
    writer = writer.option("checkpointLocation", checkpoint).trigger(
        processingTime="500 milliseconds"
    )
    query = writer.start()
    try:
        with run.clients("write"):
            for _ in range(CUTS):
                run.wait_for("ok", EVENTS_MIN)
                batches = len(query.recentProgress)
                wait(lambda reached=batches + 2: len(query.recentProgress) >= reached, query)
                with broker.disk.slow(SLOW_FLUSH_MS, "fdatasync"):
                    time.sleep(0.7)
                    broker.power_cut()
                    broker.start()
            run.wait_for("ok", EVENTS_MIN)
            run.stop_writers()
            events = run.history().truths["kafka"]
        truth = sorted((*event.place, event.value) for event in events)
        wait(lambda: spark.read.parquet(table).count() >= len(truth), query)
    finally:
        query.stop()
    rows = spark.read.parquet(table).select("partition", "offset", "value").collect()
    assert sorted((row.partition, row.offset, bytes(row.value).decode()) for row in rows) == truth
    assert {partition for partition, _, _ in truth} == set(range(PARTITIONS))


def wait(is_so: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + CAUGHT_UP_SECONDS
    while not is_so():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.5)
