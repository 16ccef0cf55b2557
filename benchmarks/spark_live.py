"""How quick Spark reads a live table, beside the same files by spark.read.parquet.

    python benchmarks/spark_live.py [rows]

Each query takes its turn by each way in each round, in an order that turns around; a figure is the
best of the rounds. CPU is that of Java and of the workers. `live_table` is called for each query,
as is what it stands beside; views are made once, one of them of the files alone.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from penstock.demo.processes import running_broker
from penstock.pipeline.live.table import live_table
from penstock.pipeline.live.view import register_view
from penstock.pipeline.session import open_session
from spark_read import fill, scan, table

ROUNDS = 6
BEHIND = 1000
SIZE = 100

NATIVE, NATIVE_VIEW = "spark.read.parquet", "view of spark.read.parquet"
Read = Callable[[], DataFrame]
QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "all columns": scan,
    "count": lambda rows: rows.count(),
    "sum": lambda rows: rows.agg(sql.sum("offset")).collect(),
    "filter, few rows": lambda rows: scan(rows.where("offset % 10007 = 1")),
    "filter, one row group": lambda rows: scan(rows.where("offset < 1000")),
}


def cpu_seconds() -> float:
    me = psutil.Process()
    every = [me, *me.children(recursive=True)]
    times = [each.cpu_times() for each in every if each.is_running()]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def measured(read: Read, query: Callable[[DataFrame], object]) -> tuple[float, float]:
    began, cpu = time.perf_counter(), cpu_seconds()
    query(read())
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
            for behind in ("caught-up", "behind"):
                register_view(spark, folder / behind)
            spark.read.parquet(*files).createOrReplaceTempView("native")
            reads: dict[str, Read] = {
                NATIVE: lambda: spark.read.parquet(*files),
                "live table, job caught up": lambda: live_table(spark, folder / "caught-up"),
                f"live table, {BEHIND:,} rows behind": lambda: live_table(spark, folder / "behind"),
                NATIVE_VIEW: lambda: spark.table("native"),
                "view, job caught up": lambda: spark.table("caught_up"),
                f"view, {BEHIND:,} rows behind": lambda: spark.table("behind"),
            }
            print(f"{rows:,} rows of {SIZE} bytes; times as a multiple of Spark's speed")
            for query in QUERIES:
                show(query, reads)


def fill_more(address: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(BEHIND):
        producer.produce(topic, b"x" * SIZE, b"%d" % number)
    assert producer.flush(120) == 0


def show(query: str, reads: dict[str, Read]) -> None:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in reads}
    for read in reads.values():  # the first of each warms Java up
        measured(read, QUERIES[query])
    for number in range(ROUNDS):
        for name in list(reads)[:: -1 if number % 2 else 1]:
            found[name].append(measured(reads[name], QUERIES[query]))
    best = {name: [min(each) for each in zip(*times, strict=True)] for name, times in found.items()}
    print(query)
    for name, (wall, cpu) in best.items():
        base_wall, base_cpu = best[NATIVE_VIEW if "view" in name else NATIVE]
        print(
            f"  {name:32} {wall:6.3f} s {base_wall / wall:5.2f} x   {cpu:6.2f} CPU s "
            f"{base_cpu / cpu:5.2f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
