"""Real clients of the three protocols over one topic, whatever happens to the broker meanwhile."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from broker_process import BrokerProcess
from histories import Event, History, parse
from penstock.clients.kafka.client import KafkaClient

CLIENT = Path(__file__).parent / "crash_client.py"
PROTOCOLS = ("kafka", "pulsar", "iggy")
PARTITIONS = 4
FIRST_EVENTS_SECONDS = 60
CATCH_UP_SECONDS = 120
READ_SECONDS = 180
ABORTED = -6
"""How apache-iggy 0.9 now and then ends when Python ends right after its last answer."""


class CrashRun:
    """Writers, and followers where they are wanted, of each protocol; see crash_client.py."""

    def __init__(self, server: BrokerProcess, topic: str, pause_seconds: float = 0.005) -> None:
        self._server = server
        self._topic = topic
        self._environment = {**os.environ, "CRASH_PAUSE_SECONDS": str(pause_seconds)}
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        with KafkaClient(server.kafka) as client:
            client.create_topic(topic, PARTITIONS)

    @contextlib.contextmanager
    def clients(self, *verbs: str) -> Iterator[None]:
        """Run a client of each protocol for each verb, "write" and "follow", and kill them all."""
        for verb in verbs:
            for protocol in PROTOCOLS:
                self._start(verb, protocol)
        try:
            yield
        finally:
            for client in self._clients.values():
                client.kill()
                client.wait()

    def wait_for(self, verb: str, count: int) -> None:
        """Return when each client has so many more events of a verb, "ok" or "read"."""
        names = [name for name in self._clients if name.startswith(_client_of(verb))]
        wanted = {name: self._count(name, verb) + count for name in names}
        deadline = time.monotonic() + FIRST_EVENTS_SECONDS
        while any(self._count(name, verb) < least for name, least in wanted.items()):
            counts = {name: self._count(name, verb) for name in names}
            assert time.monotonic() < deadline, f"the clients do not get on: {counts}"
            time.sleep(0.02)

    def kill_writers(self) -> None:
        """Nothing that was not acknowledged is sent again."""
        for protocol in PROTOCOLS:
            self._clients[f"write-{protocol}"].kill()

    def stop_writers(self) -> None:
        """Have writers end in order: what they were owed has come."""
        writers = [self._clients[f"write-{protocol}"] for protocol in PROTOCOLS]
        for writer in writers:
            writer.terminate()
        for writer in writers:
            assert writer.wait(CATCH_UP_SECONDS) in (0, ABORTED)

    def history(self, *, caught_up: bool = False) -> History:
        """Read the whole topic through each protocol and return what all clients saw.

        `caught_up`: the followers are given the time to get to the end.
        """
        truths = self._read_all()
        followers = [name for name in self._clients if name.startswith("follow")]
        if caught_up:
            self._wait_for_followers(followers, truths["kafka"])
        return History(
            writers={name: self._events(name) for name in self._clients if name[0] == "w"},
            readers={name: self._events(name) for name in followers},
            truths=truths,
            idempotent=["write-kafka", "write-pulsar"],
            caught_up=followers if caught_up else [],
        )

    def _wait_for_followers(self, followers: list[str], truth: list[Event]) -> None:
        # One that misses something never gets there, which is for the checker to find.
        ends = {event.value for event in truth}
        deadline = time.monotonic() + CATCH_UP_SECONDS
        for follower in followers:
            while ends - {event.value for event in self._events(follower)}:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.2)

    def _read_all(self) -> dict[str, list[Event]]:
        readers = [self._start("read", protocol) for protocol in PROTOCOLS]
        try:
            assert all(_has_read(reader) for reader in readers)
        finally:
            for protocol in PROTOCOLS:
                reader = self._clients.pop(f"read-{protocol}")
                reader.kill()
                reader.wait()
        return {protocol: self._events(f"read-{protocol}") for protocol in PROTOCOLS}

    def _start(self, verb: str, protocol: str) -> subprocess.Popen[bytes]:
        address = getattr(self._server, protocol).removeprefix("pulsar://")
        words = [verb, protocol, address, self._topic, str(PARTITIONS), protocol]
        name = f"{verb}-{protocol}"
        errors_file = self._server.folder / "clients.txt"
        with self._file(name).open("wb") as output, errors_file.open("ab") as errors:
            self._clients[name] = subprocess.Popen(
                [sys.executable, str(CLIENT), *words],
                stdout=output,
                stderr=errors,
                env=self._environment,
            )
        return self._clients[name]

    def _file(self, name: str) -> Path:
        return self._server.folder / f"{self._topic}-{name}.txt"

    def _events(self, name: str) -> list[Event]:
        return parse(self._file(name).read_text())

    def _count(self, name: str, verb: str) -> int:
        return self._file(name).read_bytes().count(f"{verb} ".encode())


def _client_of(verb: str) -> str:
    return {"ok": "write", "read": "follow"}[verb]


def _has_read(reader: subprocess.Popen[bytes]) -> bool:
    """Whether a reader came to its end, or waits for ever for what it will never be given.

    The latter is for the checker to find.
    """
    try:
        return reader.wait(READ_SECONDS) in {0, ABORTED}
    except subprocess.TimeoutExpired:
        return True
