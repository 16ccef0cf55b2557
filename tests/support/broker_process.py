"""A broker as its users run it: `penstock serve` in a process of its own, on free ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from patience import PATIENCE_SECONDS

READY_SECONDS = 60
STOP_SECONDS = 60


class BrokerProcess:
    """One broker over one data folder. The ports stay the same when it is started again."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        self.data_folder = folder / "data"
        self._flags = flags
        self._log_file = folder / "log.txt"
        self._ports = {"kafka": 0, "pulsar": 0, "iggy": 0}
        self._process: subprocess.Popen[str] | None = None

    @property
    def kafka(self) -> str:
        """Bootstrap address, as `host:port`."""
        return f"127.0.0.1:{self._ports['kafka']}"

    @property
    def pulsar(self) -> str:
        """Service URL, as `pulsar://host:port`."""
        return f"pulsar://127.0.0.1:{self._ports['pulsar']}"

    @property
    def iggy(self) -> str:
        """Address, as `host:port`."""
        return f"127.0.0.1:{self._ports['iggy']}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and not ended; raises AssertionError where it ended by itself."""
        code = None if self._process is None else self._process.poll()
        assert code is None, f"the broker ended by itself with {code}:\n{self.log[-8000:]}"
        return self._process is not None

    @property
    def log(self) -> str:
        """All log lines since the first start."""
        return self._log_file.read_text(encoding="utf-8")

    def start(self) -> None:
        """Start the broker and return when clients can connect."""
        assert self._process is None, "the broker runs already"
        with self._log_file.open("a", encoding="utf-8") as log:
            self._process = self._launch(log)
        assert self._process.stdout is not None
        line = _first_line(self._process.stdout)
        if not line:
            self.kill9()
            raise AssertionError(f"the broker did not start:\n{self.log}")
        for protocol, address in json.loads(line)["listeners"].items():
            self._ports[protocol] = int(address.rpartition(":")[2])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the broker in order and return its exit code."""
        process = self._running()
        process.send_signal(number)
        return self._wait(process, STOP_SECONDS)

    def kill9(self) -> None:
        """End the broker as a crash does."""
        process = self._running()
        process.kill()
        self._wait(process, STOP_SECONDS)

    def restart(self) -> None:
        """Stop in order and start again."""
        self.stop()
        self.start()

    def end(self) -> None:
        """Leave nothing running, whatever state the broker is in."""
        if self._process is not None:
            self.kill9()

    def wait_for_log(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when `text` is in the log."""
        deadline = time.monotonic() + seconds
        while text not in self.log:
            assert time.monotonic() < deadline, f"no {text!r} in the log:\n{self.log}"
            time.sleep(0.01)

    def _launch(self, log: IO[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "penstock", *self._arguments()]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment()
        )

    def _arguments(self) -> list[str]:
        command = ["serve", "--format", "json", "--data-folder", str(self.data_folder)]
        for protocol, port in self._ports.items():
            command += [f"--{protocol}-port", str(port)]
        return [*command, *self._flags]

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "the broker does not run"
        return self._process

    def _wait(self, process: subprocess.Popen[str], seconds: float) -> int:
        self._process = None
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            assert process.stdout is not None
            process.stdout.close()


def environment() -> dict[str, str]:
    """What a broker is started with: a developer's own settings must not change what is tested."""
    return {key: text for key, text in os.environ.items() if not key.startswith("PENSTOCK_")}


def _first_line(stream: IO[str]) -> str:
    # Blocks until the broker is ready or ends; pytest's own timeout is the deadline.
    return stream.readline()
