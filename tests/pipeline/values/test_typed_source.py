"""Typed columns through a real Spark: batch and stream, bad records in each of the three ways."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.source.options import OptionError, parse
from spark_topics import Record, create, fill

DDL = "id BIGINT, name STRING, at TIMESTAMP, tags ARRAY<STRING>, origin STRUCT<city: STRING>"
BAD = 7


def orders(first: int, last: int) -> list[Record]:
    return [(f"k{n}".encode(), order(n)) for n in range(first, last)]


def order(number: int) -> bytes:
    value = {
        "id": number,
        "name": f"order {number}",
        "at": "2024-03-01T12:00:00Z",
        "tags": ["a"] * (number % 3),
        "origin": {"city": "Ulm"},
        "unknown": [number],
    }
    return json.dumps(value).encode()


def with_a_bad_one(first: int, last: int) -> list[Record]:
    records = orders(first, last)
    records[BAD] = (b"bad", b'{"id": "seven"}')
    return records


def read(spark: SparkSession, address: str, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("penstock").option("penstock.bootstrap.servers", address)
    return reader.options(subscribe=topic, **options).load()


def test_a_value_is_a_struct_of_real_types(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, [*orders(0, 50), (b"gone", None)])
    frame = read(spark, shared_server.kafka, topic, schema=DDL)
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,name:string,at:timestamp,tags:array<string>,origin:struct<city:string>>"
    )
    assert [field.name for field in frame.schema] == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
    ]  # fmt: skip
    rows = frame.select("offset", "value.*").orderBy("offset").collect()
    assert [row.id for row in rows] == [*range(50), None]
    assert [len(row.tags) for row in rows[:50]] == [n % 3 for n in range(50)]
    assert (rows[3].name, rows[3].origin.city, rows[3]["at"].hour) == ("order 3", "Ulm", 12)
    assert frame.where("value IS NULL").count() == 1


def test_the_fields_of_values_are_columns_of_their_own(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, [*with_a_bad_one(0, 20), (b"gone", None)])
    options = {"schema": DDL, "keySchema": "id STRING", "onParseError": "null", "flatten": "true"}
    columns = {"columns": "offset,value,key"}
    frame = read(spark, shared_server.kafka, topic, **options, **columns)
    assert frame.columns == ["id", "name", "at", "tags", "origin", "_offset", "_key"]
    rows = frame.orderBy("_offset").collect()
    assert [row["_offset"] for row in rows if row.id is None] == [BAD, 20]
    assert (rows[3].name, rows[3].origin.city, len(rows[5].tags)) == ("order 3", "Ulm", 2)
    with pytest.raises(Exception, match="a field _offset, and so is a column"):
        read(spark, shared_server.kafka, topic, **options | {"schema": "_offset INT"})
    stream = spark.readStream.format("penstock").options(
        **options | {"penstock.bootstrap.servers": shared_server.kafka, "subscribe": topic}
    )
    writer = stream.option("startingOffsets", "earliest").load().writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "rows")).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    written = spark.read.parquet(str(tmp_path / "rows")).orderBy("_offset")
    assert [row.id for row in written.collect()] == [row.id for row in rows]


def test_a_bad_record_fails_is_null_or_goes_elsewhere(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    address = shared_server.kafka
    fill(address, topic, with_a_bad_one(0, 20), headers=[("trace", b"1")])
    where = rf"{topic}-0 offset {BAD} is not of its schema: id: a value of another type"
    with pytest.raises(Exception, match=where):
        read(spark, address, topic, schema=DDL).collect()

    nulls = read(spark, address, topic, schema=DDL, onParseError="null")
    assert [row.offset for row in nulls.where("value IS NULL").collect()] == [BAD]

    folder = tmp_path / "dead"
    frame = read(spark, address, topic, schema=DDL, deadLetter=str(folder))
    for _ in range(2):
        assert frame.count() == 19  # Twice, and the record is there once all the same.
    (letter,) = pq.read_table(folder).to_pylist()
    assert letter.pop("timestamp") is not None
    assert letter == {
        "topic": topic,
        "partition": 0,
        "offset": BAD,
        "key": b"bad",
        "value": b'{"id": "seven"}',
        "headers": [{"key": "trace", "value": b"1"}],
        "reason": "id: a value of another type (byte 7)",
        "schemaId": None,
    }


def test_a_stream_writes_each_bad_record_once(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "dead"

    def run() -> None:
        stream = spark.readStream.format("penstock").options(
            **{
                "penstock.bootstrap.servers": shared_server.kafka,
                "subscribe": topic,
                "startingOffsets": "earliest",
                "keySchema": "id INT",
                "schema": DDL,
                "deadLetter": str(folder),
            }
        )
        frame = stream.load().select("key.id", "value.name", "offset")
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.start().awaitTermination()

    keyed = [(json.dumps({"id": n}).encode(), value) for n, (_, value) in enumerate(orders(0, 30))]
    fill(shared_server.kafka, topic, [*keyed[:10], (b"no JSON", order(0)), *keyed[10:]])
    run()
    (checkpoint / "commits" / "0").unlink()  # As if Spark had died before it wrote that down.
    (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    fill(shared_server.kafka, topic, [(b"{", order(1))])
    run()
    letters = pq.read_table(folder).sort_by("offset").to_pylist()
    assert [(each["offset"], each["key"]) for each in letters] == [(10, b"no JSON"), (31, b"{")]
    assert letters[0]["reason"].startswith("key: a byte that can't stand there")
    rows = spark.read.parquet(str(tmp_path / "rows")).orderBy("id").collect()
    assert [(row.id, row.name) for row in rows] == [(n, f"order {n}") for n in range(30)]


def test_what_can_not_be_is_refused_before_any_row(
    spark: SparkSession, shared_server: BrokerProcess
) -> None:
    topic = create(shared_server.kafka)
    with pytest.raises(Exception, match="schema: a type such as BIGINT"):
        read(spark, shared_server.kafka, topic, schema="id NUMBER")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": " "}, "schema is empty"),
        ({"onParseError": "null"}, "onParseError is for typed columns: give schema"),
        ({"deadLetter": "/tmp/x"}, "deadLetter is for typed columns: give schema"),
        ({"schemaSubject": "a"}, "schemaSubject says more about schema: give schema"),
        ({"keySchemaMessage": "a"}, "keySchemaMessage says more about keySchema"),
        ({"schema": "a INT", "onParseError": "skip"}, "onParseError must be one of fail, null"),
        ({"schema": "a INT", "onParseError": "deadLetter"}, "as deadLetter"),
        (
            {"schema": "a INT", "onParseError": "null", "deadLetter": "/tmp/x"},
            "leave one of them out",
        ),
        ({"schema": "a INT", "deadLetter": "s3://bucket/x"}, "a folder on a file system"),
        ({"schemas": "a INT"}, "did you mean schema"),
    ],
)
def test_options_that_can_not_be_are_refused(options: dict[str, str], message: str) -> None:
    given = {"penstock.bootstrap.servers": "localhost:9092", "subscribe": "a", **options}
    with pytest.raises(OptionError, match=message):
        parse(given, streaming=False)
