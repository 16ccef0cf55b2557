"""Goal: no step of a pipeline loses a row or has one twice, whatever rows come, and in any order.

Method: random rows of random columns, some of them bad, late, doubles or unexpected, through random
steps by a real Spark, in batches of random sizes; each row has to be where the steps say.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from broker_process import BrokerProcess
from penstock.pipeline.jobs.batch_ends import batch_end
from penstock.pipeline.jobs.config import Deduplication, Otherwise, Parsing, PipelineConfig
from penstock.pipeline.jobs.gate import UNMET
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.jobs.settings import checkpoint_of, quarantine_config, table_config
from penstock.pipeline.source.offsets import TopicPartition, from_json
from penstock.pipeline.tables.interface import TableConfig, TableFormat
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.values.ddl import parse_ddl
from penstock.pipeline.values.options import OnParseError
from random_changes import filled
from random_rows import CONDITIONS, Row, Rows, random_rows
from spark_topics import create, fill
from table_readers import ROWS

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

EXAMPLES = 50
READERS = {
    TableFormat.PARQUET: ROWS[TableFormat.PARQUET][2],
    TableFormat.DELTA: ROWS[TableFormat.DELTA][0],
    TableFormat.ICEBERG: ROWS[TableFormat.ICEBERG][1],
}


class Place(NamedTuple):
    partition: int
    offset: int


@settings(
    max_examples=EXAMPLES,
    phases=[Phase.reuse, Phase.generate],  # To shrink one takes hundreds of runs of Spark.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=random_rows(), kind=st.sampled_from(TableFormat), batch_rows=st.integers(1, 30))
def test_each_row_is_where_the_steps_say(
    spark: SparkSession,
    shared_server: BrokerProcess,
    tmp_path: Path,
    rows: Rows,
    kind: TableFormat,
    batch_rows: int,
) -> None:
    topic = create(shared_server.kafka, rows.partitions)
    folder = tmp_path / uuid.uuid4().hex
    rejected = folder / "rejected"
    config = PipelineConfig(
        shared_server.kafka,
        (topic,),
        folder / "table",
        table_format=kind,
        parsing=Parsing(rows.ddl, OnParseError.DEAD_LETTER, rejected),
        expectations=rows.expectations,
        deduplication=rows.deduplication,
        batch_rows=batch_rows,
    )
    sent: dict[Place, Row | None] = {}
    for stage in rows.stages:
        for partition in range(rows.partitions):
            mine = [each for each in stage if each.partition == partition]
            first = sum(place.partition == partition for place in sent)
            sent |= {Place(partition, first + n): each.row for n, each in enumerate(mine)}
            values = [(None, each.value) for each in mine]
            fill(shared_server.kafka, topic, values, partition=partition)
        assert Run(config).run(lambda _: None).behind == 0
        check(config, sent, rejected)


def check(config: PipelineConfig, sent: dict[Place, Row | None], rejected: Path) -> None:
    assert config.parsing is not None
    columns = parse_ddl(config.parsing.schema)
    good = {place: row for place, row in sent.items() if row is not None}
    assert bad_ones(rejected) == sorted(set(sent) - set(good))
    unmet = {place: first_unmet(config, row) for place, row in good.items()}
    table, quarantine = found(table_config(config)), found(quarantine_config(config))
    for place, row in (table | quarantine).items():
        assert filled(row, columns) == good[place]
    wanted = {place for place, name in unmet.items() if name is None}
    held = {place for place, name in unmet.items() if is_quarantined(config, name)}
    assert set(table) <= wanted
    assert {place: row[UNMET] for place, row in quarantine.items()}.items() <= unmet.items()
    if config.deduplication is None:
        assert (set(table), set(quarantine)) == (wanted, held)
        return
    order = Order(config, good, config.deduplication)
    assert all(order.is_late(place) for place in held - set(quarantine))
    for place in wanted - set(table):
        assert order.is_late(place) or any(order.is_double(place, kept) for kept in table)
    assert not any(order.is_double_within(one, other) for one in table for other in table)


class Order:
    """In which batch each row came, and what follows from that and from its time."""

    def __init__(
        self, config: PipelineConfig, rows: dict[Place, Row], deduplication: Deduplication
    ) -> None:
        self._rows = rows
        self._by = deduplication.by
        self._within = timedelta(seconds=deduplication.within_seconds)
        (topic,) = config.topics
        checkpoint = checkpoint_of(config, open_table(table_config(config)))
        numbers = sorted(int(each.name) for each in (checkpoint / "offsets").glob("[0-9]*"))
        ends = [from_json(batch_end(checkpoint, number)) for number in numbers]
        self._batch = {
            place: next(
                number
                for number, end in zip(numbers, ends, strict=True)
                if place.offset < end.get(TopicPartition(topic, place.partition), 0)
            )
            for place in rows
        }

    def is_late(self, place: Place) -> bool:
        """Whether a batch before had a row that is newer by the whole time."""
        at = self._rows[place]["at"]
        return at is not None and any(
            row["at"] is not None
            and self._batch[other] < self._batch[place]
            and row["at"] >= at + self._within
            for other, row in self._rows.items()
        )

    def is_double(self, place: Place, kept: Place) -> bool:
        """Whether a row has the values of another one, which was there before or came with it."""
        mine, other = (self._values(each) for each in (place, kept))
        return None not in mine and mine == other and self._batch[kept] <= self._batch[place]

    def is_double_within(self, place: Place, kept: Place) -> bool:
        """Whether a row is a double, and so near to the other one that it has to go."""
        if place == kept or not self.is_double(place, kept):
            return False
        at, first = self._rows[place]["at"], self._rows[kept]["at"]
        if at is None or first is None:
            return self._batch[kept] == self._batch[place]
        return self._batch[kept] == self._batch[place] or at < first + self._within

    def _values(self, place: Place) -> list[Any]:
        return [self._rows[place][name] for name in self._by]


def found(table: TableConfig) -> dict[Place, Row]:
    """Return the rows of a table by where they come from; none where there is no table."""
    folder = Path(table.location)
    if not any(folder.glob("**/*.parquet")):
        return {}
    rows = READERS[table.format](str(folder)).to_pylist()
    by_place = {Place(row["_partition"], row["_offset"]): row for row in rows}
    assert len(by_place) == len(rows)
    return by_place


def bad_ones(folder: Path) -> list[Place]:
    if not folder.exists():
        return []
    rows = ds.dataset(folder, format="parquet").to_table().to_pylist()
    return sorted(Place(row["partition"], row["offset"]) for row in rows)


def first_unmet(config: PipelineConfig, row: Row) -> str | None:
    """Return the expectation that decides that a row does not stay."""
    for each in config.expectations:
        if each.otherwise is not Otherwise.KEEP and not CONDITIONS[each.that](row):
            return each.name
    return None


def is_quarantined(config: PipelineConfig, name: str | None) -> bool:
    otherwise = {each.name: each.otherwise for each in config.expectations}
    return name is not None and otherwise[name] is Otherwise.QUARANTINE
