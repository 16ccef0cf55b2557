"""Pipelines whose table is in an object store or in a catalogue, by their files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import deltalake
import pytest

from broker_process import BrokerProcess
from object_store import KEY, object_store
from penstock.pipeline.jobs import small
from penstock.pipeline.jobs.config import DefinitionError
from penstock.pipeline.jobs.definition import load
from penstock.pipeline.jobs.job import Run
from penstock.pipeline.jobs.settings import quarantine_config, table_config
from penstock.pipeline.jobs.state import JobState, Phase
from penstock.pipeline.tables.interface import TableError, state_folder
from spark_topics import create, fill, numbered

DEFINITION: Final = """
[read]
server = "{server}"
topics = ["{topic}"]

[write]
{write}
"""


def defined(folder: Path, write: str, server: str = "127.0.0.1:1", topic: str = "orders") -> Path:
    file = folder / "orders.toml"
    file.write_text(DEFINITION.format(server=server, topic=topic, write=write))
    return file


def test_a_table_in_an_object_store_is_brought_up_to_date(
    shared_server: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "is_open", lambda: False)
    topic = create(shared_server.kafka)
    with object_store() as store:
        settings = {"AWS_ENDPOINT_URL": store.address, "AWS_REGION": "us-east-1"}
        settings |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "anything"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        write = 'table = "s3://bucket/sales/orders"\nformat = "delta"'
        config = load(defined(tmp_path, write, shared_server.kafka, topic))
        for start in (0, 100):
            fill(shared_server.kafka, topic, numbered(start, start + 100))
            assert Run(config).run(lambda _: None).rows == 100
        options = {"AWS_ALLOW_HTTP": "true"}
        rows = deltalake.DeltaTable("s3://bucket/sales/orders", storage_options=options)
        assert sorted(rows.to_pyarrow_table()["offset"].to_pylist()) == list(range(200))
        status = JobState(state_folder(tmp_path / "orders-state")).read()
        assert status is not None
        assert (status.phase, status.target) == (Phase.ENDED, "s3://bucket/sales/orders")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        with pytest.raises(TableError, match="the store says InvalidAccessKeyId"):
            Run(config).run(lambda _: None)


def test_where_a_table_lies_is_read(tmp_path: Path) -> None:
    config = load(
        defined(
            tmp_path,
            'table = "s3://bucket/orders"\nstate = "kept"\nformat = "iceberg"\n'
            'catalog = "http://127.0.0.1:8181"',
        )
    )
    table = table_config(config)
    assert table.location == config.target == "s3://bucket/orders"
    assert table.catalog == "http://127.0.0.1:8181"
    assert table.home == str(tmp_path / "kept")
    quarantine = quarantine_config(config)
    assert quarantine.location == "s3://bucket/orders-quarantine"
    assert quarantine.home == str(tmp_path / "kept-quarantine")


@pytest.mark.parametrize(
    ("write", "says"),
    [
        ('table = "s3://bucket/orders"', 'write.format must be "delta" or "iceberg"'),
        ('table = "orders"\ncatalog = "http://x"', "write.catalog must be left out"),
        ('table = "orders"\nstate = "kept"', "write.state must be left out"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, write: str, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        load(defined(tmp_path, write))
