"""Goal: Iggy's own server is read and written as Penstock's Iggy port is, over TLS too.

No registry has that server: `IGGY_SERVER` names one that was built.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from apache_iggy_server import OF_TODAY, ApacheIggyServer
from iggy_twins import ClientOfToday, Twin
from penstock.clients.access import Access, Password, Tls
from penstock.clients.iggy.client import IggyClient
from penstock.pipeline.jobs.config import PipelineConfig
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.sink.epochs.attempt import Attempt
from penstock.pipeline.sink.options import parse
from penstock.pipeline.sink.writing import write_task
from source_rows import rows_read

pytestmark = pytest.mark.soak

LOGIN = {"user": "iggy", "password": "iggy"}
PARTITIONS = 3


class Topic:
    """A topic of three partitions, written by the sink and read by the source."""

    def __init__(self, server: ApacheIggyServer) -> None:
        self._server = server
        stream = f"s{uuid.uuid4().hex[:8]}"
        twin = Twin(lambda: ClientOfToday(server.iggy, server.certificate), stream)
        twin.make_stream(twin.stream, {"many": PARTITIONS})
        twin.close()
        self.name = f"{stream}/many"
        self.servers = f"iggy://{server.iggy}"
        self.access = dict(LOGIN)
        if server.certificate is not None:
            self.servers = f"iggy+tls://{server.iggy}"
            self.access["tlsCaFile"] = str(server.certificate)
        self.given = {"penstock.bootstrap.servers": self.servers, **self.access}

    def write(self, first: int, end: int, **columns: pa.Array) -> None:
        values = [b"v%d" % number for number in range(first, end)]
        rows = pa.record_batch({"key": values, "value": values, **columns})
        options = parse({**self.given, "topic": self.name, "atLeastOnce": "true"}, streaming=True)
        write_task(iter([rows]), Attempt("w", first, 0, 0), options)

    def rows(self, **given: str) -> list[dict[str, Any]]:
        return rows_read(self.servers, self.name, **self.access, **given)

    def client(self) -> IggyClient:
        certificate = self._server.certificate
        tls = None if certificate is None else Tls(certificate.read_text())
        return IggyClient(self._server.iggy, Access(tls, Password("iggy", "iggy")))

    def holds(self, end: int) -> None:
        assert Counter(row["value"] for row in self.rows()) == {b"v%d" % n: 1 for n in range(end)}


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tls"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheIggyServer]:
    folder = tmp_path_factory.mktemp("iggy")
    with ApacheIggyServer(OF_TODAY, folder, tls=request.param) as server:
        yield server


@pytest.fixture
def topic(server: ApacheIggyServer) -> Topic:
    return Topic(server)


def test_rows_arrive_by_their_keys_and_are_read_once(topic: Topic) -> None:
    for first in range(0, 3000, 1000):
        topic.write(first, first + 1000)
    topic.holds(3000)
    rows = topic.rows(minPartitions="7")
    offsets = {(row["partition"], row["offset"]) for row in rows}
    assert len(offsets) == len(rows) == 3000
    assert {partition for partition, _ in offsets} == set(range(PARTITIONS))
    assert all(row["key"] == row["value"] for row in rows)


def test_a_range_is_read_from_the_middle_of_a_batch(topic: Topic) -> None:
    topic.write(0, 100, partition=pa.array([1] * 100, pa.int32()))
    rows = topic.rows(
        startingOffsets=f'{{"{topic.name}": {{"0": -2, "1": 17, "2": -2}}}}',
        endingOffsets=f'{{"{topic.name}": {{"0": -1, "1": 63, "2": -1}}}}',
    )
    assert [(row["offset"], row["value"]) for row in rows] == [
        (n, b"v%d" % n) for n in range(17, 63)
    ]


def test_what_is_sent_over_another_connection_is_no_message_of_before(topic: Topic) -> None:
    topic.write(0, 1, partition=pa.array([0], pa.int32()))
    with topic.client() as client:
        (batch,) = client.poll(*topic.name.split("/"), 0, 0, 1)
        for _ in range(3):
            client.send(*topic.name.split("/"), 0, 1, batch.body)
            client.close()
    assert len(topic.rows()) == 4


def test_a_pipeline_goes_on_behind_a_restart(
    topic: Topic, server: ApacheIggyServer, tmp_path: Path, no_spark: None
) -> None:
    config = PipelineConfig(
        topic.servers, (topic.name,), tmp_path, access=tuple(topic.access.items())
    )

    def run() -> int:
        return Run(config).run(lambda _: None).rows

    topic.write(0, 500)
    assert run() == 500
    server.restart()
    topic.write(500, 700)
    assert (run(), run()) == (200, 0)
    table = pq.read_table(list(tmp_path.glob("part-*.parquet")))
    assert Counter(table["value"].to_pylist()) == {b"v%d" % n: 1 for n in range(700)}
