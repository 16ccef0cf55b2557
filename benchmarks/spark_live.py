"""How quick Spark reads a live table, beside the same files by spark.read.parquet.

    python benchmarks/spark_live.py [rows]

All three run in turn, each round; a figure is the median of the rounds. CPU is that of Java and of
the workers, the call that looks the table up included.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from confluent_kafka import Producer
from pyspark.sql import DataFrame

from penstock.demo.processes import running_broker
from penstock.pipeline.live.table import live_table
from penstock.pipeline.session import open_session
from spark_read import fill, table

ROUNDS = 7
BEHIND = 1000
SIZE = 100


def cpu_seconds() -> float:
    me = psutil.Process()
    every = [me, *me.children(recursive=True)]
    times = [each.cpu_times() for each in every if each.is_running()]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def measured(read: Callable[[], DataFrame]) -> tuple[float, float]:
    began, cpu = time.perf_counter(), cpu_seconds()
    read().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began, cpu_seconds() - cpu


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = open_session("penstock benchmark", log=folder / "spark.log")
        with running_broker(folder) as addresses:
            address, topic = addresses["kafka"], "orders"
            fill(address, topic, rows, SIZE)
            table(address, topic, folder / "caught-up")
            table(address, topic, folder / "behind")
            fill_more(address, topic)
            table(address, topic, folder / "caught-up")
            files = [str(file) for file in (folder / "behind").glob("*.parquet")]
            reads: dict[str, Callable[[], DataFrame]] = {
                "spark.read.parquet": lambda: spark.read.parquet(*files),
                "live table, job caught up": lambda: live_table(spark, folder / "caught-up"),
                f"live table, {BEHIND:,} rows behind": lambda: live_table(spark, folder / "behind"),
            }
            show(reads, rows)


def fill_more(address: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(BEHIND):
        producer.produce(topic, b"x" * SIZE, b"%d" % number)
    assert producer.flush(120) == 0


def show(reads: dict[str, Callable[[], DataFrame]], rows: int) -> None:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in reads}
    for read in reads.values():  # the first of each warms Java up
        measured(read)
    for _ in range(ROUNDS):
        for name, read in reads.items():
            found[name].append(measured(read))
    base = [statistics.median(each) for each in zip(*found["spark.read.parquet"], strict=True)]
    print(
        f"{rows:,} rows of {SIZE} bytes; rows a second and a CPU second, as a multiple of Spark's"
    )
    for name, each in found.items():
        wall, cpu = (statistics.median(values) for values in zip(*each, strict=True))
        print(
            f"  {name:32} {wall:6.2f} s {base[0] / wall:5.2f} x   {cpu:6.2f} CPU s "
            f"{base[1] / cpu:5.2f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
