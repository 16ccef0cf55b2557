"""A real broker of Apache Pulsar, from Maven Central; tests are skipped where it is away."""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self

import pytest

from penstock.clients.access import Access, Token
from penstock.clients.pulsar.client import PulsarClient
from penstock.clients.pulsar.connection import RefusedError
from versus.peers import maven
from versus.peers.peer import Durability, NotAvailableError
from versus.peers.pulsar import JAVA, LOGGING, configuration
from versus.processes import free_port

ARTIFACTS = ["org.apache.pulsar:pulsar-broker:4.0.7"]
"""In 4.0.0 what waits on Key_Shared hangs where a consumer comes and leaves again."""
LIBRARIES = Path.home() / ".cache" / "penstock" / "interop"
START_SECONDS = 180
HEAP = ["-Xms256m", "-Xmx768m", "-XX:MaxDirectMemorySize=512m"]
PROBE = "persistent://public/default/probe"
COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"


class ApachePulsar:
    """One broker with its bookie, in one process, which may be ended and started again.

    With `tokens` it lets in who shows `token`, and nobody else.
    """

    def __init__(
        self, folder: Path, *, transactions: bool, tokens: bool = False, **settings: object
    ) -> None:
        try:
            libraries = maven.fetch(LIBRARIES, "pulsar", ARTIFACTS)
        except NotAvailableError as error:
            pytest.skip(str(error))
        self._folder = folder
        self._transactions = transactions
        self._ports = {name: free_port() for name in ("pulsar", "http", "bookie")}
        given = configuration(self._ports, Durability.WRITTEN)
        given |= {"transactionCoordinatorEnabled": str(transactions).lower(), **settings}
        self.token: str | None = None
        if tokens:
            key = secrets.token_bytes(32)
            self.token = token_of("admin", key)
            given |= _token_settings(key, self.token)
        text = "".join(f"{key}={value}\n" for key, value in given.items())
        (folder / "standalone.conf").write_text(text)
        (folder / "log4j2.properties").write_text(LOGGING)
        java = [JAVA[0], *HEAP, *JAVA[4:], "-Dlog4j.configurationFile=log4j2.properties"]
        self._command = [
            *(*java, "-cp", maven.class_path(libraries)),
            "org.apache.pulsar.PulsarStandaloneStarter",
            *("--config", "standalone.conf", "--no-functions-worker", "--no-stream-storage"),
            *("--metadata-dir", "data/metadata", "--bookkeeper-dir", "data/bookkeeper"),
            *("--bookkeeper-port", str(self._ports["bookie"])),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._ports['pulsar']}"

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic of public/default."""
        self._admin("PUT", f"{topic}/partitions", str(partitions).encode())

    def messages(self, topic: str) -> int:
        """Return how many messages a topic with partitions got since the broker began."""
        counter = json.loads(self._admin("GET", f"{topic}/partitioned-stats"))["msgInCounter"]
        return int(counter)

    def _admin(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._ports['http']}/admin/v2/persistent/public/default/{path}",
            data=body,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            content: bytes = answer.read()
        return content

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=log, env=dict(os.environ)
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_up():
            assert time.monotonic() < deadline, self._folder
            assert self._process.poll() is None, self._folder
            time.sleep(0.2)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _is_up(self) -> bool:
        try:
            login = None if self.token is None else Token(self.token)
            with PulsarClient(self.address, Access(login=login), timeout_s=5) as client:
                client.owner(PROBE)
                return not self._transactions or client.partitions(COORDINATORS) > 0
        except (OSError, RefusedError):
            return False


def token_of(subject: str, key: bytes) -> str:
    """Return a JSON Web Token of somebody, signed with a key that the broker has too."""
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": subject}]
    signed = b".".join(_base64(json.dumps(part).encode()) for part in parts)
    return (signed + b"." + _base64(hmac.digest(key, signed, "sha256"))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _token_settings(key: bytes, token: str) -> dict[str, object]:
    return {
        "authenticationEnabled": "true",
        "authenticationProviders": (
            "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
        ),
        "tokenSecretKey": f"data:;base64,{base64.b64encode(key).decode()}",
        "brokerClientAuthenticationPlugin": (
            "org.apache.pulsar.client.impl.auth.AuthenticationToken"
        ),
        "brokerClientAuthenticationParameters": f"token:{token}",
    }
