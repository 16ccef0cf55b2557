"""Topics that are deleted and made anew while a stream knows offsets of them, without a Spark."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from broker_process import BrokerProcess
from patience import wait_until
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.source.offsets import from_json, to_json, topic_ids
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import DataLossError
from penstock.pipeline.source.readers import StreamReader
from spark_topics import create, fill, numbered


@pytest.fixture
def topic(shared_server: BrokerProcess) -> str:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 20))
    return topic


@pytest.fixture
def strict(shared_server: BrokerProcess, topic: str) -> Iterator[StreamReader]:
    made = reader(shared_server, topic)
    yield made
    made.stop()


@pytest.fixture
def lenient(shared_server: BrokerProcess, topic: str) -> Iterator[StreamReader]:
    made = reader(shared_server, topic, failOnDataLoss="false")
    yield made
    made.stop()


def reader(server: BrokerProcess, topic: str, **options: str) -> StreamReader:
    given = {"penstock.bootstrap.servers": server.kafka, "subscribe": topic, **options}
    return StreamReader(parse({"startingOffsets": "earliest", **given}, streaming=True))


def make_anew(server: BrokerProcess, topic: str, rows: int) -> None:
    with KafkaClient(server.kafka) as client:
        client.delete_topic(topic)
        client.create_topic(topic, 1)
    fill(server.kafka, topic, numbered(0, rows))


def first_batch(stream: StreamReader) -> dict[str, Any]:
    """Return its end as Spark would hand it back from a checkpoint."""
    stored = json.dumps(stream.latestOffset(stream.initialOffset(), ReadAllAvailable()))
    return dict(json.loads(stored))


def rows(stream: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    read = map(stream.read, stream.partitions(start, end))
    return sum(batch.num_rows for batch in itertools.chain.from_iterable(read))


def is_stored(partition: Any) -> bool:
    """Whether the files are there that are to be read."""
    (task,) = partition.tasks
    return task.folder is not None and (task.data_folder.path / task.folder).exists()


def test_a_longer_topic_of_that_name_ends_the_stream(
    shared_server: BrokerProcess, topic: str, strict: StreamReader
) -> None:
    end = first_batch(strict)
    make_anew(shared_server, topic, 50)
    again = reader(shared_server, topic)
    with pytest.raises(DataLossError, match=f"{topic}-0 .* offset 20 and is gone: .* made anew"):
        again.latestOffset(end, ReadAllAvailable())
    again.stop()


def test_it_is_read_from_its_beginning_where_that_is_allowed(
    shared_server: BrokerProcess, topic: str, lenient: StreamReader
) -> None:
    start = first_batch(lenient)
    make_anew(shared_server, topic, 50)
    again = reader(shared_server, topic, failOnDataLoss="false")
    end = again.latestOffset(start, ReadAllAvailable())
    assert topic_ids(end) != topic_ids(start)
    assert rows(again, start, end) == 50
    assert again.latestOffset(end, ReadAllAvailable()) == end
    again.stop()


def test_it_is_noticed_between_the_plan_of_a_batch_and_its_tasks(
    shared_server: BrokerProcess, topic: str, strict: StreamReader, lenient: StreamReader
) -> None:
    start, end = strict.initialOffset(), first_batch(strict)
    make_anew(shared_server, topic, 50)
    with pytest.raises(DataLossError, match="made anew"):
        strict.partitions(start, end)
    assert rows(lenient, start, end) == 0
    again = reader(shared_server, topic, failOnDataLoss="false")
    after = again.latestOffset(end, ReadAllAvailable())
    assert rows(again, end, after) == 50
    again.stop()


@pytest.mark.parametrize("mode", ["auto", "log", "wire"])
@pytest.mark.parametrize("is_anew", [False, True])
def test_it_is_noticed_by_the_tasks_of_a_batch(
    shared_server: BrokerProcess,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    mode: str,
    is_anew: bool,
) -> None:
    planned = []
    for lossy in ("true", "false"):
        stream = reader(shared_server, topic, readMode=mode, failOnDataLoss=lossy)
        planned.append((stream, stream.partitions(stream.initialOffset(), first_batch(stream))))
    if is_anew:
        make_anew(shared_server, topic, 50)
    else:
        with KafkaClient(shared_server.kafka) as client:
            client.delete_topic(topic)
    what = f"{topic}-0 was to be read from offset 0 up to 20 and is gone: .* was deleted meanwhile"
    (strict, tasks), (lenient, same_tasks) = planned
    for task in tasks:
        wait_until(lambda task=task: not is_stored(task))  # Files go a little later.
        with pytest.raises(DataLossError, match=what):
            list(strict.read(task))
    assert [batch for task in same_tasks for batch in lenient.read(task)] == []
    assert re.search(f"{what}; failOnDataLoss is false", caplog.text)
    strict.stop()
    lenient.stop()


def test_a_checkpoint_of_an_older_version_is_gone_on_with(
    shared_server: BrokerProcess, topic: str, strict: StreamReader
) -> None:
    start = to_json(from_json(first_batch(strict)))
    assert topic_ids(start) == {}
    fill(shared_server.kafka, topic, numbered(20, 25))
    again = reader(shared_server, topic)
    end = again.latestOffset(start, ReadAllAvailable())
    assert rows(again, start, end) == 5
    assert topic_ids(end) == topic_ids(first_batch(strict))
    again.stop()
