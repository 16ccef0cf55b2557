"""Small partitions that share a task: each row once and in order, as of partitions that do not."""

from __future__ import annotations

import pickle
from collections import defaultdict
from unittest.mock import Mock

import pytest

from broker_process import BrokerProcess
from penstock.clients.kafka import connection as connections
from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.readers import BatchReader, TaskPartition
from penstock.pipeline.source.tasks import read_tasks
from spark_topics import create, fill, numbered

PARTITIONS = 12


@pytest.mark.parametrize("mode", ["log", "wire"])
def test_each_row_comes_once_and_in_order(
    shared_server: BrokerProcess, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    topic = create(shared_server.kafka, PARTITIONS)
    for partition in range(PARTITIONS):
        fill(shared_server.kafka, topic, numbered(0, partition), partition=partition)
    given = {"kafka.bootstrap.servers": shared_server.kafka, "subscribe": topic, "readMode": mode}
    reader = BatchReader(parse(given, streaming=False))
    parts = [pickle.loads(pickle.dumps(each)) for each in reader.partitions()]
    assert [type(part) for part in parts] == [TaskPartition] * len(parts)
    assert 1 < len(parts) < PARTITIONS // 2
    offsets: dict[int, list[int]] = defaultdict(list)
    for part in parts:
        for batch in reader.read(part):
            for row in batch.to_pylist():
                assert row["value"] == b"v%d" % row["offset"]
                offsets[row["partition"]].append(row["offset"])
    assert offsets == {each: list(range(each)) for each in range(1, PARTITIONS)}


def test_a_task_of_many_ranges_connects_as_often_as_one_of_one_range(
    shared_server: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create(shared_server.kafka, PARTITIONS)
    for partition in range(PARTITIONS):
        fill(shared_server.kafka, topic, numbered(0, 2), partition=partition)
    given = {"kafka.bootstrap.servers": shared_server.kafka, "subscribe": topic}
    options = parse({**given, "readMode": "wire"}, streaming=False)
    with open_cluster(options) as cluster:
        planner = Planner(options, cluster)
        tasks = planner.tasks(*planner.batch())
    assert len(tasks) == PARTITIONS
    connect = Mock(wraps=connections.connect)
    monkeypatch.setattr(connections, "connect", connect)
    assert sum(batch.num_rows for batch in read_tasks(tasks[:1], options)) == 2
    once = connect.call_count
    connect.reset_mock()
    assert sum(batch.num_rows for batch in read_tasks(tasks, options)) == 2 * PARTITIONS
    assert connect.call_count == once > 0
