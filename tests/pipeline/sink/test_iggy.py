"""Goal: rows become messages of an Iggy server, over its protocol alone, each at least once.

Method: Penstock's Iggy port, real clients of Iggy as readers, and no Spark.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from broker_process import BrokerProcess
from iggy_clients import connected
from penstock.clients.access import Access, Password
from penstock.clients.iggy.client import IggyClient
from penstock.clients.kafka.connection import ClientConnection
from penstock.iggy.wire import frame
from penstock.iggy.wire.commands import Operation
from penstock.iggy.wire.identifiers import Partitioning, PartitioningKind
from penstock.pipeline.sink.epochs.attempt import Attempt
from penstock.pipeline.sink.errors import SinkError, UnreachableError
from penstock.pipeline.sink.options import parse
from penstock.pipeline.sink.starting import batch_writer
from penstock.pipeline.sink.writers import abort, commit
from penstock.pipeline.sink.writing import write_task
from penstock.pipeline.source.option_values import OptionError
from penstock.session import Buffer
from source_rows import rows_read
from tls_proxy import tls_in_front_of

LOGIN = {"user": "iggy", "password": "iggy"}
GIVEN = {**LOGIN, "atLeastOnce": "true"}
VALUE = StructType().add("value", BinaryType())
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
MESSAGE_ID = "penstock.iggy.id"
ID = slice(8, 24)
"""Where a message's id lies in its frame."""


async def _created(address: str, stream: str) -> None:
    client = await connected(address)
    await client.create_stream(stream)
    await client.create_topic(stream, "orders", 3)


@pytest.fixture
def topic(shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic of three partitions; whoever speaks Kafka's protocol fails."""
    stream = f"s{uuid.uuid4().hex[:8]}"
    asyncio.run(_created(shared_server.iggy, stream))

    def refuse(*_: object) -> None:
        raise AssertionError("Kafka's protocol was spoken")

    monkeypatch.setattr(ClientConnection, "_connected", refuse)
    return f"{stream}/orders"


def servers(server: BrokerProcess) -> dict[str, str]:
    return {"penstock.bootstrap.servers": f"iggy://{server.iggy}"}


def write(server: BrokerProcess, batch: pa.RecordBatch, attempt: Attempt, **given: str) -> None:
    options = parse({**servers(server), **GIVEN, **given}, streaming=True)
    assert write_task(iter([batch]), attempt, options) is None
    commit(options, attempt.writer, attempt.epoch, [])
    abort(options, attempt.writer)


def test_rows_arrive_as_they_are(shared_server: BrokerProcess, topic: str) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    batch = pa.record_batch(
        {
            "key": pa.array(["a", None, "kk"]),
            "value": pa.array([b"1", b"2", b"3" * 300_000]),
            "headers": pa.array([[("h", b"x")], None, [("ä", b"y"), ("z", b"zz")]], HEADERS),
            "partition": pa.array([2, 2, 2], pa.int32()),
            # Further apart than a batch of Iggy's can say.
            "timestamp": pa.array([at, at + timedelta(hours=3), at], pa.timestamp("us", tz="UTC")),
        }
    )
    write(shared_server, batch, Attempt("w", 0, 0, 0), topic=topic)
    found = rows_read(f"iggy://{shared_server.iggy}", topic, includeHeaders="true", **LOGIN)
    assert [(row["key"], row["value"], row["partition"]) for row in found] == [
        (b"a", b"1", 2),
        (None, b"2", 2),
        (b"kk", b"3" * 300_000, 2),
    ]
    given = [
        [(each["key"], each["value"]) for each in row["headers"] if each["key"] != MESSAGE_ID]
        for row in found
    ]
    assert given == [
        [("h", b"x")],
        [],
        [("ä", b"y"), ("z", b"zz")],
    ]
    assert [row["timestamp"] for row in found] == [at, at + timedelta(hours=3), at]


def test_keys_decide_as_iggys_server_does(shared_server: BrokerProcess, topic: str) -> None:
    keys = [b"k%d" % number for number in range(500)]
    batch = pa.record_batch({"key": keys, "value": keys, "topic": [topic] * len(keys)})
    write(shared_server, batch, Attempt("w", 0, 0, 0))
    rows = rows_read(f"iggy://{shared_server.iggy}", topic, **LOGIN)
    assert sorted(row["value"] for row in rows) == sorted(keys)
    chosen = Partitioning(PartitioningKind.MESSAGES_KEY)
    assert all(chosen.hash(row["key"]) % 3 == row["partition"] for row in rows)


def test_what_is_done_again_has_the_same_ids(shared_server: BrokerProcess, topic: str) -> None:
    batch = pa.record_batch({"value": [b"a", b"b"], "partition": pa.array([0, 0], pa.int32())})
    for epoch, task, number in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)):
        write(shared_server, batch, Attempt("w", epoch, task, number), topic=topic)
    access = Access(login=Password("iggy", "iggy"))
    with IggyClient(shared_server.iggy, access) as client:
        found = client.poll(*topic.split("/"), 0, 0, 100)
    ids = []
    for each in found:
        position = 256
        while position < len(each.body):
            frame = each.body[position:]
            ids.append(bytes(frame[ID]))
            position += 48 + int.from_bytes(frame[32:36], "little")
            position += int.from_bytes(frame[36:40], "little")
    first, again, other, later = ids[0:2], ids[2:4], ids[4:6], ids[6:8]
    assert first == again
    assert len({*first, *other, *later}) == 6


