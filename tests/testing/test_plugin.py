"""The fixtures, as test-suites of others have them, and how a broker ends with its tests."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from penstock.testing import folder as folders
from pytest_runs import run, run_pytest

FIXTURES = """
import asyncio
import confluent_kafka
import pytest

seen = {}

def test_a_topic_of_its_own(penstock, penstock_topic):
    assert penstock_topic in penstock.topics()
    assert penstock_topic.startswith("test_a_topic_of_its_own-")
    penstock.produce(penstock_topic, "one")
    penstock.fail_next("produce", "INVALID_RECORD")
    seen["topic"] = penstock_topic

def test_nothing_is_left_of_it(penstock, penstock_topic):
    assert seen["topic"] not in penstock.topics()
    assert penstock_topic != seen["topic"]
    outcomes = []
    producer = confluent_kafka.Producer({"bootstrap.servers": penstock.kafka})
    producer.produce(penstock_topic, b"1", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(60)
    assert outcomes == [None]

@pytest.mark.parametrize("name", ["a/b c", "x" * 300])
def test_names_that_are_none_of_a_topic(penstock, penstock_topic, name):
    penstock.produce(penstock_topic, "one")

def test_several_topics(penstock, penstock_topic_factory):
    one, other = penstock_topic_factory(), penstock_topic_factory(partitions=3)
    assert penstock.produce(other, None, partition=2).partition == 2
    seen["topics"] = {one, other}

def test_a_namespace(penstock, penstock_namespace):
    penstock.produce(f"{penstock_namespace}/orders", "one")
    assert len(penstock.records(f"persistent://public/{penstock_namespace}/orders")) == 1
    assert not seen["topics"] & set(penstock.topics())
    seen["namespace"] = penstock_namespace

async def test_in_an_event_loop(penstock, penstock_topic):
    assert not [name for name in penstock.topics() if name.startswith(seen["namespace"])]
    waiting = asyncio.ensure_future(penstock.wait_for_async(penstock_topic))
    penstock.produce(penstock_topic, "one")
    assert len(await waiting) == 1
"""

ENDINGS = """
import logging
import os
import pathlib
import confluent_kafka
import pytest

@pytest.fixture(autouse=True)
def note(penstock):
    pathlib.Path(f"folder-{os.getpid()}").write_text(str(penstock.data_folder))

def test_that_fails(penstock, caplog):
    pulsar_port = penstock.pulsar.rpartition(":")[2]
    producer = confluent_kafka.Producer({"bootstrap.servers": f"127.0.0.1:{pulsar_port}"})
    tries = 600
    while tries and not caplog.messages:
        producer.poll(0.1)
        tries -= 1
    assert False, "on purpose"

@pytest.mark.timeout(1)
def test_that_hangs(penstock, penstock_topic):
    settings = {"bootstrap.servers": penstock.kafka, "group.id": "g"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([penstock_topic])
    while True:
        consumer.poll(0.1)

def test_that_goes_on(penstock, penstock_topic):
    assert penstock.produce(penstock_topic, "one").offset == 0
"""

INTERRUPTED = ENDINGS.replace('assert False, "on purpose"', "raise KeyboardInterrupt")


def test_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FIXTURES)
    done = run_pytest(tmp_path, "-o", "asyncio_mode=auto")
    assert "7 passed" in done.stdout, done.stdout
    assert done.returncode == 0


def folder_of_run(tmp_path: Path) -> Path:
    (note,) = tmp_path.glob("folder-*")
    return Path(note.read_text())


def test_tests_that_fail_and_hang_end_clean(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ENDINGS)
    done = run_pytest(tmp_path, "-o", "timeout_method=signal")
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "Captured log call" in done.stdout
    assert "a Kafka client connected to the Pulsar port" in done.stdout or (
        "WARNING  penstock.server.connection" in done.stdout
    )
    assert not folder_of_run(tmp_path).exists()


def test_an_interrupted_run_ends_clean(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(INTERRUPTED)
    done = run_pytest(tmp_path)
    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stdout
    assert not folder_of_run(tmp_path).exists()


def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ENDINGS)
    done = run_pytest(tmp_path, "-o", "timeout_method=thread")
    assert "Timeout" in done.stdout + done.stderr
    left = folder_of_run(tmp_path)
    assert left.exists()
    folders._remove_abandoned.cache_clear()
    folders._remove_abandoned(left.parent)
    assert left.exists(), "it is young: another process may be about to lock it"
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))
    folders._remove_abandoned.cache_clear()
    folders._remove_abandoned(left.parent)
    assert not left.exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    script = """
import os, pathlib
from penstock.testing import Penstock, folder
with Penstock() as broker:
    os.utime(broker.data_folder, (0, 0))
    folder._remove_abandoned.cache_clear()
    folder._remove_abandoned(broker.data_folder.parent)
    assert broker.data_folder.exists()
"""
    done = run(tmp_path, "-c", script)
    assert done.returncode == 0, done.stderr


def test_a_process_ends_that_never_stopped_its_broker(tmp_path: Path) -> None:
    script = """
from penstock.testing import Penstock
broker = Penstock()
broker.start()
broker.produce("orders", "one")
print(broker.data_folder)
"""
    done = run(tmp_path, "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(done.stdout.strip()).exists()


def test_the_plugin_costs_others_nothing(tmp_path: Path) -> None:
    script = """
import sys
import penstock.pytest_plugin
loaded = [each for each in sys.modules if each.startswith("penstock")]
assert loaded == ["penstock", "penstock.pytest_plugin"], loaded
assert "uvloop" not in sys.modules and "numpy" not in sys.modules
"""
    done = run(tmp_path, "-c", script)
    assert done.returncode == 0, done.stderr


def test_a_broker_needs_no_pytest(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["pytest"] = None
from penstock.testing import Penstock
with Penstock() as broker:
    broker.produce("orders", "one")
"""
    done = run(tmp_path, "-c", script)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_each_worker_has_a_broker(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pathlib, pytest\n"
        '@pytest.mark.parametrize("number", range(8))\n'
        "def test_it(penstock, penstock_topic, worker_id, number):\n"
        '    pathlib.Path(f"worker-{worker_id}").write_text(penstock.kafka)\n'
        "    assert len(penstock.topics()) == 1\n"
    )
    done = run_pytest(tmp_path, "-n", "2")
    assert "8 passed" in done.stdout, done.stdout
    assert len({each.read_text() for each in tmp_path.glob("worker-*")}) == 2
