"""Asks Spark's own Kafka source and ours the same questions; prints both answers to each as JSON.

    python spark_both_sources.py KAFKA_ADDRESS CLASS_PATH EMPTY_FOLDER

A process of its own, for a Java machine has the jars that it was started with.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from penstock.clients.kafka.client import KafkaClient

TIME_MS = 1_700_000_000_000
TOPICS = {"both.orders": 3, "both.payments": 1}
ROWS = 400
LATE = TIME_MS + 300
NEVER = TIME_MS + 10_000_000


def fill(address: str) -> None:
    with KafkaClient(address) as client:
        for topic, partitions in TOPICS.items():
            client.create_topic(topic, partitions)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 2})
    for topic, partitions in TOPICS.items():
        for number in range(ROWS):
            producer.produce(
                topic,
                None if number % 50 == 7 else b"value %d" % number,
                None if number % 9 == 0 else b"key %d" % number,
                partition=number % partitions,
                timestamp=TIME_MS + number,
                headers=[("a", b"1"), ("a", None)] if number % 4 == 0 else None,
            )
    assert producer.flush(60) == 0


ORDERS = {"subscribe": "both.orders"}
BATCHES: dict[str, dict[str, str]] = {
    "subscribe": ORDERS,
    "headers": {**ORDERS, "includeHeaders": "true"},
    "several topics": {"subscribe": "both.orders,both.payments"},
    "subscribePattern": {"subscribePattern": "both\\..*s"},
    "assign": {"assign": '{"both.orders": [2, 0]}'},
    "offsets": {
        **ORDERS,
        "startingOffsets": '{"both.orders": {"0": 17, "1": -2, "2": 100}}',
        "endingOffsets": '{"both.orders": {"0": 40, "1": -1, "2": 100}}',
    },
    "startingTimestamp": {**ORDERS, "startingTimestamp": str(LATE)},
    "endingTimestamp": {**ORDERS, "endingTimestamp": str(LATE)},
    "a time before offsets": {
        **ORDERS,
        "startingTimestamp": str(LATE),
        "startingOffsets": '{"both.orders": {"0": 1, "1": 1, "2": 1}}',
    },
    "times of partitions": {
        **ORDERS,
        "startingOffsetsByTimestamp": json.dumps(
            {"both.orders": {"0": LATE, "1": TIME_MS, "2": LATE}}
        ),
        "endingOffsetsByTimestamp": json.dumps(
            {"both.orders": {"0": NEVER, "1": LATE, "2": NEVER}}
        ),
    },
    "never, so the end": {
        **ORDERS,
        "startingTimestamp": str(NEVER),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "minPartitions": {**ORDERS, "minPartitions": "12"},
    "maxRecordsPerPartition": {**ORDERS, "maxRecordsPerPartition": "50"},
    "read_committed": {**ORDERS, "kafka.isolation.level": "read_committed"},
    "tuning": {**ORDERS, "kafka.max.poll.records": "7", "kafkaConsumer.pollTimeoutMs": "60000"},
    "never, so an error": {**ORDERS, "startingTimestamp": str(NEVER)},
    "an unknown topic": {"subscribe": "both.nothing"},
    "no topics": {},
    "two ways": {**ORDERS, "assign": '{"both.orders": [0]}'},
    "a partition left out": {**ORDERS, "startingOffsets": '{"both.orders": {"0": 1}}'},
    "a batch from the latest": {**ORDERS, "startingOffsets": "latest"},
    "a batch to the earliest": {**ORDERS, "endingOffsets": "earliest"},
    "no number": {**ORDERS, "startingTimestamp": "yesterday"},
    "auto.offset.reset": {**ORDERS, "kafka.auto.offset.reset": "latest"},
    "a deserializer": {**ORDERS, "kafka.value.deserializer": "x"},
}
STREAMS: dict[str, dict[str, str]] = {
    "earliest": {**ORDERS, "startingOffsets": "earliest"},
    "maxOffsetsPerTrigger": {
        **ORDERS,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "150",
    },
    "from offsets": {
        **ORDERS,
        "startingOffsets": '{"both.orders": {"0": 17, "1": 20, "2": -2}}',
    },
    "from a time": {**ORDERS, "startingTimestamp": str(LATE)},
    "an end": {**ORDERS, "endingOffsets": "latest"},
}


def plain(row: Any) -> list[Any]:
    key, value = (None if each is None else bytes(each).decode() for each in (row.key, row.value))
    headers = row.headers if "headers" in row else None
    pairs = headers and [(each.key, each.value and bytes(each.value).decode()) for each in headers]
    time = row.timestamp.timestamp()
    return [row.topic, row.partition, row.offset, key, value, time, row.timestampType, pairs]


def batch(spark: SparkSession, address: str, source: str, options: dict[str, str]) -> Any:
    reader = spark.read.format(source).option("kafka.bootstrap.servers", address)
    frame = reader.options(**options).load()
    rows = sorted(map(plain, frame.collect()), key=str)
    tasks = frame.rdd.getNumPartitions() if "minPartitions" in options else None
    return {"schema": frame.schema.simpleString(), "rows": rows, "tasks": tasks}


def stream(
    spark: SparkSession, address: str, source: str, options: dict[str, str], folder: Path
) -> Any:
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", address)
    sizes: list[int] = []
    rows: list[Any] = []

    def take(frame: DataFrame, _: int) -> None:
        found = list(map(plain, frame.collect()))
        sizes.append(len(found))
        rows.extend(found)

    writer = reader.options(**options).load().writeStream.foreachBatch(take)
    writer = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    return {"sizes": [size for size in sizes if size], "rows": sorted(rows, key=str)}


def answer(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:
        return {"error": str(error)[:2000]}


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    address, class_path, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", class_path)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    fill(address)
    answers: dict[str, dict[str, Any]] = {}
    for source in ("kafka", "penstock"):
        for name, options in BATCHES.items():
            found = answer(lambda: batch(spark, address, source, options))  # noqa: B023  # at once
            answers.setdefault(name, {})[source] = found
        for name, options in STREAMS.items():
            place = folder / source / name.replace(" ", "-")
            found = answer(lambda: stream(spark, address, source, options, place))  # noqa: B023
            answers.setdefault(f"stream: {name}", {})[source] = found
    answers["moved"] = moved(spark, address, folder / "moved")
    sys.stdout.write(json.dumps(answers) + "\n")


def moved(spark: SparkSession, address: str, folder: Path) -> dict[str, Any]:
    """Begin a stream with one source, and go on with the other from the same checkpoint."""
    options = {**ORDERS, "startingOffsets": "earliest"}
    before = answer(lambda: stream(spark, address, "kafka", options, folder))
    producer = Producer({"bootstrap.servers": address})
    producer.produce("both.orders", b"moved", partition=1, timestamp=TIME_MS)
    assert producer.flush(60) == 0
    after = answer(lambda: stream(spark, address, "penstock", options, folder))
    return {"before": before, "after": after}


if __name__ == "__main__":
    main()
