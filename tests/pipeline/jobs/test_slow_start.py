"""A machine that is too busy to start Python in the time that Spark gives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.errors import StreamingQueryException

from broker_process import BrokerProcess
from penstock.pipeline.jobs import job as jobs
from penstock.pipeline.jobs.config import PipelineConfig
from penstock.pipeline.jobs.job import STARTS_MAX, PipelineError, Run
from spark_topics import create, fill, numbered

SECONDS = 300
SLOW = "terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"


class Streams:
    """Streams that end with these errors, one after the other, and then one that ends well."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *errors: str) -> None:
        self._errors = list(errors)
        self.begun: list[MagicMock] = []
        monkeypatch.setattr(jobs, "open_session", MagicMock())
        monkeypatch.setattr(Run, "_start", lambda *_: self._begin())

    def _begin(self) -> MagicMock:
        query = MagicMock(lastProgress=None)
        query.awaitTermination.return_value = True
        if self._errors:
            query.awaitTermination.side_effect = StreamingQueryException(self._errors.pop(0))
        self.begun.append(query)
        return query


@pytest.fixture
def job(shared_server: BrokerProcess, tmp_path: Path) -> Run:
    config = PipelineConfig(
        shared_server.kafka, (create(shared_server.kafka),), tmp_path / "table", master="local[2]"
    )
    return Run(config)


def test_a_stream_whose_python_is_late_is_started_again(
    job: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    streams = Streams(monkeypatch, *[SLOW] * (STARTS_MAX - 1))
    job.run(lambda _: None)
    assert len(streams.begun) == STARTS_MAX
    assert all(each.stop.call_count == 1 for each in streams.begun)
    assert caplog.text.count("too busy for that (Python worker failed to connect back): the") == 4


def test_it_is_not_started_again_for_ever(job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch, *[SLOW] * (STARTS_MAX + 1))
    with pytest.raises(PipelineError, match=r"a Python .* ten seconds, and this machine is too"):
        job.run(lambda _: None)
    assert len(streams.begun) == STARTS_MAX


def test_it_is_not_started_again_where_it_is_to_stop(
    job: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(monkeypatch, SLOW)
    job.stop()
    job.run(lambda _: None)
    assert len(streams.begun) == 1


def test_what_fails_otherwise_is_not_started_again(
    job: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(monkeypatch, "terminated with exception: no room")
    with pytest.raises(PipelineError, match="no room"):
        job.run(lambda _: None)
    assert len(streams.begun) == 1


PYTHON = """#!/bin/sh
case "$*" in *streaming_source_runner*)
    if mkdir {marker} 2>/dev/null; then sleep 11; fi
esac
exec {python} "$@"
"""


@pytest.mark.soak
def test_spark_is_given_a_second_python(shared_server: BrokerProcess, tmp_path: Path) -> None:
    topic = create(shared_server.kafka)
    fill(shared_server.kafka, topic, numbered(0, 10))
    python = tmp_path / "python"
    python.write_text(PYTHON.format(marker=tmp_path / "slept", python=sys.executable))
    python.chmod(0o755)
    command = [sys.executable, "-m", "penstock", "pipeline", "run", topic, "--master", "local[2]"]
    command += ["--table", str(tmp_path / "table"), "--server", shared_server.kafka]
    process = subprocess.run(
        ["env", f"PYSPARK_PYTHON={python}", *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert process.returncode == 0, process.stderr
    assert "the stream is started again" in process.stderr
