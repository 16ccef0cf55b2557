"""Goal: an import is the same log in the end, whoever is killed in whichever moment.

Method: a process of its own writes small batches. Once it has come to an offset that is drawn, it
ends by kill -9, or the broker does; then it is run again. What is there in the end is exported.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import import_run
from broker_process import BrokerProcess
from penstock.clients.kafka.client import LATEST, KafkaClient, KafkaError
from penstock.pipeline.logs.exporting import Exporting
from spark_in_process import InProcess
from spark_topics import create, fill, numbered

RECORDS = 6_000
SECONDS = 240


def export(address: str, topic: str, folder: Path) -> list[object]:
    with Exporting(address, [topic], folder) as exporting:
        exporting.run(lambda: cast("SparkSession", InProcess()), lambda done, total: None)
    files = sorted(folder.glob("topic=*/partition=*/*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def written(address: str, topic: str) -> int:
    with KafkaClient(address) as client:
        try:
            return client.list_offsets({(topic, 0): LATEST})[topic, 0] or 0
        except (KafkaError, OSError):  # The topic is yet to be made, or the broker is away.
            return 0


def start(address: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, import_run.__file__, address, str(folder)])


def until(address: str, topic: str, offset: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while written(address, topic) < offset and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.soak)])
def test_an_import_outlives_kill_9(server: BrokerProcess, tmp_path: Path, rounds: int) -> None:
    address, topic = server.kafka, create(server.kafka)
    fill(address, topic, numbered(0, RECORDS))
    with KafkaClient(address) as client:
        client.delete_records(topic, {0: 11})
        before = export(address, topic, tmp_path / "export")
        client.delete_topic(topic)
    draw = random.Random(7)
    for number in range(rounds):
        process = start(address, tmp_path / "export")
        until(address, topic, draw.randrange(RECORDS * number // rounds + 20, RECORDS), process)
        if number % 2:
            server.kill9()
            server.start()
            assert process.wait(SECONDS) == 0
        else:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(SECONDS)
    assert start(address, tmp_path / "export").wait(SECONDS) == 0
    assert export(address, topic, tmp_path / "again") == before
