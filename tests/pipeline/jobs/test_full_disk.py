"""Goal: a disk that gets full at whichever step of a run costs no row and doubles none.

Method: a small file system has the table, its state and its checkpoint. Before each run so much of
it is filled that some step or other finds no room; then there is room again. `soak` goes on longer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from penstock.pipeline.jobs.config import PipelineConfig, WriteMode
from penstock.pipeline.jobs.job import PipelineError, Run
from penstock.pipeline.tables.interface import TableConfig, TableError, TableFormat
from small_disk import SmallDisk, small_disk
from spark_topics import create, fill
from table_readers import READERS, offsets_seen

pytestmark = pytest.mark.usefixtures("no_spark")

DISK_MIB = 32
"""In thirty rounds a keyed Iceberg table has 9 MiB: metadata of a hundred commits stays."""
ROWS = 40
"""That are new in each round."""
KEYS = 15
ROOM_MAX = 128 << 10
"""A run finds room for all that it writes in about as much."""

KINDS = [(kind, False) for kind in TableFormat]
KINDS += [(kind, True) for kind in (TableFormat.DELTA, TableFormat.ICEBERG)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_MIB << 20) as mounted:
        yield mounted


@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("kind", "keyed"), KINDS)
def test_each_row_is_there_once_when_there_is_room_again(
    shared_server: BrokerProcess,
    disk: SmallDisk,
    capfd: pytest.CaptureFixture[str],
    kind: TableFormat,
    keyed: bool,
    rounds: int,
) -> None:
    server, table = shared_server.kafka, disk.folder / "table"
    topic = create(server)
    by_key = {"mode": WriteMode.UPSERT, "key": ("key",)} if keyed else {}
    config = PipelineConfig(server, (topic,), table, table_format=kind, batch_rows=KEYS, **by_key)
    draw = random.Random(3)
    refused = 0
    for number in range(rounds):
        first, end = number * ROWS, (number + 1) * ROWS
        records = [(b"k%d" % (each % KEYS), os.urandom(400)) for each in range(first, end)]
        fill(server, topic, records)
        with disk.with_room(draw.randrange(ROOM_MAX)):
            refused += not runs(config)
        assert runs(config)
        expected = list(range(end - KEYS if keyed else 0, end))
        for reader in READERS[kind]:
            assert offsets_seen(reader, TableConfig(str(table), kind)) == expected, number
    assert refused > rounds // 2
    assert "Traceback" not in capfd.readouterr().err


def runs(config: PipelineConfig) -> bool:
    """Return whether a run got to its end; it says that there is no room if not."""
    try:
        Run(config).run(lambda _: None)
    except (PipelineError, TableError) as error:
        if "full" not in str(error):
            raise
        return False
    return True
