"""Goal: rows become messages of a Pulsar server, over its protocol alone, each at least once.

Method: Penstock's Pulsar port, real clients of Pulsar as readers, and no Spark. `soak` has the same
with a broker of Apache Pulsar that knows producers by name.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pulsar
import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from apache_pulsar import ApachePulsar
from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.clients.kafka.connection import ClientConnection
from penstock.clients.pulsar.connection import BrokerConnection
from penstock.pipeline.sink.epochs.attempt import Attempt
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.hashing import pulsar_hash
from penstock.pipeline.sink.options import parse
from penstock.pipeline.sink.rows import fields_of
from penstock.pipeline.sink.starting import batch_writer
from penstock.pipeline.sink.writers import abort, commit
from penstock.pipeline.sink.writing import write_task
from penstock.pipeline.source.option_values import OptionError
from source_rows import rows_read
from tls_proxy import tls_in_front_of

GIVEN = {"atLeastOnce": "true"}
VALUE = StructType().add("value", BinaryType())
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NAMES = [b"k%d" % number for number in range(500)]


class Place(NamedTuple):
    """A server, and a topic of three partitions."""

    address: str
    topic: str

    @property
    def given(self) -> dict[str, str]:
        return {"penstock.bootstrap.servers": f"pulsar://{self.address}", **GIVEN}

    def write(self, batch: pa.RecordBatch, attempt: Attempt, **given: str) -> None:
        options = parse({**self.given, "topic": self.topic, **given}, streaming=True)
        assert write_task(iter([batch]), attempt, options) is None
        commit(options, attempt.writer, attempt.epoch, [])
        abort(options, attempt.writer)

    def rows(self, **given: str) -> list[dict[str, Any]]:
        return rows_read(f"pulsar://{self.address}", self.topic, **given)


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApachePulsar]:
    folder = tmp_path_factory.mktemp("apache")
    with ApachePulsar(folder, transactions=False, brokerDeduplicationEnabled="true") as broker:
        yield broker


@pytest.fixture(params=["penstock", pytest.param("apache", marks=pytest.mark.soak)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Whoever speaks Kafka's protocol fails."""
    topic = f"p{uuid.uuid4().hex[:8]}"
    if request.param == "apache":
        broker: ApachePulsar = request.getfixturevalue("apache")
        broker.create(topic, 3)
        return Place(broker.address, topic)
    server: BrokerProcess = request.getfixturevalue("shared_server")
    with KafkaClient(server.kafka) as client:
        client.create_topic(topic, 3)

    def refuse(*_: object) -> None:
        raise AssertionError("Kafka's protocol was spoken")

    monkeypatch.setattr(ClientConnection, "_connected", refuse)
    return Place(server.pulsar.removeprefix("pulsar://"), topic)


@pytest.fixture
def client(place: Place) -> Iterator[pulsar.Client]:
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    made = pulsar.Client(f"pulsar://{place.address}", logger=logger)
    yield made
    made.close()


def test_rows_arrive_as_they_are(place: Place, client: pulsar.Client) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    whole = at.replace(microsecond=678_000)
    batch = pa.record_batch(
        {
            "key": pa.array([b"a", None, b"\xff"]),
            "value": pa.array([b"1", None, b"3" * 300_000]),
            "headers": pa.array([[("h", b"x")], None, [("ä", b"y"), ("z", b"zz")]], HEADERS),
            "partition": pa.array([2, 2, 2], pa.int32()),
            "timestamp": pa.array([at, None, at + timedelta(hours=3)], pa.timestamp("us", "UTC")),
        }
    )
    before = datetime.now(UTC).replace(microsecond=0)
    place.write(batch, Attempt("w", 0, 0, 0), partitioner="kafka")
    found = place.rows(includeHeaders="true")
    assert [(row["key"], row["value"], row["partition"]) for row in found] == [
        (b"a", b"1", 2),
        (None, None, 2),
        (b"\xff", b"3" * 300_000, 2),
    ]
    own = [
        [(each["key"], each["value"]) for each in row["headers"] if "pulsar" not in each["key"]]
        for row in found
    ]
    assert own == [[("h", b"x")], [], [("ä", b"y"), ("z", b"zz")]]
    times = [row["timestamp"] for row in found]
    assert times[0] == whole
    assert before <= times[1] <= datetime.now(UTC)
    assert times[2] == whole + timedelta(hours=3)
    earliest = pulsar.MessageId.earliest
    reader = client.create_reader(f"{place.topic}-partition-2", earliest)
    first, second = (reader.read_next(10_000) for _ in range(2))
    assert (first.data(), first.partition_key(), first.properties()) == (b"1", "a", {"h": "x"})
    assert first.event_timestamp() == int(whole.timestamp() * 1000)
    assert second.event_timestamp() == 0, "a row without a time has none of its own"


def test_keys_decide_as_pulsars_java_client_does(place: Place) -> None:
    batch = pa.record_batch({"key": NAMES, "value": NAMES, "topic": [place.topic] * len(NAMES)})
    place.write(batch, Attempt("w", 0, 0, 0))
    found = {row["value"]: row["partition"] for row in place.rows()}
    hashed = pulsar_hash(*fields_of(pa.array(NAMES), len(NAMES)))
    assert found == dict(zip(NAMES, (hashed % 3).tolist(), strict=True))


