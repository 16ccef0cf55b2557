"""A real server of Iggy, which is published as source only: a variable names one that is built."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

from tls_proxy import self_signed
from versus.peers.iggy import VARIABLE as OF_TODAY
from versus.peers.iggy import variables
from versus.processes import free_port
from wire_clients import connect

OF_0_8 = "IGGY_SERVER_0_8"
START_SECONDS = 60
SETTINGS = {
    "IGGY_SYSTEM_SHARDING_CPU_ALLOCATION": "1",
    "IGGY_SYSTEM_SHARDING_PIN_CORES": "false",
    "IGGY_SYSTEM_MEMORY_POOL_SIZE": "512 MiB",
    "IGGY_SYSTEM_LOGGING_FILE_ENABLED": "false",
}


class ApacheIggyServer:
    """One server on a free port, over a folder of its own; with `tls` it speaks nothing else."""

    def __init__(self, variable: str, folder: Path, *, tls: bool = False) -> None:
        named = os.environ.get(variable)
        if named is None:
            pytest.skip(f"{variable} names no iggy-server, and no registry has one")
        self._program = Path(named).resolve()
        self._folder = folder
        self._port = free_port()
        self._settings = dict(SETTINGS)
        self.certificate: Path | None = None
        if tls:
            self.certificate, key = self_signed(folder)
            self._settings |= {
                "IGGY_TCP_TLS_ENABLED": "true",
                "IGGY_TCP_TLS_SELF_SIGNED": "false",
                "IGGY_TCP_TLS_CERT_FILE": str(self.certificate),
                "IGGY_TCP_TLS_KEY_FILE": str(key),
            }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def iggy(self) -> str:
        """Address, as `host:port`."""
        return f"localhost:{self._port}" if self.certificate else f"127.0.0.1:{self._port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def restart(self) -> None:
        """End it in order, for what it was not asked to flush is lost otherwise; start it again."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()
        self._start()

    def _start(self) -> None:
        settings = variables(self._folder / "data", self._port) | self._settings
        environment = os.environ | settings
        for each in (OF_TODAY, OF_0_8):
            environment.pop(
                each, None
            )  # One that is built to be debugged ends at what it does not know.
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._program], cwd=self._folder, stdout=log, stderr=log, env=environment
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_up():
            assert time.monotonic() < deadline, self._folder
            assert self.is_running, self._folder
            time.sleep(0.1)

    def _is_up(self) -> bool:
        try:
            connect(self.iggy).close()
        except OSError:
            return False
        return True
