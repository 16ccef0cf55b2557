"""Penstock itself, as `penstock serve` runs it, from the environment that this program is in."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

from versus.loads import PROTOCOLS
from versus.peers.peer import Durability, Launch, Peer
from versus.processes import free_port

FLUSH: Final = {Durability.FLUSHED: "acknowledged", Durability.WRITTEN: "written"}


class Penstock(Peer):
    name: ClassVar = "penstock"

    def obtain(self, cache: Path) -> None:  # noqa: ARG002  # it is here already
        self.version = version("penstock-broker")

    def setting(self, durability: Durability) -> str:
        return f"flush={FLUSH[durability]}"

    def prepare(self, folder: Path, durability: Durability) -> Launch:
        data = folder / "data"
        ports = {protocol: free_port() for protocol in PROTOCOLS}
        command = [sys.executable, "-m", "penstock", "serve", "--data-folder", str(data)]
        command += ["--log-level", "warning", "--flush", FLUSH[durability]]
        for protocol, port in ports.items():
            command += [f"--{protocol}-port", str(port)]
        # Settings that are meant for another broker must not reach this one.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        return Launch(command, data, ports, environment=environment)
