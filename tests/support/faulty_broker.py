"""A broker whose disk a test slows down, makes fail, and cuts the power of.

The process is a real one, over real files; see faulty_serve.py for what stands between.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from broker_process import BrokerProcess, environment
from faulty_serve import CHANGING, NAMING, READING, SYNCING

__all__ = ["CHANGING", "EVERYTHING", "NAMING", "READING", "SYNCING", "Disk", "FaultyBroker"]

SERVE = Path(__file__).parent / "faulty_serve.py"
EVERYTHING = (*CHANGING, *SYNCING, *READING, *NAMING)
LOGS = "*/topics/*"


class Disk:
    """What a test may do to the disk of a running broker. Each rule ends with its `with`."""

    def __init__(self) -> None:
        self._rules: list[dict[str, Any]] = []
        self._control: socket.socket | None = None
        self._lines: IO[str] | None = None

    def attach(self, control: socket.socket) -> None:
        """Take the control socket of a process that was just started; its disk is healthy."""
        if self._control is not None:
            self._control.close()
        self._control, self._lines = control, control.makefile("rw")
        self._rules = []

    def slow(
        self, delay_ms: float, *calls: str, path: str = LOGS
    ) -> contextlib.AbstractContextManager[None]:
        """Let each call take so long; reads only where their blocks are not in the page cache."""
        return self._rule(calls=calls or EVERYTHING, path=path, delay_ms=delay_ms)

    def fail(
        self,
        error: str,
        *calls: str,
        path: str = LOGS,
        times: int | None = None,
        half: bool = False,
    ) -> contextlib.AbstractContextManager[None]:
        """Let calls fail with an error such as "ENOSPC", so many times or all.

        `half`: the first one writes half of what it was given.
        """
        return self._rule(calls=calls or CHANGING, path=path, error=error, times=times, half=half)

    def forget_cache(self) -> None:
        """From here on every block is cold until it is read or written again."""
        self._say(cold=True)

    def set_clock(self, seconds: float) -> None:
        """Let the broker's clock, as Python reads it, be so far ahead, or behind."""
        self._say(clock=seconds)

    def figures(self) -> dict[str, Any]:
        """What happened since the last `reset`.

        `loop_waits`: for each call how often, and how long in all, it held the event loop's own
        thread up; what threads waited for does not count. `failures`: how many calls failed.
        """
        return self._say()

    def reset(self) -> None:
        self._say(reset=True)

    def loop_waits(self) -> int:
        """How many slow calls were made on the event loop's thread since the last `reset`."""
        return sum(each["count"] for each in self.figures()["loop_waits"].values())

    @contextlib.contextmanager
    def _rule(self, calls: Sequence[str], **rule: Any) -> Iterator[None]:
        added = {"calls": list(calls), **rule}
        self._rules.append(added)
        self._say(rules=self._rules)
        try:
            yield
        finally:
            if added in self._rules:  # A restart heals the disk.
                self._rules.remove(added)
                self._say(rules=self._rules)

    def _say(self, **command: object) -> dict[str, Any]:
        assert self._lines is not None, "the broker does not run"
        self._lines.write(json.dumps(command) + "\n")
        self._lines.flush()
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer


class FaultyBroker(BrokerProcess):
    """A BrokerProcess with a `disk`, and one of `seeded_bugs.py` where it is wanted."""

    def __init__(self, folder: Path, *flags: str, bug: str = "none") -> None:
        super().__init__(folder, *flags)
        self._bug = bug
        self.disk = Disk()
        self._journal = folder / "journal.txt"
        self._sizes_at_start: dict[str, int] = {}

    def power_cut(self, chance: random.Random | None = None) -> None:
        """End the broker as a power cut does: of each log file only what was synced is left.

        With `chance`, what was not synced survives up to anywhere.
        """
        self.kill9()
        synced = self._synced()
        for file in self._log_files():
            size, durable = file.stat().st_size, synced.get(str(file), 0)
            if durable < size:
                os.truncate(file, durable if chance is None else chance.randint(durable, size))

    def _synced(self) -> dict[str, int]:
        sizes = dict(self._sizes_at_start)
        for line in self._journal.read_text().splitlines():
            verb, _, rest = line.partition(" ")
            first, _, second = rest.partition("\t")
            if verb == "synced":
                sizes[second] = int(first)
            elif first in sizes:
                sizes[second] = sizes.pop(first)
        return sizes

    def _log_files(self) -> list[Path]:
        topics = self.data_folder.absolute() / "topics"
        return [file for file in topics.rglob("*") if file.is_file()]

    def _launch(self, log: IO[str]) -> subprocess.Popen[str]:
        ours, theirs = socket.socketpair()
        self._journal.unlink(missing_ok=True)
        self._sizes_at_start = {str(file): file.stat().st_size for file in self._log_files()}
        words = [str(theirs.fileno()), str(self._journal), self._bug, *self._arguments()]
        with theirs:
            process = subprocess.Popen(
                [sys.executable, str(SERVE), *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(),
                pass_fds=[theirs.fileno()],
            )
        self.disk.attach(ours)
        return process
