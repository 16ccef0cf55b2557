"""One run at a time on a table."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.pipeline.tables.interface import TableError
from penstock.pipeline.tables.locks import locked, taking_turns

HOLDER = """
import sys
from pathlib import Path
from penstock.pipeline.tables.locks import locked
with locked(Path(sys.argv[1]), "a table"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_refused_with_the_process_of_the_first(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock", "a table"),
        pytest.raises(
            TableError, match=rf"another run writes to a table \(process {os.getpid()}\)"
        ),
        locked(tmp_path / "lock", "a table"),
    ):
        pass


def test_a_lock_is_free_when_its_run_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path / "lock", "a table"):
            pass


def test_a_run_that_was_killed_leaves_the_lock_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(TableError, match=f"process {holder.pid}"),
            locked(tmp_path / "lock", "a table"),
        ):
            pass
        holder.kill()
    with locked(tmp_path / "lock", "a table"):
        pass


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with (
        pytest.raises(TableError, match="orders can't be written to: File exists"),
        locked(tmp_path / "taken" / "lock", "orders"),
    ):
        pass


def test_a_commit_waits_for_that_of_another(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with taking_turns(tmp_path / "lock"):
            order.append("second")

    thread = threading.Thread(target=second)
    with taking_turns(tmp_path / "lock"):
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
