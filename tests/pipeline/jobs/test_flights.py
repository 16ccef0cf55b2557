"""Pipelines over a year of real flights: their tables equal what is computed from the source.

Goal: nothing of what a pipeline promises is lost where it is all asked at once: values become
columns that change between runs, bad records, rows that meet no expectation, doubles, late rows.
Method: send the flights, run the pipeline's file, and have DuckDB compare table and source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.demo.flights import load_flights
from penstock.pipeline.jobs.definition import load
from penstock.pipeline.jobs.job import Progress, Run
from spark_topics import Record, create, fill

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

FLIGHTS = """
[read]
server = "{server}"
topics = ["{topic}"]
[parse]
schema = "{schema}"
on_error = "deadLetter"
dead_letter = "rejected"
[[expect]]
name = "has a tail number"
that = "tailnum IS NOT NULL"
otherwise = "quarantine"
[[expect]]
name = "goes somewhere"
that = "dest != origin"
otherwise = "drop"
[deduplicate]
by = ["id"]
time = "time_hour"
within = "48 hours"
[write]
table = "flights"
format = "iceberg"
[run]
batch_rows = 40_000
"""
OLDER = "id BIGINT, carrier STRING, origin STRING, dest STRING, tailnum STRING, time_hour TIMESTAMP"
FIRST = f"{OLDER}, distance INT"
SECOND = f"{OLDER}, distance BIGINT, air_time DOUBLE"

BAD_EVERY, TWICE_EVERY, LATE = 1_000, 50, 500

CHANGES = """
[read]
server = "{server}"
topics = ["{topic}"]
[parse]
schema = "op STRING, before STRUCT<{row}>, after STRUCT<{row}>"
[write]
table = "planes"
format = "delta"
mode = "upsert"
key = ["carrier", "flight"]
changes = "debezium"
[run]
batch_rows = 20_000
"""
CHANGED = 60_000
DELETED_EVERY = 97


def flights() -> pa.Table:
    """Return the flights in the order of their time, numbered."""
    table = load_flights().sort_by([("time_hour", "ascending"), ("sched_dep_time", "ascending")])
    return table.append_column("id", pa.array(range(table.num_rows)))


def run(folder: Path, name: str, text: str, **names: str) -> Progress:
    file = folder / f"{name}.toml"
    file.write_text(text.format(**names))
    return Run(load(file)).run(lambda _: None)


def sent(rows: list[dict[str, Any]]) -> list[Record]:
    """Return rows as JSON, some of them twice, and some as something else."""
    found: list[Record] = []
    for row in rows:
        value = json.dumps(row).encode()
        if row["id"] % BAD_EVERY == 7:
            value = value.replace(b'"distance": ', b'"distance": "far", "was": ')
        found += [(b"%d" % row["id"], value)] * (2 if row["id"] % TWICE_EVERY == 0 else 1)
    return found


def test_flights_are_a_table(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    source = flights()
    rows = source.to_pylist()
    half = len(rows) // 2
    late = [row | {"id": row["id"] + 1_000_000} for row in rows[:LATE]]
    late = [row for row in late if row["id"] % BAD_EVERY != 7]
    topic = create(shared_server.kafka, 2)
    names = {"server": shared_server.kafka, "topic": topic}
    unmet = 0
    for part, schema in ((rows[:half], FIRST), (rows[half:] + late, SECOND)):
        for partition in (0, 1):
            records = sent(part[partition::2])
            fill(shared_server.kafka, topic, records, partition=partition)
        progress = run(tmp_path, "flights", FLIGHTS, schema=schema, **names)
        assert progress.behind == 0
        unmet += progress.unmet["has a tail number"]
    assert progress.late == len(sent(late))
    expected = duckdb.sql(f"""
        select id, carrier, origin, dest, tailnum, time_hour::timestamptz as time_hour,
               distance::bigint as distance,
               case when id >= {half} then air_time::double end as air_time
        from source where id % {BAD_EVERY} != 7 and tailnum is not null and dest != origin
    """).to_arrow_table()
    found = StaticTable.from_metadata(str(tmp_path / "flights")).scan().to_arrow()
    assert same(expected, found, "id")
    bad = ds.dataset(tmp_path / "rejected", format="parquet").to_table()
    assert bad.num_rows == sum(1 for row in rows if row["id"] % BAD_EVERY == 7)
    quarantine = StaticTable.from_metadata(str(tmp_path / "flights-quarantine")).scan().to_arrow()
    assert quarantine.num_rows == unmet
    without = source.filter(pc.is_null(source["tailnum"]))["id"].to_pylist()
    assert {each for each in without if each % BAD_EVERY != 7} <= set(quarantine["id"].to_pylist())


def changes(rows: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield envelopes of a table that has the newest flight of each number, with its number."""
    there: dict[Any, dict[str, Any]] = {}
    for number, row in enumerate(rows):
        key = (row["carrier"], row["flight"])
        before = there.get(key)
        if before is not None and number % DELETED_EVERY == 0:
            del there[key]
            yield number, {"op": "d", "before": before, "after": None}
            continue
        there[key] = row
        yield number, {"op": "u" if before else "c", "before": before, "after": row}


def test_changes_of_flights_are_a_table(
    spark: SparkSession, shared_server: BrokerProcess, tmp_path: Path
) -> None:
    names = ("carrier", "flight", "origin", "dest", "time_hour", "tailnum")
    source = flights().slice(0, CHANGED)
    rows = source.select(list(names)).to_pylist()
    topic = create(shared_server.kafka)
    row = "carrier: STRING, flight: BIGINT, origin: STRING, dest: STRING, time_hour: TIMESTAMP"
    envelopes = list(changes(rows))
    half = len(envelopes) // 2
    for part, columns in (
        (envelopes[:half], row),
        (envelopes[half:], f"{row}, tailnum: STRING"),
    ):
        records: list[Record] = []
        for _, envelope in part:
            of = envelope["after"] or envelope["before"]
            key = f"{of['carrier']}{of['flight']}".encode()
            records.append((key, json.dumps(envelope).encode()))
            if envelope["op"] == "d":
                records.append((key, None))
        fill(shared_server.kafka, topic, records)
        place = {"server": shared_server.kafka, "topic": topic}
        assert run(tmp_path, "planes", CHANGES, row=columns, **place).behind == 0
    log = pa.table(  # noqa: F841  # by its name
        {
            "number": [number for number, _ in envelopes],
            "op": [envelope["op"] for _, envelope in envelopes],
            **{
                name: [(each["after"] or each["before"])[name] for _, each in envelopes]
                for name in names
            },
        }
    )
    expected = duckdb.sql(f"""
        select carrier, flight, origin, dest, time_hour::timestamptz as time_hour,
               case when number >= {half} then tailnum end as tailnum
        from log qualify row_number() over (partition by carrier, flight order by number desc) = 1
            and op != 'd'
    """).to_arrow_table()
    found = DeltaTable(tmp_path / "planes").to_pyarrow_table()
    assert same(expected, found, "carrier, flight")


def same(expected: pa.Table, found: pa.Table, key: str) -> bool:
    """Compare all rows, in the order of their keys, by the columns of what is expected."""
    columns = ", ".join(expected.column_names)
    differing = duckdb.sql(
        f"(select {columns} from expected except all select {columns} from found) union all "
        f"(select {columns} from found except all select {columns} from expected) order by {key}"
    ).fetchall()
    assert differing[:5] == []
    return expected.num_rows == found.num_rows > 0
