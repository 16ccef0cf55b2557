"""The measuring side of a load generator: starts its process and reads what it says."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any, Final

from versus.order import Order
from versus.processes import end, running, tail

PACKAGES: Final = Path(__file__).parents[1]
DEADLINE_SECONDS: Final = 150


class GeneratorError(RuntimeError):
    """The load did not come to its end; the message is its reason."""


class Generator:
    """One load generator that has an order."""

    def __init__(self, process: Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def wait_for_begin(self) -> None:
        self._expect("begin")

    def go(self) -> None:
        """Let a generator that waits for a broker's start connect."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """What it measured. Returns when the load is over. Raises GeneratorError."""
        return self._expect("end")

    def _expect(self, event: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        told = json.loads(line) if line else {"event": "failed", "reason": self._ended()}
        if told.pop("event") != event:
            raise GeneratorError(told["reason"])
        return dict(told)

    def _ended(self) -> str:
        return f"the load generator ended or took too long: {tail(self._log)[-300:]}"


@contextmanager
def generating(
    order: Order, folder: Path, cpus: Sequence[int], client: Path | None
) -> Iterator[Generator]:
    """Run a load generator; with `client`, that folder's client instead of the installed one."""
    log = folder / "generator.log"
    places = [PACKAGES, *([client] if client else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-m", "versus.driver", order.to_json()]
    with running(
        command, folder=folder, log=log, cpus=cpus, environment=environment, talks=True
    ) as process:
        # Reading its lines has no deadline of its own: they end when the process does.
        timer = threading.Timer(DEADLINE_SECONDS, end, [process])
        timer.start()
        try:
            yield Generator(process, log)
        finally:
            timer.cancel()
