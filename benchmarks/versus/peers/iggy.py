"""Iggy's server. It is published as source only, and so is built here or named by the caller."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar, Final

from versus.peers.peer import Durability, Launch, NotAvailableError, Peer
from versus.processes import free_port

VARIABLE: Final = "IGGY_SERVER"
"""Path of an iggy-server that is there already."""
SOURCE: Final = "https://github.com/apache/iggy"
TAG: Final = "server-0.9.0"
"""The server of the protocol that apache-iggy 0.9 speaks."""
BUILD_SECONDS: Final = 3600
FITTING_CLIENTS: Final = {"0.9.0-edge.5": "0.9.0.dev5"}
"""A server before its release refuses the topic options of the client's release."""


class Iggy(Peer):
    name: ClassVar = "iggy"

    def obtain(self, cache: Path) -> None:
        self._server = _found(cache) or _built(cache)
        told = subprocess.run(
            [self._server, "--version"], capture_output=True, text=True, check=False
        )
        self.version = told.stdout.strip().rpartition(" ")[2] or "unknown"
        self.client = _client(cache, FITTING_CLIENTS.get(self.version))

    def setting(self, durability: Durability) -> str:
        return ", ".join(f"{key}={value}" for key, value in options(durability).items())

    def prepare(self, folder: Path, durability: Durability) -> Launch:
        port = free_port()
        environment = os.environ | variables(folder / "data", port)
        return Launch(
            [self._server], folder / "data", {"iggy": port}, options(durability), environment
        )


def options(durability: Durability) -> dict[str, str]:
    """Each topic's settings. By default, up to 1024 messages are only in the server's memory."""
    flushed = {"enforce_fsync": "true"} if durability is Durability.FLUSHED else {}
    return {"messages_required_to_save": "1"} | flushed


def variables(data: Path, port: int) -> dict[str, str]:
    """The server's settings, as its own configuration names them in the environment."""
    return {
        "IGGY_SYSTEM_PATH": str(data),
        "IGGY_TCP_ADDRESS": f"127.0.0.1:{port}",
        "IGGY_HTTP_ENABLED": "false",
        "IGGY_QUIC_ENABLED": "false",
        "IGGY_WEBSOCKET_ENABLED": "false",
        "IGGY_SYSTEM_LOGGING_LEVEL": "warn",
        "IGGY_ROOT_USERNAME": "iggy",
        "IGGY_ROOT_PASSWORD": "iggy",
    }


def _client(cache: Path, version: str | None) -> Path | None:
    """Folder with that version of the client; None where the installed one will do."""
    if version is None:
        return None
    folder = cache / "iggy" / f"client-{version}"
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--target", str(folder), f"apache-iggy=={version}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise NotAvailableError(f"its client {version} can't be had: {ended.stderr[-200:]}")
    return folder


def _found(cache: Path) -> str | None:
    named = os.environ.get(VARIABLE)
    if named is not None:
        if not os.access(named, os.X_OK):
            raise NotAvailableError(f"{VARIABLE} names {named}, which can't be run")
        return str(Path(named).resolve())
    return shutil.which("iggy-server") or shutil.which(cache / "iggy" / "bin" / "iggy-server")


def _built(cache: Path) -> str:
    if shutil.which("cargo") is None:
        raise NotAvailableError("there is no iggy-server, and no cargo to build it with")
    root = cache / "iggy"
    command = ["cargo", "install", "--git", SOURCE, "--tag", TAG, "--locked", "--root", str(root)]
    try:
        ended = subprocess.run(
            [*command, "server"],
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotAvailableError(f"building it took more than {BUILD_SECONDS} s") from error
    if ended.returncode != 0:
        said = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
        reason = said[-1] if said else "cargo failed"
        raise NotAvailableError(f"no registry has it, and its source can't be built: {reason}")
    return str(root / "bin" / "iggy-server")
