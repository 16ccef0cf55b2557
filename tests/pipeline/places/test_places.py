"""Where the source, the sink and pipelines have to work: one program is run in each place.

`make interop-spark` makes what these need, and runs them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import spark_place
from broker_process import BrokerProcess, environment
from penstock.clients.kafka.client import KafkaClient
from spark_cluster import connect_server, standalone_cluster
from spark_environments import ENVIRONMENTS, SOURCE, Environment
from spark_place import ADDED, Place
from spark_topics import create, fill

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SPARK42, PYTHON312, PYTHON313 = ENVIRONMENTS
SECONDS = 1500
ROWS = 300
WITH_PENSTOCK = {"PYTHONPATH": str(SOURCE)}


def python_of(place: Environment) -> Path:
    if not place.is_ready:
        pytest.skip(
            f"build/places/{place.name} is not there, or of other versions: make interop-spark"
        )
    return place.interpreter


@pytest.fixture
def topic(shared_server: BrokerProcess) -> str:
    """A topic of 300 numbers in two partitions; the topic with `-copy` behind its name is empty."""
    name = create(shared_server.kafka, 2)
    for partition in range(2):
        first = partition * ROWS // 2
        numbers = range(first, first + ROWS // 2)
        records = [(b"k%d" % each, b'{"id": %d}' % each) for each in numbers]
        fill(shared_server.kafka, name, records, partition=partition, headers=[("from", b"here")])
    with KafkaClient(shared_server.kafka) as client:
        client.create_topic(f"{name}-copy", 2)
    return name


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(python_of(PYTHON312), folder, WITH_PENSTOCK) as address:
        yield address


def run(place: Environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python of a place, which knows Penstock."""
    python = str(python_of(place))
    surroundings = {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        [python, *arguments],
        env=environment() | surroundings | WITH_PENSTOCK,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def penstock(place: Environment, *arguments: str | Path) -> Any:
    """Run a command; return what it prints for programs."""
    done = run(place, "-m", "penstock", *map(str, arguments), "--format", "json")
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def tried(
    place: Environment,
    way: tuple[str, str],
    server: BrokerProcess,
    topic: str,
    folder: Path,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    copy, table = f"{topic}-copy", folder / "table"
    given = Place(*way, server.kafka, topic, copy, str(table), str(folder / "checkpoint"), **more)
    return run(place, spark_place.__file__, json.dumps(asdict(given)))


def check(
    place: Environment,
    way: tuple[str, str],
    server: BrokerProcess,
    topic: str,
    folder: Path,
    **more: Any,
) -> None:
    """Run the program in a place, and hold what it found against what is there."""
    command = ("pipeline", "run", topic, "--server", server.kafka, "--table", folder / "table")
    assert penstock(place, *command)["rows"] == ROWS
    done = tried(place, way, server, topic, folder, **more)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.strip().rpartition("\n")[2])
    ids, added = list(range(ROWS)), list(range(1000, 1000 + ADDED))
    assert found == {
        "spark": found["spark"],
        "counts": {"0": ROWS // 2, "1": ROWS // 2},
        "headers": [["from", "here"]],
        "filtered": ROWS // 2 - 100,
        "total": sum(ids),
        "copied": sorted([*ids, *ids, *added]),
        "live": ids + added,
        "view": ids + added,
        "by_options": ids + added,
        "refused": True,
    }
    assert found["spark"].startswith(place.spark)


@pytest.mark.parametrize("place", ENVIRONMENTS, ids=lambda each: each.name)
def test_a_local_spark(
    place: Environment, shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    check(place, ("master", "local[2]"), shared_server, topic, tmp_path)


def test_spark_connect_with_a_server_of_its_own(
    shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    check(PYTHON313, ("remote", "local[2]"), shared_server, topic, tmp_path)


def test_spark_connect_by_its_setting_alone(
    shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    place, settings = ("master", "local[2]"), {"spark.api.mode": "connect"}
    check(PYTHON312, place, shared_server, topic, tmp_path, settings=settings)


def test_spark_connect_with_a_server_of_others(
    shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    python = python_of(PYTHON312)
    with connect_server(python, tmp_path / "server", WITH_PENSTOCK) as address:
        check(PYTHON312, ("remote", address), shared_server, topic, tmp_path)


@pytest.mark.parametrize("mode", ["log", "wire"])
def test_a_standalone_cluster(
    cluster: str, shared_server: BrokerProcess, topic: str, tmp_path: Path, mode: str
) -> None:
    check(PYTHON312, ("master", cluster), shared_server, topic, tmp_path, mode=mode)


DEFINITION = """
[read]
server = "{server}"
topics = ["{topic}"]
starting_offsets = '{{"{topic}": {{"0": 100, "1": 0}}}}'

[parse]
schema = "id BIGINT"

[[expect]]
name = "even"
that = "id % 2 = 0"
otherwise = "quarantine"

[write]
table = "numbers"

[run]
master = "{master}"
"""


def test_pipelines_on_a_standalone_cluster(
    cluster: str, shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    server = shared_server.kafka
    table = tmp_path / "plain"
    place = ("--server", server, "--table", table, "--master", cluster)
    assert penstock(PYTHON312, "pipeline", "run", topic, *place)["rows"] == ROWS
    assert pq.read_table(list(table.glob("part-*"))).num_rows == ROWS
    file = tmp_path / "numbers.toml"
    file.write_text(DEFINITION.format(server=server, topic=topic, master=cluster))
    assert penstock(PYTHON312, "pipeline", "run", file)["rows"] == 100
    done = run(PYTHON312, "-m", "penstock", "pipeline", "backfill", str(file), "--json-lines")
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)["rows"] == 50


def test_logs_are_audited_and_exported_by_a_standalone_cluster(
    cluster: str, shared_server: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    master = ("--master", cluster)
    folder = shared_server.data_folder
    logs = penstock(PYTHON312, "audit", "--data-folder", folder, *master)
    assert sum(log["records"] for log in logs if log["topic"] == f"public/default/{topic}") == ROWS
    assert not any(log["damage"] for log in logs)
    place = ("--server", shared_server.kafka, "--to", tmp_path / "export")
    assert penstock(PYTHON312, "export", topic, *place, *master)["records"] == ROWS


@pytest.mark.parametrize("master", ["bogus", "spark://127.0.0.1:1"])
def test_a_master_that_is_none_is_an_error_in_words(
    shared_server: BrokerProcess, topic: str, tmp_path: Path, master: str
) -> None:
    place = ("--server", shared_server.kafka, "--table", str(tmp_path / "table"))
    command = ("-m", "penstock", "pipeline", "run", topic, *place, "--master", master)
    done = run(PYTHON312, *command)
    assert done.returncode == 1
    assert f"Spark does not start with the master {master}: " in done.stderr
    assert "Traceback" not in done.stderr
