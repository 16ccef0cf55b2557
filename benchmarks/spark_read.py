"""How quick Spark reads a topic from segment files and over the wire, and writes it to a table.

    python benchmarks/spark_read.py [megabytes]

Each figure stands beside what Spark needs for the same rows in a Parquet file of its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from penstock.clients.kafka.client import KafkaClient
from penstock.demo.processes import running_broker
from penstock.pipeline.jobs.job import PipelineConfig, Run
from penstock.pipeline.session import open_session

PARTITIONS = 4
ROUNDS = 3


def fill(address: str, topic: str, rows: int, size: int) -> None:
    with KafkaClient(address) as client:
        client.create_topic(topic, PARTITIONS)
    producer = Producer(
        {"bootstrap.servers": address, "linger.ms": 20, "batch.size": 1 << 20, "acks": "all"}
    )
    block = os.urandom(1 << 20) + bytes(size)
    for number in range(rows):
        start = number * 4_093 % (1 << 20)
        value = block[start : start + size]
        while True:
            try:
                producer.produce(topic, value, b"key-%012d" % number)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


def best(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def scan(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def measure(spark: SparkSession, address: str, folder: Path, topic: str, rows: int) -> None:
    source = spark.read.format("penstock").option("penstock.bootstrap.servers", address)
    source = source.option("subscribe", topic)
    log = source.option("readMode", "log").load()
    wire = source.option("readMode", "wire").load()
    names = (folder / f"{topic}-{number}" for number in range(100))
    tables = {
        "write a table: penstock pipeline run": lambda: table(address, topic, next(names)),
        "write a table: Spark's own Parquet writer": lambda: log.write.option(
            "compression", "zstd"
        ).parquet(str(next(names))),
    }
    for action in tables.values():  # the first of each starts workers and warms Java up
        action()
    native = spark.read.parquet(str(folder / f"{topic}-1"))
    scans = {
        "read Parquet": lambda: scan(native),
        "read the topic, log": lambda: scan(log),
        "read the topic, wire": lambda: scan(wire),
    }
    size = sum(file.stat().st_size for file in folder.glob("data/topics/*/*/*.log"))
    base = 0.0
    for name, action in (scans | tables).items():
        seconds = best(action)
        base = base or seconds
        rate = f"{rows / seconds / 1e6:7.2f} Mrow/s {size / seconds / 1e6:7.0f} MB/s"
        print(f"  {name:45} {seconds:6.2f} s {rate}  {seconds / base:5.2f} x", flush=True)


def table(address: str, topic: str, folder: Path) -> None:
    Run(PipelineConfig(address, (topic,), folder, batch_rows=1 << 40)).run(lambda _: None)


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print("rows per second, stored megabytes per second, time as a multiple of reading Parquet")
    for size in (1000, 100):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            spark = open_session("penstock benchmark", log=folder / "spark.log")
            rows = megabytes * 1_000_000 // (size + 30)
            with running_broker(folder) as addresses:
                topic = f"values-{size}"
                fill(addresses["kafka"], topic, rows, size)
                print(f"{rows:,} rows with values of {size} bytes")
                measure(spark, addresses["kafka"], folder, topic, rows)


if __name__ == "__main__":
    main()
