"""Rows that the tasks of a batch read, without a Spark."""

from __future__ import annotations

from typing import Any

from penstock.pipeline.clusters.opening import open_cluster
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.tasks import read_task


def rows_read(servers: str, topic: str, **given: str) -> list[dict[str, Any]]:
    """Plan a batch and read all of its tasks, one after the other."""
    options = {"penstock.bootstrap.servers": servers, **given}
    if topic:
        options["subscribe"] = topic
    return rows_of(options)


def rows_of(given: dict[str, str]) -> list[dict[str, Any]]:
    """Plan a batch of these options and read all of its tasks, one after the other."""
    options = parse(given, streaming=False)
    with open_cluster(options) as cluster:
        planner = Planner(options, cluster)
        tasks = planner.tasks(*planner.batch())
    batches = [batch for task in tasks for batch in read_task(task, options)]
    return [row for batch in batches for row in batch.to_pylist()]
