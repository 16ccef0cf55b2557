"""Columns of what Pulsar's own client wrote with schemas that the broker keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulsar
import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.json_format import ParseDict

from broker_process import BrokerProcess
from penstock.pipeline.values.errors import ParseError, SchemaError
from penstock.pipeline.values.pulsar_schemas import full_names, schema_of_version
from spark_topics import create, fill
from typed_rows import read

schema = pulsar.schema


class First(schema.Record):  # type: ignore[misc]  # the client has no types
    _avro_namespace = "shop"
    number = schema.Integer()
    text = schema.String()


class Second(schema.Record):  # type: ignore[misc]
    _avro_namespace = "shop"
    number = schema.Integer()
    text = schema.String()
    note = schema.String(required_default=True)


First.__name__ = Second.__name__ = "Order"


@pytest.fixture
def client(shared_server: BrokerProcess) -> Iterator[pulsar.Client]:
    schema_of_version.cache_clear()
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(shared_server.pulsar, logger=logger)
    yield client
    client.close()


@pytest.fixture
def topic(shared_server: BrokerProcess) -> str:
    return create(shared_server.kafka)


def send(client: pulsar.Client, topic: str, kind: Any, *orders: Any, batched: bool = True) -> None:
    producer = client.create_producer(topic, schema=kind, batching_enabled=batched)
    for order in orders:
        producer.send_async(order, lambda *_: None)
    producer.flush()


def values(rows: list[dict[str, Any]]) -> list[Any]:
    return [row["value"] for row in rows]


@pytest.mark.parametrize("batched", [True, False])
def test_each_message_is_read_by_the_version_that_it_was_written_with(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str, batched: bool
) -> None:
    first, second = schema.AvroSchema(First), schema.AvroSchema(Second)
    send(
        client, topic, first, First(number=1, text="a"), First(number=2, text="b"), batched=batched
    )
    send(client, topic, second, Second(number=3, text="c", note="new"), batched=batched)
    send(client, topic, first, First(number=4, text="d"), batched=batched)
    rows = read(shared_server, topic)
    assert values(rows) == [
        {"number": 1, "text": "a", "note": None},
        {"number": 2, "text": "b", "note": None},
        {"number": 3, "text": "c", "note": "new"},
        {"number": 4, "text": "d", "note": None},
    ]
    assert set(rows[0]) == {
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType",
    }  # fmt: skip


def test_json_of_a_schema_is_read(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    send(client, topic, schema.JsonSchema(First), First(number=1, text="ü"))
    assert values(read(shared_server, topic)) == [{"number": 1, "text": "ü"}]


def test_what_was_sent_without_a_schema_is_a_dead_letter(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str, tmp_path: Path
) -> None:
    fill(shared_server.kafka, topic, [(b"k", b"not Avro")])
    send(client, topic, schema.AvroSchema(First), First(number=1, text="a"))
    with pytest.raises(ParseError, match="sent without a schema"):
        read(shared_server, topic)
    rows = read(shared_server, topic, deadLetter=str(tmp_path))
    assert values(rows) == [{"number": 1, "text": "a"}]
    (letter,) = pq.read_table(tmp_path).to_pylist()
    assert (letter["offset"], letter["value"], letter["schemaId"]) == (0, b"not Avro", None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": "pulsar://127.0.0.1:1"}, "does not answer"),
        ({"schema": "pulsar://"}, "pulsar://host:port"),
        ({"schema": "pulsar://127.0.0.1/shop"}, "pulsar://host:port"),
        ({"schemaSubject": "persistent://public/default/nothing"}, "nothing"),
    ],
)
def test_schemas_that_can_not_be_had(
    shared_server: BrokerProcess,
    client: pulsar.Client,
    topic: str,
    options: dict[str, str],
    words: str,
) -> None:
    send(client, topic, schema.AvroSchema(First), First(number=1, text="a"))
    with pytest.raises(SchemaError, match=words):
        read(shared_server, topic, **options)


def test_one_topic_has_the_schema_of_all(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    send(client, topic, schema.AvroSchema(First), First(number=1, text="a"))
    pattern = {"subscribePattern": f"{topic}|{topic}-other"}
    with pytest.raises(SchemaError, match="schemaSubject"):
        read(shared_server, topic, **pattern)
    rows = read(shared_server, topic, **pattern, schemaSubject=topic)
    assert values(rows) == [{"number": 1, "text": "a"}]


def test_values_that_are_no_records_have_no_columns(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    send(client, topic, schema.StringSchema(), "text")
    with pytest.raises(SchemaError, match="String"):
        read(shared_server, topic)


def test_keys_have_a_schema_only_beside_one_of_values(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    send(client, topic, schema.AvroSchema(First), First(number=1, text="a"))
    with pytest.raises(SchemaError, match=r"none of keys: .* of kind KEY_VALUE"):
        read(shared_server, topic, keySchema=shared_server.pulsar)


def test_protobuf_of_a_schema_is_read(
    shared_server: BrokerProcess, client: pulsar.Client, topic: str
) -> None:
    place = {"name": "id", "number": 1, "type": "TYPE_INT64", "label": "LABEL_OPTIONAL"}
    at = {"name": "at", "number": 2, "type": "TYPE_MESSAGE", "label": "LABEL_OPTIONAL"}
    at["type_name"] = ".google.protobuf.Timestamp"
    file = {
        "name": "order.proto",
        "syntax": "proto3",
        "dependency": [timestamp_pb2.DESCRIPTOR.name],
        "message_type": [{"name": "Other"}, {"name": "Order", "field": [place, at]}],
    }
    pool = descriptor_pool.Default()
    pool.Add(ParseDict(file, descriptor_pb2.FileDescriptorProto()))
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))
    when = datetime(2026, 11, 23, tzinfo=UTC)
    send(client, topic, schema.ProtobufNativeSchema(order), order(id=1, at=when), order(id=2))
    fill(shared_server.kafka, topic, [(None, b"\x08\x03")])
    rows = read(shared_server, topic, onParseError="null")
    assert values(rows) == [{"id": 1, "at": when}, {"id": 2, "at": None}, None]


def test_a_dot_may_stand_between_the_parts_of_a_name() -> None:
    assert full_names("orders") == ("persistent://public/default/orders",)
    assert full_names("shop/eu/orders") == ("persistent://shop/eu/orders",)
    assert full_names("persistent://a/b/c") == ("persistent://a/b/c",)
    assert full_names("a.b.c") == (
        "persistent://public/default/a.b.c",
        "persistent://public/a/b.c",
        "persistent://a/b/c",
    )
