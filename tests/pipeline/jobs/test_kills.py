"""Jobs that are killed, with Spark and without it, again and again and at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from penstock.pipeline.tables.interface import TableConfig, TableFormat
from spark_topics import create, fill
from table_readers import READERS, offsets_seen

KILLS = 30
ROWS = 2000
"""That are new in each round."""
KEYS = 150
"""A round's rows change each of them several times."""
SECONDS = 300
FILES_MAX = 6
"""Up to so many files more are waited for before the kill."""

KINDS = [(kind, False) for kind in TableFormat]
KINDS += [(kind, True) for kind in (TableFormat.DELTA, TableFormat.ICEBERG)]


@pytest.mark.soak
@pytest.mark.timeout(KILLS * SECONDS)
@pytest.mark.parametrize(("kind", "keyed"), KINDS)
@pytest.mark.parametrize("master", [None, "local[2]"])
def test_a_table_whose_job_is_killed_again_and_again_has_each_row_once(
    shared_server: BrokerProcess,
    tmp_path: Path,
    kind: TableFormat,
    keyed: bool,
    master: str | None,
) -> None:
    topic = create(shared_server.kafka)
    table = tmp_path / "table"
    chance = random.Random(11)
    options = ["--table-format", kind, *(("--upsert-by", "key") if keyed else ())]
    options += ["--master", master] if master else []  # without one, little is read without Spark
    killed = 0
    for start in range(0, KILLS * ROWS, ROWS):
        rows = [(b"k%d" % (each % KEYS), b"v%d" % each) for each in range(start, start + ROWS)]
        fill(shared_server.kafka, topic, rows)
        process = job(shared_server, topic, table, options)
        killed += kill_after(process, table, chance.randrange(FILES_MAX), chance.random() / 10)
    assert killed > KILLS // 2
    assert job(shared_server, topic, table, options).wait(SECONDS) == 0
    end = KILLS * ROWS
    for reader in READERS[kind]:
        seen = offsets_seen(reader, TableConfig(str(table), kind))
        assert seen == list(range(end - KEYS if keyed else 0, end)), reader


def job(
    server: BrokerProcess, topic: str, table: Path, options: list[str]
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock", "pipeline", "run", topic, "--table", str(table)]
    command += ["--server", server.kafka, "--batch-rows", "300", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def kill_after(process: subprocess.Popen[bytes], table: Path, files: int, seconds: float) -> bool:
    """Kill a job some time after it has written so many files; return whether it was running."""
    before = set(table.glob("**/*.parquet"))
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and len(set(table.glob("**/*.parquet")) - before) <= files:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True
