"""Schemas of Pulsar's kind KEY_VALUE: keys and values as columns, wherever a key travels."""

from __future__ import annotations

import base64
import itertools
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker_process import BrokerProcess
from located import located
from penstock.pipeline.values.decoding import Values
from penstock.pipeline.values.errors import SchemaError
from penstock.pipeline.values.key_value import apart
from penstock.pipeline.values.pulsar_schemas import schema_of_version
from penstock.pulsar.wire import pulsar_api_pb2 as api
from penstock.records.pulsar.metadata_pb2 import KeyValue
from pulsar_peer import entry
from spark_topics import create, fill
from typed_rows import read
from wire_clients import PulsarWire, pulsar_request


def record(*fields: Any) -> bytes:
    return json.dumps({"type": "record", "name": "R", "fields": fields}).encode()


KEY = record({"name": "id", "type": "long"})
FIRST = record({"name": "text", "type": "string"})
SECOND = record(
    {"name": "text", "type": "string"},
    {"name": "note", "type": ["null", "string"], "default": None},
)


def pair(key: bytes | None, value: bytes | None) -> bytes:
    parts = [struct.pack(">i", -1 if part is None else len(part)) for part in (key, value)]
    return parts[0] + (key or b"") + parts[1] + (value or b"")


def avro(text: str) -> bytes:
    return bytes([2 * len(text)]) + text.encode()


class Pairs:
    """A producer with such a schema, of which Pulsar's Python client has none."""

    def __init__(self, server: BrokerProcess, topic: str) -> None:
        self._wire = PulsarWire(server.pulsar.removeprefix("pulsar://"), topic)
        self._numbers = itertools.count()
        self._producer = 0
        self._version = b""

    def use(self, value: bytes, encoding: str, key: str = "AVRO") -> None:
        said = {"key.schema.type": key, "value.schema.type": "AVRO", "kv.encoding.type": encoding}
        properties = [KeyValue(key=name, value=each) for name, each in said.items()]
        definition = pair(KEY if key == "AVRO" else b"", value)
        self._producer += 1
        asked = {"producer_id": self._producer, "request_id": self._producer}
        kept = api.Schema(
            name="", schema_data=definition, type=api.Schema.KeyValue, properties=properties
        )
        frame = pulsar_request("PRODUCER", topic=self._wire.topic, schema=kept, **asked)
        self._version = self._wire.ask(frame, "PRODUCER_SUCCESS").producer_success.schema_version

    def send(self, payload: bytes, key: bytes | None = None) -> None:
        number = next(self._numbers)
        about: dict[str, Any] = {"schema_version": self._version, "sequence_id": number}
        if key is not None:
            about["partition_key"] = base64.b64encode(key).decode()
            about["partition_key_b64_encoded"] = True
        numbers = {"producer_id": self._producer, "sequence_id": number, "num_messages": 1}
        self._wire.ask(pulsar_request("SEND", entry(payload, **about), **numbers), "SEND_RECEIPT")

    def close(self) -> None:
        self._wire.close()


@pytest.fixture
def topic(shared_server: BrokerProcess) -> str:
    schema_of_version.cache_clear()
    return create(shared_server.kafka)


@pytest.fixture
def pairs(shared_server: BrokerProcess, topic: str) -> Iterator[Pairs]:
    made = Pairs(shared_server, topic)
    yield made
    made.close()


def both(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(row["key"], row["value"]) for row in rows]


def inline(pairs: Pairs, key: bytes, value: bytes) -> None:
    pairs.send(pair(key, value))


def separated(pairs: Pairs, key: bytes, value: bytes) -> None:
    pairs.send(value, key)


@pytest.mark.parametrize(("encoding", "send"), [("INLINE", inline), ("SEPARATED", separated)])
def test_keys_and_values_are_columns(
    shared_server: BrokerProcess,
    topic: str,
    pairs: Pairs,
    encoding: str,
    send: Callable[[Pairs, bytes, bytes], None],
) -> None:
    pairs.use(FIRST, encoding)
    send(pairs, b"\x02", avro("a"))
    pairs.use(SECOND, encoding)
    send(pairs, b"\x04", avro("b") + b"\x02" + avro("new"))
    keys = {"keySchema": shared_server.pulsar}
    assert both(read(shared_server, topic, **keys)) == [
        ({"id": 1}, {"text": "a", "note": None}),
        ({"id": 2}, {"text": "b", "note": "new"}),
    ]
    assert [row["key"] for row in read(shared_server, topic)] == [b"\x02", b"\x04"]


def test_what_is_no_pair_is_said_and_nothing_is_null(
    shared_server: BrokerProcess, topic: str, pairs: Pairs
) -> None:
    pairs.use(FIRST, "INLINE", key="STRING")
    for payload in (
        pair(b"k", avro("a")),
        b"\x00\x00",
        pair(b"k", None),
        pair(None, avro("b")),
        pair(b"k", b"\x02"),
    ):
        pairs.send(payload)
    fill(shared_server.kafka, topic, [(b"plain", pair(b"k", avro("c")))])
    with pytest.raises(Exception, match=r"offset 1 .* is no key and value, each behind its length"):
        read(shared_server, topic)
    assert both(read(shared_server, topic, onParseError="null")) == [
        (b"k", {"text": "a"}),
        (None, None),
        (b"k", None),
        (None, {"text": "b"}),
        (b"k", None),
        (b"plain", None),
    ]
    with pytest.raises(SchemaError, match=r"keys of .* are of kind STRING"):
        read(shared_server, topic, keySchema=shared_server.pulsar)


def test_pairs_are_taken_apart_wherever_they_end() -> None:
    whole = pair(b"key", b"value")
    cut = [whole[:size] for size in range(len(whole))]
    huge = struct.pack(">i", 2**31 - 1) + whole
    negative = struct.pack(">i", -2) + whole
    rows = [None, *cut, whole + b"x", huge, negative, whole, pair(b"", b"")]
    values = located(rows)
    found = apart(values)
    assert found.broken.tolist() == list(range(1, len(rows) - 2))
    keys, contents = (Values(values.data, part).binary() for part in (found.keys, found.values))
    assert keys.to_pylist()[-2:] == [b"key", b""]
    assert contents.to_pylist()[-2:] == [b"value", b""]
    assert keys.null_count == contents.null_count == len(rows) - 2
    assert apart(located([])).keys.shape == (2, 0)
