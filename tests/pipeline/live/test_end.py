"""Where the live end of a table begins, and when that can't be known; without a Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker_process import BrokerProcess
from penstock.clients.kafka.client import KafkaClient
from penstock.pipeline.jobs.config import Parsing, PipelineConfig
from penstock.pipeline.jobs.settings import table_config
from penstock.pipeline.live.end import LiveEnd, live_end
from penstock.pipeline.live.errors import LiveTableError
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.values.options import OnParseError
from spark_topics import create, fill, numbered
from topic_tables import write_all


@pytest.fixture
def config(shared_server: BrokerProcess, tmp_path: Path) -> PipelineConfig:
    """A pipeline whose table holds all of its topic, 20 messages."""
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 20))
    config = PipelineConfig(shared_server.kafka, (topic,), tmp_path / "table")
    write_all(config)
    return config


def end_of(config: PipelineConfig) -> LiveEnd:
    return live_end(config, open_table(table_config(config)).snapshot())


def starts(end: LiveEnd) -> dict[str, Any]:
    (partitions,) = json.loads(end.options["startingOffsets"]).values()
    del partitions["id"]
    return dict(partitions)


def trim(config: PipelineConfig, offset: int) -> None:
    with KafkaClient(config.servers) as client:
        client.delete_records(config.topics[0], {0: offset})


def test_it_begins_where_the_table_ends(config: PipelineConfig) -> None:
    end = end_of(config)
    assert (starts(end), end.rows) == ({"0": 20}, 0)
    fill(config.servers, config.topics[0], numbered(20, 25))
    end = end_of(config)
    assert (starts(end), end.rows) == ({"0": 20}, 5)
    assert '"0": 25' in end.options["endingOffsets"]


def test_a_few_rows_are_one_task(config: PipelineConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark takes as much for a task that finds nothing as for thousands of rows."""
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    with KafkaClient(config.servers) as client:
        client.add_partitions(config.topics[0], 8)
    assert end_of(config).tasks == 1
    for rows, tasks in ((10_000, 1), (10_000, 2), (30_000, 3)):
        fill(config.servers, config.topics[0], numbered(0, rows), partition=3)
        assert end_of(config).tasks == tasks


def test_new_partitions_are_read_from_their_beginning(config: PipelineConfig) -> None:
    with KafkaClient(config.servers) as client:
        client.add_partitions(config.topics[0], 2)
    fill(config.servers, config.topics[0], numbered(0, 3), partition=1)
    end = end_of(config)
    assert (starts(end), end.rows) == ({"0": 20, "1": -2}, 3)


def test_of_no_table_all_is_the_live_end(config: PipelineConfig, tmp_path: Path) -> None:
    end = end_of(replace(config, table=tmp_path / "other"))
    assert (starts(end), end.rows) == ({"0": 0}, 20)
    end = end_of(replace(config, table=tmp_path / "other", starting_offsets="latest"))
    assert (starts(end), end.rows) == ({"0": 20}, 0)


def test_what_retention_took_from_the_log_is_in_the_table(config: PipelineConfig) -> None:
    trim(config, 20)
    fill(config.servers, config.topics[0], numbered(20, 22))
    assert end_of(config).rows == 2


def test_messages_that_are_gone_and_not_in_the_table_are_said(config: PipelineConfig) -> None:
    fill(config.servers, config.topics[0], numbered(20, 30))
    trim(config, 22)
    where = r"what came since the newest batch of .*table can't be read: .*-0 was to be read from "
    with pytest.raises(LiveTableError, match=where + "offset 20 up to 30, but holds 22 up to 30"):
        end_of(config)
    assert starts(end_of(replace(config, fail_on_data_loss=False))) == {"0": 20}


def test_a_topic_that_was_made_anew_is_said(config: PipelineConfig) -> None:
    (topic,) = config.topics
    with KafkaClient(config.servers) as client:
        client.delete_topic(topic)
        client.create_topic(topic, 1)
    fill(config.servers, topic, numbered(0, 30))
    with pytest.raises(LiveTableError, match="was deleted and made anew"):
        end_of(config)
    assert starts(end_of(replace(config, fail_on_data_loss=False))) == {"0": -2}


def test_a_table_of_another_topic_is_said(config: PipelineConfig) -> None:
    other = create(config.servers)
    with pytest.raises(LiveTableError, match=f"{config.topics[0]}-0 was read up to offset 20"):
        end_of(replace(config, topics=(other,)))


def test_a_broker_that_is_away_and_a_topic_that_is_none_are_said(config: PipelineConfig) -> None:
    with pytest.raises(LiveTableError, match="no topic named nosuch"):
        end_of(replace(config, topics=("nosuch",), table=config.table / "none"))
    with pytest.raises(LiveTableError, match=r"the broker at 127\.0\.0\.1:1 does not answer"):
        end_of(replace(config, servers="127.0.0.1:1"))


def test_a_read_writes_no_dead_letters(config: PipelineConfig, tmp_path: Path) -> None:
    parsing = Parsing("a INT", OnParseError.DEAD_LETTER, tmp_path / "dead")
    options = end_of(replace(config, parsing=parsing)).options
    assert "deadLetter" not in options
    assert options["onParseError"] == "drop"
