"""Goal: what an operator does by accident ends in a clear error before any row is written, or goes
on with each row once.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy.engine.default import DefaultDialect

from broker_process import BrokerProcess
from penstock.pipeline.jobs.checkpoint import Checkpoint
from penstock.pipeline.jobs.checks import CheckError, look, look_at_table
from penstock.pipeline.jobs.config import Expectation, Otherwise, PipelineConfig
from penstock.pipeline.jobs.job import PipelineError, Run
from penstock.pipeline.jobs.settings import quarantine_config
from penstock.pipeline.jobs.state import JobState
from penstock.pipeline.tables.interface import (
    StagedFile,
    TableConfig,
    TableError,
    TableFormat,
    state_folder,
)
from penstock.pipeline.tables.opening import open_table
from penstock.pipeline.tables.staging import Stager
from spark_topics import create, fill, numbered
from table_readers import READERS, offsets_seen
from taking_back import expire_newer, take_back

pytestmark = pytest.mark.usefixtures("no_spark")


class Job:
    """A pipeline of one topic, with its checkpoint beside its table."""

    def __init__(self, server: BrokerProcess, folder: Path, kind: TableFormat) -> None:
        self.server, self.folder = server.kafka, folder
        self.topic = create(self.server)
        self.table = folder / "table"
        self.checkpoint = folder / "checkpoint"
        self.config = self.of(self.topic, kind)
        self._written = 0

    def of(self, topic: str, kind: TableFormat) -> PipelineConfig:
        place: dict[str, Any] = {"checkpoint": self.checkpoint, "table_format": kind}
        return PipelineConfig(self.server, (topic,), self.table, **place)

    def more(self) -> None:
        fill(self.server, self.topic, numbered(self._written, self._written + 10))
        self._written += 10

    def run(self, *, is_foretold: bool = True) -> int:
        """Run, which a check foretells that changes nothing."""
        before = contents(self.folder)
        said = self.checked()
        assert contents(self.folder) == before
        rows, failed = 0, None
        try:
            rows = Run(self.config).run(lambda _: None).rows
        except (TableError, PipelineError) as error:
            failed = error
        if is_foretold:
            # Of a file that is damaged each look may find something else at first.
            assert said == (None if failed is None else str(failed).partition(" (")[0])
        if failed is not None:
            raise failed
        return rows

    def checked(self) -> str | None:
        try:
            newest = look_at_table(self.config)
            look(self.config, None if newest is None else newest.end)
        except CheckError as error:
            return str(error).partition(" (")[0]
        return None

    def holds(self, rows: int) -> None:
        table = TableConfig(str(self.table), self.config.table_format)
        for reader in READERS[self.config.table_format]:
            assert offsets_seen(reader, table) == list(range(rows))


def contents(folder: Path) -> dict[str, bytes | None]:
    found = folder.rglob("*")
    return {str(each): each.read_bytes() if each.is_file() else None for each in found}


@pytest.fixture(params=list(TableFormat))
def job(request: pytest.FixtureRequest, shared_server: BrokerProcess, tmp_path: Path) -> Job:
    """A job that has run once, and has rows to read."""
    made = Job(shared_server, tmp_path, request.param)
    made.more()
    assert made.run() == 10
    made.more()
    return made


def test_a_table_that_is_removed_is_not_begun_anew_in_its_middle(job: Job) -> None:
    shutil.rmtree(job.table)
    for _ in range(2):
        with pytest.raises(TableError, match=r"the table .*/table that has it is gone: put it"):
            job.run()
    assert not list(job.table.rglob("*.parquet"))
    shutil.rmtree(job.checkpoint)
    assert job.run() == 20
    job.holds(20)


def test_a_table_of_another_format_is_not_said_to_be_gone(job: Job) -> None:
    kept_as = job.config.table_format
    for kind in set(TableFormat) - {kept_as}:
        job.config = job.of(job.topic, kind)
        with pytest.raises(TableError, match=f"/table is kept as {kept_as}: set that as the form"):
            job.run()
    job.config = job.of(job.topic, kept_as)
    assert job.run() == 10
    job.holds(20)


@pytest.mark.parametrize("job", [TableFormat.PARQUET], indirect=True)
def test_a_table_is_not_gone_that_has_no_row_yet(job: Job, tmp_path: Path) -> None:
    job.topic, job.table, job.checkpoint = create(job.server), tmp_path / "new", tmp_path / "none"
    job.config = job.of(job.topic, TableFormat.PARQUET)
    for _ in range(2):
        assert job.run() == 0
    fill(job.server, job.topic, numbered(0, 10))
    assert job.run() == 10


@pytest.mark.parametrize("job", [TableFormat.PARQUET], indirect=True)
def test_another_topic_of_the_same_table_is_named(job: Job) -> None:
    job.config = job.of(create(job.server), TableFormat.PARQUET)
    with pytest.raises(PipelineError, match=f"{job.topic}-0 was .* and is not to be read now"):
        job.run()
    job.config = job.of(job.topic, TableFormat.PARQUET)
    assert job.run() == 10
    job.holds(20)


@pytest.mark.parametrize("job", [TableFormat.PARQUET], indirect=True)
@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("metadata", b"", "metadata does not say whose checkpoint it is"),
        ("metadata", b"[]", "metadata does not say whose checkpoint it is"),
        ("offsets/0", b"", "offsets/0 does not say where its batch ends"),
        ("offsets/0", b"v1\n{}\n\xff", "offsets/0 is no text"),
        ("offsets/0", b"v1\n{}\n{no", "offsets/0 does not say where its batch ends"),
        ("offsets/0", b"v1\n{}\n[1]", "offsets/0 does not say where its batch ends"),
        ("offsets/0", b'v1\n{}\n{"t": {"0": "7"}}', "offsets/0 does not say where its batch ends"),
        ("offsets/0", b'v1\n{}\n{"t": {"0": -1}}', "has offsets that no topic has"),
        ("offsets/0", b'v1\n{}\n{"t": {"0": %d}}' % (1 << 63), "has offsets that no topic has"),
    ],
)
def test_a_damaged_checkpoint_is_named(job: Job, file: str, content: bytes, words: str) -> None:
    (job.checkpoint / file).write_bytes(content)
    with pytest.raises(PipelineError, match=f"{words}: the checkpoint is damaged"):
        job.run()
    job.holds(10)


@pytest.mark.parametrize("job", [TableFormat.PARQUET], indirect=True)
def test_a_checkpoint_that_lost_its_name_is_not_given_another_one(job: Job) -> None:
    metadata = job.checkpoint / "metadata"
    whole = metadata.read_bytes()
    metadata.unlink()
    for _ in range(2):
        with pytest.raises(PipelineError, match=r"metadata is missing, .*: the checkpoint is dam"):
            job.run()
    metadata.write_bytes(whole)
    assert job.run() == 10
    job.holds(20)


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("offsets", [{}, {"0": 3}, {"0": 10, "1": 0}, {"0": 999}])
def test_a_checkpoint_that_was_changed_is_not_gone_on_from(
    job: Job, offsets: dict[str, int], is_done: bool
) -> None:
    note = job.checkpoint / "offsets" / "0"
    *above, written = note.read_text().splitlines()
    (known,) = json.loads(written).values()
    changed = json.dumps({job.topic: {**offsets, "id": known["id"]}} if offsets else {})
    note.write_text("\n".join([*above, changed]))
    if not is_done:
        (job.checkpoint / "commits" / "0").unlink()
    with pytest.raises(TableError, match=r"batch 0 of .* was committed with other offsets"):
        job.run()
    job.holds(10)
    note.write_text("\n".join([*above, written]))
    job.run()
    job.holds(20)


def test_an_older_table_is_not_gone_on_with(job: Job, tmp_path: Path) -> None:
    older, newest = tmp_path / "older", tmp_path / "newest"
    shutil.copytree(job.table, older)
    shutil.copytree(job.checkpoint, tmp_path / "checkpoint-of-older")
    assert job.run() == 10
    job.more()
    shutil.copytree(job.table, newest)
    put_back(older, job.table)
    for _ in range(2):
        with pytest.raises(TableError, match=r"says that batch 1 is done, and .* does not hold it"):
            job.run()
    put_back(newest, job.table)
    assert job.run() == 10
    job.holds(30)
    put_back(older, job.table)
    put_back(tmp_path / "checkpoint-of-older", job.checkpoint)
    assert job.run() == 20
    job.holds(30)
    job.more()
    put_back(older, job.table)
    job.config = replace(job.config, fail_on_data_loss=False)
    assert job.run() == 10


@pytest.mark.parametrize("job", [TableFormat.DELTA], indirect=True)
def test_an_emptied_commit_of_delta_is_noticed(job: Job) -> None:
    assert job.run() == 10
    newest = max((job.table / "_delta_log").glob("*.json"))
    whole = newest.read_bytes()
    newest.write_bytes(b"")
    with pytest.raises(TableError, match=r"says that batch 1 is done, .* commit was emptied"):
        job.run()
    newest.write_bytes(whole)
    assert job.run() == 0
    job.holds(20)


def test_a_table_without_its_first_batch_is_not_gone_on_with(job: Job, tmp_path: Path) -> None:
    job.topic, job.table, job.checkpoint = create(job.server), tmp_path / "new", tmp_path / "none"
    job.config = job.of(job.topic, job.config.table_format)
    assert job.run() == 0
    shutil.copytree(job.table, tmp_path / "older")
    job.more()
    assert job.run() == 10
    put_back(tmp_path / "older", job.table)
    with pytest.raises(TableError, match=r"says that batch 1 is done, and .* does not hold it"):
        job.run()


@pytest.mark.parametrize("job", [TableFormat.DELTA, TableFormat.ICEBERG], indirect=True)
def test_a_table_that_another_engine_took_back_is_not_gone_on_with(
    job: Job, tmp_path: Path
) -> None:
    kind = job.config.table_format
    shutil.copytree(job.checkpoint, tmp_path / "checkpoint-of-older")
    assert job.run() == 10
    job.more()
    take_back(job.table, kind, 0)
    for _ in range(2):
        with pytest.raises(TableError, match=r"batch 1 is done, .* was taken back to an older"):
            job.run()
    take_back(job.table, kind, 1)
    assert job.run() == 10
    job.holds(30)
    take_back(job.table, kind, 0)
    put_back(tmp_path / "checkpoint-of-older", job.checkpoint)
    assert job.run() == 20
    job.holds(30)
    job.more()
    take_back(job.table, kind, 0)
    job.config = replace(job.config, fail_on_data_loss=False)
    assert job.run() == 10
    job.more()
    job.config = replace(job.config, fail_on_data_loss=True)
    assert job.run() == 10


@pytest.mark.parametrize("job", [TableFormat.ICEBERG], indirect=True)
def test_a_table_that_was_taken_back_is_told_though_nothing_is_left_of_what_was_newer(
    job: Job,
) -> None:
    assert job.run() == 10
    take_back(job.table, TableFormat.ICEBERG, 0)
    expire_newer(job.table)
    for _ in range(2):
        with pytest.raises(TableError, match=r"batch 1 is done, .* was taken back to an older"):
            job.run()


@pytest.mark.parametrize("job", [TableFormat.DELTA, TableFormat.ICEBERG], indirect=True)
def test_a_quarantine_table_that_was_taken_back_is_told_too(job: Job) -> None:
    expectation = Expectation("even", "offset % 2 = 0", Otherwise.QUARANTINE)
    job.config = replace(job.config, expectations=(expectation,))
    quarantine = open_table(quarantine_config(job.config))
    schema = pa.schema([pa.field("offset", pa.int64())])
    for batch in range(2):
        rows = pa.record_batch([[batch]], schema=schema)
        query = Checkpoint(job.checkpoint).query()
        (piece,) = quarantine.prepare(schema).write([rows], query, batch)
        place = ("quarantine", 0, batch, batch + 1)
        file = StagedFile(piece.staged, *place, 1, piece.size, footer=piece.footer)
        quarantine.commit(query, batch, [file])
    assert job.checked() is None
    take_back(Path(quarantine.place.uri), job.config.table_format, 0)
    assert re.match(r".*/table-quarantine was taken back to an older version", job.checked() or "")
    with pytest.raises(TableError, match=r"/table-quarantine was taken back to an older version"):
        job.run()


def put_back(copy: Path, place: Path) -> None:
    shutil.rmtree(place)
    shutil.copytree(copy, place)


def test_data_files_that_are_gone_are_named(
    job: Job, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (data,) = job.table.rglob("*.parquet")
    away = data.rename(tmp_path / "away")
    assert job.run(is_foretold=False) == 10
    state = JobState(state_folder(job.table)).read()
    assert state is not None
    assert state.warning is not None
    for said in (caplog.text, state.warning):
        assert f"1 data files of {job.table} are gone with their rows (" in said
        assert data.name in said
    with pytest.raises(CheckError, match=data.name):
        look_at_table(job.config)
    away.rename(data)
    look_at_table(job.config)
    job.holds(20)


DAMAGED = {
    TableFormat.PARQUET: ("_penstock/commits/*.json", "_penstock/columns.arrow"),
    TableFormat.DELTA: ("_delta_log/*.json",),
    TableFormat.ICEBERG: ("metadata/*.json", "metadata/snap-*.avro", "metadata/*-m0.avro"),
}


def test_what_a_table_is_known_by_is_said_to_be_damaged(job: Job) -> None:
    for pattern in DAMAGED[job.config.table_format]:
        path = max(job.table.glob(pattern))
        whole = path.read_bytes()
        path.write_bytes(whole[:50])
        with pytest.raises(TableError, match=rf"of {job.table}.* is missing or damaged .*put back"):
            job.run()
        path.write_bytes(whole)
    assert job.run() == 10
    job.holds(20)


@pytest.mark.parametrize("job", [TableFormat.PARQUET], indirect=True)
@pytest.mark.parametrize("where", [(JobState, "write"), (Stager, "write")])
def test_a_full_disk_is_said_to_be_one(
    job: Job, monkeypatch: pytest.MonkeyPatch, where: tuple[type, str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patching:
        patching.setattr(*where, full)
        with pytest.raises(PipelineError, match="the disk of the table, or of its checkpoint, is"):
            job.run(is_foretold=False)
    assert job.run() == 10
    job.holds(20)


@pytest.mark.parametrize("job", [TableFormat.ICEBERG], indirect=True)
def test_a_catalogue_without_room_is_said_to_have_none(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(dialect: DefaultDialect, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("UPDATE"):
            raise sqlite3.OperationalError("database or disk is full")
        execute(dialect, cursor, statement, *rest)

    execute: Any = DefaultDialect.do_execute
    with monkeypatch.context() as patching:
        patching.setattr(DefaultDialect, "do_execute", full)
        with pytest.raises(TableError, match=r"refuses a commit: .*database or disk is full$"):
            job.run(is_foretold=False)
    assert job.run() == 10
    job.holds(20)
