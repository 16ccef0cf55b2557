"""Rows a CPU second from bytes to typed columns: our decoders beside Spark's own functions.

    python benchmarks/spark_values.py [rows] [spark-avro.jar]

Spark's figure is what a scan with from_json or from_avro takes of CPU beyond the same scan without
it; ours is what the decoder takes. Both run in turn, on the same values, and each round gives one
ratio.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fastavro
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.avro.functions import from_avro

from penstock.pipeline.values.avro_decoder import AvroDecoder
from penstock.pipeline.values.avro_schema import parse_avro
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.decoding import Decoder, Values
from penstock.pipeline.values.json_decoder import JsonDecoder
from versus.spark import orders
from versus.spark.orders import AVRO_ORDER, ORDER

ROUNDS = 5
BATCH = 10_000
"""Rows of about 2 MB, as a task reads them."""
DDL = f"{ORDER}, text STRING"
TEXT = {"name": "text", "type": ["null", "string"]}
AVRO = {**AVRO_ORDER, "fields": [*AVRO_ORDER["fields"], TEXT]}


def order(number: int) -> dict[str, object]:
    return {**orders.order(number), "text": "x" * 60}


def json_values(rows: int) -> list[bytes]:
    return [json.dumps(order(number)).encode() for number in range(rows)]


def avro_values(rows: int) -> list[bytes]:
    schema = fastavro.parse_schema(json.loads(json.dumps(AVRO)))
    values = []
    for number in range(rows):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, order(number))
        values.append(out.getvalue())
    return values


def open_spark(jar: str | None) -> SparkSession:
    # Java's heap and compilers as they are by default, unlike a session of the pipeline.
    builder = SparkSession.builder.master("local[1]").appName("values")
    builder = builder.config("spark.ui.enabled", "false")
    return (builder.config("spark.jars", jar) if jar else builder).getOrCreate()


def java_seconds(spark: SparkSession) -> float:
    root = psutil.Process(spark.sparkContext._gateway.proc.pid)
    return sum(
        times.user + times.system
        for each in [root, *root.children(recursive=True)]
        if (times := each.cpu_times())
    )


def scan(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def spark_cost(spark: SparkSession, frame: DataFrame, parsed: Column) -> float:
    began = java_seconds(spark)
    scan(frame.select("value"))
    between = java_seconds(spark)
    scan(frame.select(parsed))
    return (java_seconds(spark) - between) - (between - began)


def one_behind_the_other(values: list[bytes]) -> Values:
    sizes = np.array([len(value) for value in values], np.int64)
    data = np.frombuffer(b"".join(values), np.uint8)
    return Values(data, np.stack([np.cumsum(sizes) - sizes, sizes]))


def our_cost(decoder: Decoder, values: Values) -> float:
    count = values.spans.shape[1]
    began = time.process_time()
    for start in range(0, count, BATCH):
        part = values.chosen(np.arange(start, min(start + BATCH, count)))
        _, faults = decoder.decode(part)
        assert not faults
    return time.process_time() - began


def measure(
    spark: SparkSession, name: str, decoder: Decoder, values: list[bytes], parsed: Column
) -> None:
    array = pa.array(values, pa.binary())
    located = one_behind_the_other(values)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "values.parquet"))
        pq.write_table(pa.table({"value": array}), path, compression="none", use_dictionary=False)
        frame = spark.read.parquet(path)
        costs: dict[str, Callable[[], float]] = {
            "Spark": lambda: spark_cost(spark, frame, parsed),
            "ours": lambda: our_cost(decoder, located),
        }
        for cost in costs.values():
            cost()
        rounds = [{who: cost() for who, cost in costs.items()} for _ in range(ROUNDS)]
    size = sum(map(len, values)) / len(values)
    ratios = sorted(each["Spark"] / each["ours"] for each in rounds)
    rates = {who: len(values) / statistics.median(e[who] for e in rounds) for who in costs}
    print(
        f"{name:8} {size:4.0f} B  Spark {rates['Spark'] / 1e3:6.0f}  "
        f"ours {rates['ours'] / 1e3:6.0f} thousand rows a CPU second: "
        f"{statistics.median(ratios):.1f} x ({ratios[0]:.1f} to {ratios[-1]:.1f})",
        flush=True,
    )


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    jar = sys.argv[2] if len(sys.argv) > 2 else None
    spark = open_spark(jar)
    text = sql.from_json(sql.col("value").cast("string"), DDL)
    measure(spark, "JSON", JsonDecoder(parse_ddl(DDL)), json_values(rows), text)
    if jar:
        schema = json.dumps(AVRO)
        decoder = AvroDecoder(parse_avro(schema), parse_avro(schema))
        binary = from_avro(sql.col("value"), schema)
        measure(spark, "Avro", decoder, avro_values(rows), binary)
    spark.stop()


if __name__ == "__main__":
    main()
