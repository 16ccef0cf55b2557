"""Debezium's envelopes by a pipeline's file: the table is the database's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.jobs.checks import CheckError, look_at_steps
from penstock.pipeline.jobs.definition import load
from penstock.pipeline.jobs.job import Run
from spark_topics import Record, create, fill

ROW = "id: BIGINT, price: DOUBLE"
FILE = """
[read]
server = "{server}"
topics = ["{topic}"]
[parse]
schema = "{schema}"
[[expect]]
name = "costs something"
that = "op IS NULL OR op = 'd' OR after.price > 0"
otherwise = "quarantine"
[write]
table = "orders"
format = "delta"
mode = "upsert"
key = ["id"]
changes = "debezium"
[run]
batch_rows = 4
"""
PLAIN = f"before STRUCT<{ROW}>, after STRUCT<{ROW}>, op STRING"


def row(key: int, price: float) -> dict[str, float]:
    return {"id": key, "price": price}


def envelope(before: dict[str, float] | None, after: dict[str, float] | None) -> Record:
    operation = "u" if before and after else "c" if after else "d"
    change = {"op": operation, "before": before, "after": after}
    of = (after or before or {})["id"]
    return json.dumps({"id": of}).encode(), json.dumps({"payload": change}).encode()


def defined(folder: Path, server: BrokerProcess, topic: str, schema: str) -> Path:
    file = folder / "orders.toml"
    file.write_text(FILE.format(server=server.kafka, topic=topic, schema=schema))
    return file


def test_a_table_follows_a_database(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    topic = create(shared_server.kafka)
    changes = [
        *(envelope(None, row(key, 1.0)) for key in range(5)),
        envelope(row(1, 1.0), row(1, 2.5)),
        envelope(row(2, 1.0), None),
        (b'{"id": 2}', None),
        envelope(row(3, 1.0), row(33, 1.0)),
        envelope(row(4, 1.0), row(4, -1.0)),
    ]
    fill(shared_server.kafka, topic, changes)
    lines: list[Mapping[str, Any]] = []
    config = load(defined(tmp_path, shared_server, topic, f"payload STRUCT<{PLAIN}>"))
    progress = Run(config, lines.append).run(lambda _: None)
    table = DeltaTable(tmp_path / "orders").to_pyarrow_table().sort_by("id")
    assert table.to_pylist() == [row(0, 1.0), row(1, 2.5), row(4, 1.0), row(33, 1.0)]
    assert progress.unmet == {"costs something": 1}
    stored = (tmp_path / "orders" / "_penstock" / "batches.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in stored] == lines
    assert [line["batch"] for line in lines] == [0, 1, 2]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ("op STRING, after STRUCT<id: BIGINT>", "no op STRING beside before and after"),
        (PLAIN.replace("id:", "number:"), "key 'id' is none of the columns number, price"),
    ],
)
def test_a_schema_that_is_no_envelope_is_refused_before_a_run(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path, schema: str, error: str
) -> None:
    topic = create(shared_server.kafka)
    config = load(defined(tmp_path, shared_server, topic, schema))
    with pytest.raises(CheckError, match=error):
        look_at_steps(config)
    assert not (tmp_path / "orders").exists()
