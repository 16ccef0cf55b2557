"""The Python beside a stream, against a listener as Spark's, and a runner that takes its time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.pipeline import stream_python
from penstock.pipeline.session import _WORKER_PYTHON
from penstock.pipeline.stream_python import RUNNER

SECONDS = 60
RUNNER_TEXT = r"""
import os, socket, sys
sys.stdin.readline()  # what takes long
for address in (os.environ["PYTHON_WORKER_FACTORY_SOCK_PATH"], sys.argv_elsewhere):
    late = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    late.settimeout(15)
    late.connect(address)
    late.settimeout(None)
    file = late.makefile("rwb")
    file.write(b"here\n")
    file.flush()
    assert file.readline() == b"welcome\n"
"""


def listener(place: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(SECONDS)
    made.bind(str(place))
    made.listen()
    return made


def greeted(listening: socket.socket) -> socket.socket:
    connection, _ = listening.accept()
    connection.settimeout(SECONDS)
    return connection


@pytest.mark.parametrize("by", ["module", "script"])
def test_it_is_connected_before_its_runner_is_imported(tmp_path: Path, by: str) -> None:
    runner = tmp_path.joinpath(*RUNNER.split(".")).with_suffix(".py")
    runner.parent.mkdir(parents=True)
    for folder in (runner.parent, *runner.parent.parents[:2]):
        (folder / "__init__.py").touch()
    elsewhere = tmp_path / "elsewhere"
    runner.write_text(RUNNER_TEXT.replace("sys.argv_elsewhere", repr(str(elsewhere))))
    commands = {
        "module": [sys.executable, "-m", stream_python.__name__],
        "script": [str(_WORKER_PYTHON), "-m", RUNNER],
    }
    place = tmp_path / "place"
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTHON_WORKER_FACTORY_SOCK_PATH": str(place),
        "PYSPARK_PENSTOCK_PYTHON": sys.executable,
    }
    with listener(place) as early, listener(elsewhere) as late:
        process = subprocess.Popen(commands[by], env=environment, stdin=subprocess.PIPE)
        try:
            with greeted(early) as connection:
                assert process.stdin is not None
                process.stdin.write(b"\n")
                process.stdin.close()
                for each in (connection, late):
                    spoken = each if each is connection else greeted(late)
                    with spoken, spoken.makefile("rwb") as file:
                        assert file.readline() == b"here\n"
                        file.write(b"welcome\n")
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
            process.wait()
