"""Small partitions that share a task: each row once and in order, as of partitions that do not."""

from __future__ import annotations

import pickle
from collections import defaultdict

import pytest

from broker_process import BrokerProcess
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.readers import BatchReader, TaskPartition
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
