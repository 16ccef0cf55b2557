"""Goal: each wrong option, column or broker is a clear error before any row is written."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from broker_process import BrokerProcess
from penstock.clients.access import Access
from penstock.pipeline.clusters.address import Address, Protocol
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.options import SinkOptions, parse
from penstock.pipeline.sink.schema import check_columns
from penstock.pipeline.sink.starting import batch_writer, stream_writer
from penstock.pipeline.source.options import OptionError

SERVERS = {"penstock.bootstrap.servers": "localhost:9092"}


def struct(**columns: DataType) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made.add(name, kind)
    return made


VALUE = struct(value=StringType())
PAIR = struct(key=StringType(), value=BinaryType())


def test_the_defaults() -> None:
    found = parse({**SERVERS, "TOPIC": "t", "checkpointLocation": "x"}, streaming=True)
    assert found == SinkOptions(
        address=Address(Protocol.KAFKA, "localhost:9092", Access()),
        topic="t",
        partitioner="kafka",
        codec="none",
        batch_bytes=1_000_000,
        at_least_once=False,
        fail_on_data_loss=True,
        timeout_ms=None,
        application=None,
        version=0,
        checkpoint="x",
        query_name=None,
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"penstock.bootstrap.servers": ""}, "penstock.bootstrap.servers is missing"),
        ({"penstock.bootstrap.servers": "host"}, "'host' is not of the form host:port"),
        ({"topc": "t"}, "unknown option 'topc': did you mean topic?"),
        ({"subscribe": "t"}, "unknown option 'subscribe'"),
        ({"topic": " "}, "topic is empty: name a topic, or leave it out"),
        ({"partitioner": "mine"}, "partitioner must be one of kafka, pulsar, iggy, not 'mine'"),
        ({"kafka.compression.type": "rar"}, "must be one of none, gzip, snappy, lz4, zstd"),
        ({"kafka.acks": "1"}, "kafka.acks must be one of all, -1, not '1'"),
        ({"kafka.batch.size": "0"}, "kafka.batch.size must be a whole number from 1"),
        ({"kafka.transaction.timeout.ms": "999"}, "must be a whole number from 1000 to"),
        ({"kafka.transaction.timeout.ms": "x"}, "kafka.transaction.timeout.ms must be a whole"),
        ({"includeHeaders": "maybe"}, "includeHeaders must be one of true, false"),
        ({"txnAppId": "a"}, "give both of txnAppId and txnVersion, or neither"),
        ({"txnVersion": "1"}, "give both of txnAppId and txnVersion, or neither"),
        ({"txnAppId": "a/b", "txnVersion": "1"}, "txnAppId has 1 to 190 characters and no slash"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "txnVersion must be a whole number, not '-1'"),
    ],
)
def test_options(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as error:
        parse({**SERVERS, **given}, streaming=False)
    assert words in str(error.value)


def test_a_stream_names_its_batches_itself() -> None:
    with pytest.raises(OptionError, match="are for batch writes: a stream has its own"):
        parse({**SERVERS, "txnAppId": "a", "txnVersion": "1"}, streaming=True)


@pytest.mark.parametrize(
    ("schema", "topic", "words"),
    [
        (struct(vlaue=StringType()), "t", "there is no column value, only vlaue: select what"),
        (VALUE, None, "set the option topic, or add a column topic"),
        (
            struct(value=LongType()),
            "t",
            "column value is bigint, and must be string or binary: cast",
        ),
        (struct(value=StringType(), key=LongType()), "t", "column key is bigint"),
        (
            struct(value=StringType(), partition=LongType()),
            "t",
            "partition is bigint, and must be int",
        ),
        (struct(value=StringType(), topic=BinaryType()), None, "column topic is binary"),
        (struct(value=StringType(), timestamp=LongType()), "t", "must be timestamp"),
        (struct(value=StringType(), headers=StringType()), "t", "must be array<struct<key: string"),
        (struct(value=StringType(), headers=ArrayType(StringType())), "t", "column headers is"),
        (struct(value=StringType(), headers=ArrayType(VALUE)), "t", "column headers is"),
    ],
)
def test_columns(schema: StructType, topic: str | None, words: str) -> None:
    with pytest.raises(SinkError) as error:
        check_columns(schema, topic)
    assert words in str(error.value)


def test_columns_that_can_be_written() -> None:
    check_columns(struct(value=BinaryType()), "t")
    headers = ArrayType(PAIR)
    times, number = TimestampType(), IntegerType()
    columns = struct(key=BinaryType(), value=StringType(), headers=headers, topic=StringType())
    check_columns(columns.add("partition", number).add("timestamp", times), None)
    check_columns(struct(value=StringType(), offset=LongType(), other=PAIR), "t")


def test_brokers(shared_server: BrokerProcess) -> None:
    here = {"kafka.bootstrap.servers": shared_server.kafka}
    away = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    with pytest.raises(UnreachableError, match=r"the broker at 127\.0\.0\.1:1 does not answer"):
        batch_writer(away, VALUE, overwrite=False)
    stream_writer(away, VALUE, overwrite=False)  # whose tasks wait for it
    with pytest.raises(SinkError, match="can't be overwritten: use mode"):
        batch_writer({**here, "topic": "t"}, VALUE, overwrite=True)
    with pytest.raises(SinkError, match="can't be overwritten: use outputMode"):
        stream_writer({**here, "topic": "t"}, VALUE, overwrite=True)
    with pytest.raises(SinkError, match="can't be written to: INVALID_TOPIC_EXCEPTION"):
        batch_writer({**here, "topic": "a b"}, VALUE, overwrite=False)
