"""Runs commands as a person types them."""

from __future__ import annotations

import io
import sys
import uuid

import pytest

from broker_process import BrokerProcess
from command_line import Penstock, Ran
from penstock.cli.app import run


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Penstock:
    """Runs a command in this process, and checks its exit code."""

    def run_here(*words: str, stdin: str = "", code: int = 0) -> Ran:
        monkeypatch.setattr(sys, "argv", ["penstock", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        printed = Ran(*capsys.readouterr())
        assert ended.value.code == code, printed
        return printed

    return run_here


@pytest.fixture
def penstock(command: Penstock, shared_server: BrokerProcess) -> Penstock:
    """Runs a command that needs a broker, with the shared one's address."""

    def run_there(*words: str, stdin: str = "", code: int = 0) -> Ran:
        return command(*words, "--server", shared_server.kafka, stdin=stdin, code=code)

    return run_there


@pytest.fixture
def topic(penstock: Penstock) -> str:
    name = f"cli-{uuid.uuid4().hex[:8]}"
    penstock("topic", "create", name, "--partitions", "3")
    return name
