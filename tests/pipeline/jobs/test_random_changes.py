"""Goal: whatever a database's table has been through, the table that follows it has its rows.

Method: random histories of random columns that change between runs, as Debezium says them, in
batches of random sizes, without a Spark.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from broker_process import BrokerProcess
from penstock.pipeline.jobs.config import Parsing, PipelineConfig, WriteMode
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.tables.interface import ChangeForm, TableError, TableFormat
from random_changes import History, Stage, filled, histories
from spark_topics import create, fill
from table_readers import ROWS

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

EXAMPLES = 200
READERS = {
    TableFormat.DELTA: ROWS[TableFormat.DELTA][0],
    TableFormat.ICEBERG: ROWS[TableFormat.ICEBERG][1],
}
"""Not pyiceberg itself, to which a list of structs is empty where it is null."""


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize("kind", READERS)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories(), batch_rows=st.integers(1, 9))
def test_a_table_follows_a_database_through_anything(
    shared_server: BrokerProcess,
    tmp_path: Path,
    kind: TableFormat,
    history: History,
    batch_rows: int,
) -> None:
    topic = create(shared_server.kafka, history.partitions)
    table = tmp_path / uuid.uuid4().hex
    for stage in history.stages:
        send(shared_server, topic, stage)
        config = PipelineConfig(
            shared_server.kafka,
            (topic,),
            table,
            table_format=kind,
            parsing=Parsing(stage.ddl),
            mode=WriteMode.UPSERT,
            key=tuple(history.keys),
            changes=ChangeForm.DEBEZIUM,
            batch_rows=batch_rows,
        )
        try:
            assert Run(config).run(lambda _: None).behind == 0
        except TableError as error:
            assert "pyiceberg can't tell a new field" in str(error)  # noqa: PT017  # one of many
            reject()
        found = [filled(row, stage.schema) for row in READERS[kind](str(table)).to_pylist()]
        assert in_order(found, history.keys) == in_order(stage.table, history.keys)


def send(server: BrokerProcess, topic: str, stage: Stage) -> None:
    for partition in {each.partition for each in stage.messages}:
        records = [(each.key, each.value) for each in stage.messages if each.partition == partition]
        fill(server.kafka, topic, records, partition=partition)


def in_order(rows: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [row[name] for name in keys])
