"""Rows with typed columns, read as Spark's tasks do and without a Spark."""

from __future__ import annotations

from typing import Any

from broker_process import BrokerProcess
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.tasks import read_task
from penstock.pipeline.values.reading import resolve_reading


def read(server: BrokerProcess, topic: str, **options: str) -> list[dict[str, Any]]:
    """Read a topic with the schemas of its Pulsar broker."""
    given = {"penstock.bootstrap.servers": server.kafka, "schema": server.pulsar, **options}
    if "subscribePattern" not in options:
        given["subscribe"] = topic
    found = parse(given, streaming=False)
    assert found.values is not None
    typed = resolve_reading(found.values, found.topics)
    with KafkaCluster(found) as cluster:
        planner = Planner(found, cluster)
        tasks = planner.tasks(*planner.batch())
    batches = [batch for task in tasks for batch in read_task(task, found, typed)]
    return [row for batch in batches for row in batch.to_pylist()]