def test_requests_are_numbered_as_iggys_own_server_wants(
    shared_server: BrokerProcess, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a log-in of number 0, and leaves out a message that a client sent before under
    its number.
    """
    seen: list[frame.RequestHeader] = []
    build = frame.build_request

    def recorded(header: frame.RequestHeader, body: bytes) -> list[Buffer]:
        seen.append(header)
        return build(header, body)

    monkeypatch.setattr(frame, "build_request", recorded)
    batch = pa.record_batch({"value": [b"a", b"b"], "partition": pa.array([0, 1], pa.int32())})
    for epoch in range(2):
        write(shared_server, batch, Attempt("w", epoch, 0, 0), topic=topic)
    by_client: dict[bytes, list[frame.RequestHeader]] = {}
    for each in seen:
        by_client.setdefault(each.client, []).append(each)
    for requests in by_client.values():
        assert [each.request for each in requests if each.operation is Operation.REGISTER] == [0]
        sends = [each.request for each in requests if each.operation is Operation.SEND_MESSAGES]
        assert sends == list(range(1, 1 + len(sends)))
    sending = [each.client for each in seen if each.operation is Operation.SEND_MESSAGES]
    assert len(sending) == 4
    assert len(set(sending)) == 2, "each connection is another client"


def test_rows_that_iggy_can_not_take_are_named(shared_server: BrokerProcess, topic: str) -> None:
    for bad in (None, b""):
        batch = pa.record_batch({"value": pa.array([b"x", bad])})
        with pytest.raises(SinkError, match="row 1: its value is null or empty"):
            write(shared_server, batch, Attempt("w", 0, 0, 0), topic=topic)
    good = pa.record_batch({"value": [b"x"]})
    with pytest.raises(SinkError, match="'nothing' names no topic of Iggy"):
        write(shared_server, good, Attempt("w", 0, 0, 0), topic="nothing")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"atLeastOnce": "false"}, "set atLeastOnce to true if that is no harm"),
        ({"kafka.batch.size": "1"}, "kafka.batch.size is for Kafka's protocol"),
        ({"token": "t"}, "give user and password, or token alone"),
    ],
)
def test_options_that_iggy_has_no_use_for(given: dict[str, str], words: str) -> None:
    servers = {"penstock.bootstrap.servers": "iggy://localhost:8090", "topic": "s/t"}
    with pytest.raises(OptionError, match=words):
        parse({**servers, **GIVEN, **given}, streaming=False)
    with pytest.raises(OptionError, match="atLeastOnce is for pulsar:// and iggy"):
        parse({"penstock.bootstrap.servers": "h:1", "atLeastOnce": "true"}, streaming=False)


def test_the_server_is_asked_before_any_row(
    shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    given = {**servers(shared_server), **GIVEN}
    batch_writer({**given, "topic": topic}, VALUE, overwrite=False)
    with pytest.raises(SinkError, match=r"no such topic at .*: create it"):
        batch_writer({**given, "topic": "s/none"}, VALUE, overwrite=False)
    with pytest.raises(SinkError, match="Correct the options user and password"):
        batch_writer({**given, "topic": topic, "password": "no"}, VALUE, overwrite=False)
    away = {**given, "penstock.bootstrap.servers": "iggy://127.0.0.1:1", "topic": topic}
    with pytest.raises(UnreachableError, match="does not answer"):
        batch_writer(away, VALUE, overwrite=False)
    with tls_in_front_of(shared_server.iggy, tmp_path) as (address, certificate):
        over_tls = {**given, "penstock.bootstrap.servers": f"iggy+tls://{address}"}
        over_tls |= {"topic": topic, "tlsCaFile": str(certificate)}
        batch_writer(over_tls, VALUE, overwrite=False)
