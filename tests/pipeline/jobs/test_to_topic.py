"""Pipelines from topic to topic, by a real Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.jobs.config import Expectation, Otherwise, PipelineConfig, TopicTarget
from penstock.pipeline.jobs.definition import load
from penstock.pipeline.jobs.job import PipelineError, Run
from source_rows import rows_read
from spark_topics import committed, create, fill

FILE = """
[read]
server = "{server}"
topics = ["{topic}"]
[parse]
schema = "id BIGINT, at TIMESTAMP"
[[expect]]
name = "below five"
that = "id IS NULL OR id < 5"
otherwise = "quarantine"
[write]
topic = "{target}"
state = "state"
"""


def order(number: int) -> bytes:
    return json.dumps({"id": number, "at": f"2026-01-01T00:00:00.{number:06}Z"}).encode()


def test_what_stays_of_a_topic_is_written_to_another_once(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    address = shared_server.kafka
    topic, target = create(address, 2), create(address)
    first = [(b"k%d" % number, order(number)) for number in range(8)]
    fill(address, topic, [*first, (b"k1", None)], headers=[("trace", b"1"), ("trace", None)])
    file = tmp_path / "orders.toml"
    file.write_text(FILE.format(server=address, topic=topic, target=target))
    progress = Run(load(file)).run(lambda _: None)
    assert (progress.rows, progress.unmet) == (6, {"below five": 3})
    found = committed(address, target)
    assert [each.key for each in found] == [b"k0", b"k1", b"k2", b"k3", b"k4", b"k1"]
    assert [json.loads(each.value)["id"] for each in found[:5] if each.value] == [0, 1, 2, 3, 4]
    assert json.loads(found[3].value or b"")["at"].startswith("2026-01-01T00:00:00.000003")
    assert found[5].value is None
    assert list(found[0].headers) == [("trace", b"1"), ("trace", None)]
    before = committed(address, topic)
    assert [each.timestamp_ms for each in found[:5]] == [each.timestamp_ms for each in before[:5]]
    quarantine = ds.dataset(tmp_path / "state-quarantine", format="parquet").to_table()
    assert sorted(quarantine["id"].to_pylist()) == [5, 6, 7]
    # As a crash leaves it after the epoch's commit: Spark has no note of it, and does it again.
    (tmp_path / "state" / "_checkpoint" / "commits" / "0").unlink()
    fill(address, topic, [(b"new", order(0))], partition=1)
    Run(load(file)).run(lambda _: None)
    assert [each.key for each in committed(address, target)] == [e.key for e in found] + [b"new"]


@pytest.mark.soak
def test_the_target_may_be_at_a_server_of_pulsar(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    address = shared_server.kafka
    topic, target = create(address, 2), create(address, 2)
    rows = [(b"k%d" % number, order(number)) for number in range(4)]
    fill(address, topic, rows)
    file = tmp_path / "orders.toml"
    text = FILE.format(server=address, topic=topic, target=target)
    file.write_text(f'{text}server = "{shared_server.pulsar}"\n')
    for _ in range(2):
        Run(load(file)).run(lambda _: None)
        found = rows_read(shared_server.pulsar, target)
        assert sorted((row["key"], json.loads(row["value"])["id"]) for row in found) == [
            (key, number) for number, (key, _) in enumerate(rows)
        ]
        # As a crash leaves it after the epoch's commit.
        (tmp_path / "state" / "_checkpoint" / "commits" / "0").unlink()


def test_a_batch_that_fails_leaves_nothing_open_in_its_topic(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    address = shared_server.kafka
    topic, target = create(address, 2), create(address)
    for partition in (0, 1):
        fill(address, topic, [(b"key", b"%d" % each) for each in range(10)], partition=partition)
    # The other task is over by then: one that Spark ends late may begin behind the abort.
    late = "reflect('java.lang.Thread', 'sleep', 3000L) = 'never'"
    that = f"partition = 0 OR offset < 9 OR {late}"
    expectation = Expectation("small", that, Otherwise.FAIL)
    config = PipelineConfig(
        address,
        (topic,),
        tmp_path / "state",
        target_topic=TopicTarget(target, address),
        expectations=(expectation,),
    )
    with pytest.raises(PipelineError, match="expectation 'small'"):
        Run(config).run(lambda _: None)
    fill(address, target, [(b"seen", b"at once")])
    assert [each.key for each in committed(address, target)] == [b"seen"]


def test_a_topic_that_can_not_be_written_is_named_before_spark_starts(tmp_path: Path) -> None:
    target = TopicTarget("checked", "127.0.0.1:1")
    config = PipelineConfig("127.0.0.1:1", ("orders",), tmp_path / "state", target_topic=target)
    with pytest.raises(PipelineError, match=r"the broker at 127\.0\.0\.1:1 does not answer"):
        Run(config).run(lambda _: None)