def test_a_topic_without_partitions_is_one(place: Place, client: pulsar.Client) -> None:
    plain = place._replace(topic=f"persistent://public/default/{place.topic}-plain")
    client.create_producer(plain.topic).close()
    plain.write(pa.record_batch({"key": NAMES, "value": NAMES}), Attempt("w", 0, 5, 0))
    assert [row["value"] for row in plain.rows()] == NAMES


@pytest.mark.parametrize("codec", ["lz4", "zlib", "zstd", "snappy"])
def test_batches_are_compressed_and_as_clients_make_them(
    place: Place, client: pulsar.Client, codec: str
) -> None:
    values = [b"value"] * 2500
    batch = pa.record_batch({"value": values, "partition": pa.array([0] * 2500, pa.int32())})
    place.write(batch, Attempt("w", 0, 0, 0), **{"pulsar.producer.compressionType": codec})
    reader = client.create_reader(f"{place.topic}-partition-0", pulsar.MessageId.earliest)
    found = [reader.read_next(10_000) for _ in values]
    assert [message.data() for message in found] == values
    entries = [message.message_id().entry_id() for message in found]
    sizes = [entries.count(entry) for entry in dict.fromkeys(entries)]
    assert sizes == [1000, 1000, 500], "as many as the clients of Pulsar put into a batch"


def test_what_is_done_again_is_there_once_where_producers_are_known(place: Place) -> None:
    rows = pa.record_batch({"key": NAMES, "value": NAMES})
    for epoch, task, number in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)):
        place.write(rows, Attempt("w", epoch, task, number))
    assert sorted(row["value"] for row in place.rows()) == sorted(NAMES * 3)


def test_what_had_no_receipt_is_sent_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = BrokerConnection.receipt
    left = 3

    def failing(connection: BrokerConnection, *entry: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            connection.close()
            raise ConnectionResetError
        real(connection, *entry)

    monkeypatch.setattr(BrokerConnection, "receipt", failing)
    place.write(pa.record_batch({"key": NAMES, "value": NAMES}), Attempt("w", 0, 0, 0))
    assert left < 0
    assert {row["value"] for row in place.rows()} == set(NAMES)


def test_a_row_that_is_too_large_is_named(place: Place) -> None:
    rows = pa.record_batch({"value": [b"x", b"x" * (6 << 20)]})
    with pytest.raises(SinkError, match=r"row 1, .* the broker's maxMessageSize is 5242880"):
        place.write(rows, Attempt("w", 0, 0, 0))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka.batch.size": "1"}, "kafka.batch.size is for Kafka's protocol"),
        ({"user": "u", "password": "p"}, "to Pulsar one logs in with a token"),
        ({"pulsar.producer.compressionType": "gzip"}, "one of none, lz4, zlib, zstd, snappy"),
        ({"txnAppId": "a", "txnVersion": "2147483648"}, "txnVersion is at most 2147483647 with"),
    ],
)
def test_options_that_pulsar_has_no_use_for(given: dict[str, str], words: str) -> None:
    servers = {"penstock.bootstrap.servers": "pulsar://localhost:6650", "topic": "t"}
    with pytest.raises(OptionError, match=words):
        parse({**servers, **GIVEN, **given}, streaming=False)


def test_options_of_pulsars_are_for_its_servers_alone() -> None:
    given = {"penstock.bootstrap.servers": "h:1", "pulsar.producer.compressionType": "lz4"}
    with pytest.raises(OptionError, match=r"pulsar\.producer\.compressiontype is for pulsar://"):
        parse({name.lower(): value for name, value in given.items()}, streaming=False)


@pytest.mark.soak
def test_a_broker_whose_transactions_are_off_is_refused(apache: ApachePulsar) -> None:
    given = {"penstock.bootstrap.servers": f"pulsar://{apache.address}"}
    with pytest.raises(SinkError, match=r"transactionCoordinatorEnabled be true, or set atLeast"):
        batch_writer(given, VALUE.add("topic", "string"), overwrite=False)


def test_the_server_is_asked_before_any_row(place: Place, tmp_path: Path) -> None:
    given = place.given
    for name in (place.topic, f"persistent://public/default/{place.topic}"):
        batch_writer({**given, "topic": name}, VALUE, overwrite=False)
    with pytest.raises(SinkError, match=r"no such topic at .*: create it"):
        batch_writer({**given, "topic": "none"}, VALUE, overwrite=False)
    with pytest.raises(SinkError, match="'a/b' names no topic of Pulsar"):
        batch_writer({**given, "topic": "a/b"}, VALUE, overwrite=False)
    away = {**given, "penstock.bootstrap.servers": "pulsar://127.0.0.1:1"}
    with pytest.raises(UnreachableError, match="does not answer"):
        batch_writer({**away, "topic": place.topic}, VALUE, overwrite=False)
    with tls_in_front_of(place.address, tmp_path) as (address, certificate):
        over_tls = {**given, "penstock.bootstrap.servers": f"pulsar+ssl://{address}"}
        over_tls |= {"tlsCaFile": str(certificate), "token": "t"}
        batch_writer(over_tls, VALUE.add("topic", "string"), overwrite=False)
