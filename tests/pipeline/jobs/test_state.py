from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.pipeline.jobs import state
from penstock.pipeline.jobs.state import JobState, Phase, Status


def begun(folder: Path) -> tuple[JobState, Status]:
    job = JobState(folder / "state")
    status = Status.of_this_process(("orders",), "orders-table")
    job.begin(status)
    return job, status


def test_what_a_run_wrote_is_read(tmp_path: Path) -> None:
    job, status = begun(tmp_path)
    assert job.read() == status
    newer = replace(status, phase=Phase.RUNNING, rows=10, behind=3, unmet={"even": 2})
    job.write(newer)
    assert job.read() == newer


def test_where_no_run_was_there_is_no_status(tmp_path: Path) -> None:
    assert JobState(tmp_path / "none").read() is None


def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path) -> None:
    job, status = begun(tmp_path)
    child = subprocess.Popen(["true"])
    child.wait()
    job.write(replace(status, phase=Phase.RUNNING, pid=child.pid))
    found = job.read()
    assert found is not None
    assert found.phase is Phase.KILLED
    job.write(replace(status, phase=Phase.ENDED, pid=child.pid))
    assert job.read() == replace(status, phase=Phase.ENDED, pid=child.pid)


def test_a_run_of_another_machine_is_believed(tmp_path: Path) -> None:
    job, status = begun(tmp_path)
    job.write(replace(status, host="elsewhere", pid=os.getpid() + (1 << 22)))
    found = job.read()
    assert found is not None
    assert found.phase is Phase.STARTING


def test_a_status_of_another_version_is_said_to_be(tmp_path: Path) -> None:
    job, _ = begun(tmp_path)
    (job.folder / "status.json").write_text('{"phase": "running", "topics": []}')
    with pytest.raises(ValueError, match="is of another version"):
        job.read()


def test_a_request_to_stop_is_for_the_run_that_goes_on(tmp_path: Path) -> None:
    job, status = begun(tmp_path)
    assert not job.is_to_stop()
    job.ask_to_stop()
    assert job.is_to_stop()
    job.begin(status)
    assert not job.is_to_stop()


def test_the_lines_of_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "BATCHES_BYTES", 100)
    job, _ = begun(tmp_path)
    for batch in range(50):
        job.add_batch({"batch": batch})
    files = sorted(job.folder.glob("batches*"))
    assert [file.name for file in files] == ["batches.1.jsonl", "batches.jsonl"]
    assert all(file.stat().st_size < 200 for file in files)
    assert json.loads(files[1].read_text().splitlines()[-1]) == {"batch": 49}
