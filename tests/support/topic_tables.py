"""Tables of topics as a pipeline's job leaves them, written without a Spark."""

from __future__ import annotations

import pyarrow as pa

from penstock.pipeline.jobs.config import PipelineConfig
from penstock.pipeline.jobs.recording import record
from penstock.pipeline.jobs.settings import source_options, table_config
from penstock.pipeline.source.cluster import KafkaCluster
from penstock.pipeline.source.offsets import from_json, to_json
from penstock.pipeline.source.options import parse
from penstock.pipeline.source.planning import Planner
from penstock.pipeline.source.schema import arrow_schema
from penstock.pipeline.source.tasks import read_task
from penstock.pipeline.tables.interface import StagedFile
from penstock.pipeline.tables.opening import open_table


def write_all(config: PipelineConfig, batch: int = 0) -> None:
    """Write a batch of all that the topics hold behind the batch before."""
    table = open_table(table_config(config))
    options = parse(source_options(config), streaming=True)
    stager = table.prepare(arrow_schema(options.columns))
    table.state.mkdir(parents=True, exist_ok=True)
    record(config)
    before = table.snapshot()
    files: list[StagedFile] = []
    with KafkaCluster(options) as cluster:
        planner = Planner(options, cluster)
        ends, ids = planner.latest(), planner.topic_ids()
        starts = planner.starting() if before is None else from_json(before.positions)
        for task in planner.tasks(starts, ends):
            rows: list[pa.RecordBatch] = list(read_task(task, options))
            place = (*task.range.source, task.range.start, task.range.end)
            files += [
                StagedFile(each.staged, *place, each.rows, each.size, n, each.values, each.footer)
                for n, each in enumerate(stager.write(rows, "q", batch))
            ]
    table.commit("q", batch, files, to_json(ends, ids))
