"""How quick Spark writes rows into topics, beside its own Kafka sink writing to the same broker.

    python benchmarks/spark_write.py [megabytes] [folder of jars]

Without the jars of `org.apache.spark:spark-sql-kafka-0-10_2.13` and what it needs, which Maven
fetches into `build/spark-kafka`, only our own sink is measured. Both read the same Parquet file,
whose cost stands there too; rounds are in turn, and the CPU is that of Spark's processes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from penstock.clients.kafka.client import KafkaClient
from penstock.demo.processes import running_broker
from penstock.pipeline.session import open_session
from versus.peers.peer import NotAvailableError
from versus.spark import connector

PARTITIONS = 4
ROUNDS = 3


def make(spark: SparkSession, path: str, rows: int, size: int) -> DataFrame:
    """A Parquet file of keys of 16 bytes and values that do not compress."""
    parts = range(-(-size // 128))
    hashes = ", ".join(f"sha2(CAST(id * 31 + {part} AS STRING), 512)" for part in parts)
    value = f"substr(concat({hashes}), 1, {size})"
    frame = spark.range(rows).selectExpr(
        "lpad(CAST(id AS STRING), 16, 'k') AS key", f"{value} AS value"
    )
    frame.write.option("compression", "none").parquet(path)
    return spark.read.parquet(path)


def cpu_seconds() -> float:
    """What this process and all that it started have used."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # it has just ended
            if "serve" not in process.cmdline():
                total += sum(process.cpu_times()[:4])
    return total


def write(frame: DataFrame, form: str, address: str) -> None:
    writer = frame.write.format(form).mode("append").option("kafka.bootstrap.servers", address)
    with KafkaClient(address) as client:
        topic = f"{form}-{time.monotonic_ns()}"
        client.create_topic(topic, PARTITIONS)
    writer.option("topic", topic).save()


def measure(actions: dict[str, Callable[[], None]], rows: int) -> None:
    for action in actions.values():  # the first of each starts workers and warms Java up
        action()
    best = dict.fromkeys(actions, (float("inf"), float("inf")))
    for _ in range(ROUNDS):
        for name, action in actions.items():
            began, used = time.perf_counter(), cpu_seconds()
            action()
            spent = time.perf_counter() - began, cpu_seconds() - used
            best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    for name, (seconds, used) in best.items():
        rates = f"{rows / seconds / 1e6:6.2f} Mrow/s {rows / used / 1e6:6.2f} Mrow/CPU s"
        print(f"  {name:35} {seconds:6.2f} s {used:6.2f} CPU s {rates}", flush=True)


def jars(folder: Path) -> list[Path]:
    try:
        return connector.jars(folder)
    except NotAvailableError as error:
        print(f"without Spark's own sink: {error}")
        return []


def compare(spark: SparkSession, folder: Path, rows: int, size: int, *, both: bool) -> None:
    frame = make(spark, str(folder / "rows"), rows, size)
    with running_broker(folder) as addresses:
        address = addresses["kafka"]
        actions: dict[str, Callable[[], None]] = {
            "read the Parquet file alone": lambda: (
                frame.write.format("noop").mode("overwrite").save()
            ),
            "write topics: penstock": lambda: write(frame, "penstock", address),
        }
        if both:
            actions["write topics: Spark's Kafka sink"] = lambda: write(frame, "kafka", address)
        print(f"{rows:,} rows with values of {size} bytes")
        measure(actions, rows)


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    found = jars(Path(sys.argv[2] if len(sys.argv) > 2 else "build"))
    if found:
        listed = ",".join(str(jar.resolve()) for jar in found)
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {listed} pyspark-shell"
    for size in (1000, 100):
        with tempfile.TemporaryDirectory() as name:
            spark = open_session("penstock benchmark", log=Path(name) / "spark.log")
            rows = megabytes * 1_000_000 // (size + 16)
            compare(spark, Path(name), rows, size, both=bool(found))


if __name__ == "__main__":
    main()
