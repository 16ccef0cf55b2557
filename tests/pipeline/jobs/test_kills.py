"""Jobs that are killed, with Spark and without it, again and again and at any moment.

With Spark, in each round one after the other ends: the workers in which its tasks run, the broker,
the driver with all of its processes. Topics have one partition, or many that share tasks and files.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from penstock.pipeline.tables.interface import TableConfig, TableFormat
from spark_processes import kill_driver, kill_workers
from spark_topics import Record, create, fill
from table_readers import ROWS as READERS
from table_readers import rows_seen

ROUNDS = 30
ROWS = 2000
"""That are new in each round."""
BATCH_ROWS = 300
KEYS = 150
"""A round's rows change each of them several times; all rows of one are in one partition."""
MANY = 60
"""Partitions that share some tasks."""
SECONDS = 300
LOOKS_MAX = 30_000
"""A job that has written nothing meanwhile hangs: where much else runs, looks are few too."""
FILES_MAX = 6
"""Up to so many files more are waited for before a round's last kill."""
SPARK = "local[2,4]"
"""Two tasks at once, each of which may fail three times."""

KINDS = [(kind, False) for kind in TableFormat]
KINDS += [(kind, True) for kind in (TableFormat.DELTA, TableFormat.ICEBERG)]


@pytest.mark.soak
@pytest.mark.timeout(ROUNDS * SECONDS)
@pytest.mark.parametrize("partitions", [1, MANY])
@pytest.mark.parametrize(("kind", "keyed"), KINDS)
def test_a_table_whose_job_is_killed_again_and_again_has_each_row_once(
    shared_server: BrokerProcess, tmp_path: Path, kind: TableFormat, keyed: bool, partitions: int
) -> None:
    kept = Kept(shared_server, tmp_path / "table", kind, keyed, partitions)
    killed = 0
    for _ in range(ROUNDS):
        kept.begin()
        try:
            if kept.has_written(FILES_MAX):
                kill_driver(kept.process)
                killed += 1
        finally:
            kept.end()
    assert killed > ROUNDS // 2
    kept.check()


@pytest.mark.soak
@pytest.mark.timeout(ROUNDS * SECONDS)
@pytest.mark.parametrize("partitions", [1, MANY])
@pytest.mark.parametrize(("kind", "keyed"), KINDS)
def test_a_table_of_spark_has_each_row_once_whoever_is_killed(
    server: BrokerProcess, tmp_path: Path, kind: TableFormat, keyed: bool, partitions: int
) -> None:
    kept = Kept(server, tmp_path / "table", kind, keyed, partitions, "--master", SPARK)
    killed: Counter[str] = Counter()
    for _ in range(ROUNDS):
        kept.begin()
        try:
            if kept.has_written(FILES_MAX // 3):
                killed["workers"] += kill_workers(kept.process) > 0
            if kept.has_written(FILES_MAX // 3):
                server.kill9()
                server.start()
                killed["broker"] += 1
            if kept.has_written(FILES_MAX // 3):
                kill_driver(kept.process)
                killed["driver"] += 1
        finally:
            kept.end()
    assert min(killed[each] for each in ("workers", "broker", "driver")) > ROUNDS // 2, killed
    kept.check()


class Kept:
    """A table, and the topic that a job keeps it up to date with."""

    def __init__(
        self,
        server: BrokerProcess,
        table: Path,
        kind: TableFormat,
        keyed: bool,
        partitions: int,
        *options: str,
    ) -> None:
        self._server = server
        self._topic = create(server.kafka, partitions)
        self._table = TableConfig(str(table), kind)
        self._options = ["--table-format", kind, *options]
        self._options += ["--upsert-by", "key"] if keyed else []
        self._keyed = keyed
        self._rows = 0
        self._written: list[list[Record]] = [[] for _ in range(partitions)]
        self._chance = random.Random(11)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def begin(self) -> None:
        """Write new rows, and start a job."""
        end = self._rows + ROWS
        new: list[list[Record]] = [[] for _ in self._written]
        for each in range(self._rows, end):
            key = each % KEYS
            new[key % len(new)].append((b"k%d" % key, b"v%d" % each))
        for partition, rows in enumerate(new):
            fill(self._server.kafka, self._topic, rows, partition=partition)
            self._written[partition] += rows
        self._rows = end
        self._process = self._job()

    def has_written(self, files: int) -> bool:
        """Return whether the job runs some time after it has written up to so many files more."""
        more = self._chance.randrange(files)
        self._wait(lambda written: self.process.poll() is not None or written > more)
        time.sleep(self._chance.random() / 10)
        return self.process.poll() is None

    def _wait(self, is_over: Callable[[int], bool]) -> None:
        """Wait as long as more files come; `is_over` is asked with how many have come."""
        before = seen = self._files()
        looks = 0
        while not is_over(len(seen - before)):
            assert looks < LOOKS_MAX, "the job hangs"
            time.sleep(0.005)
            files = self._files()
            looks = 0 if files != seen else looks + 1
            seen = files

    def end(self) -> None:
        """Leave nothing running."""
        if self.process.poll() is None:
            kill_driver(self.process)

    def check(self) -> None:
        """Catch up, and look at the rows."""
        self._process = self._job(self._rows)
        try:
            self._wait(lambda _: self.process.poll() is not None)
        finally:
            self.end()
        assert self.process.returncode == 0
        for reader in READERS[self._table.format]:
            seen = rows_seen(reader, self._table, ["partition", "offset", "key", "value"])
            assert sorted(tuple(row.values()) for row in seen) == self._expected(), reader

    def _expected(self) -> list[tuple[int, int, bytes | None, bytes | None]]:
        """Return the rows by their places, the newest of each key where there are keys."""
        found = []
        for partition, rows in enumerate(self._written):
            newest = {key: offset for offset, (key, _) in enumerate(rows)}
            found += [
                (partition, offset, key, value)
                for offset, (key, value) in enumerate(rows)
                if not self._keyed or newest[key] == offset
            ]
        return found

    def _files(self) -> set[Path]:
        return set(Path(self._table.location).glob("**/*.parquet"))

    def _job(self, batch_rows: int = BATCH_ROWS) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "penstock", "pipeline", "run", self._topic]
        command += ["--table", self._table.location, "--server", self._server.kafka]
        command += ["--batch-rows", str(batch_rows), *self._options]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
