"""One protocol's clients of every workload, in a process of their own, for the chaos matrix.

    python chaos_client.py kafka kafka=127.0.0.1:9092 pulsar=... iggy=...

Each workload has a topic of its own, `kafka-batched` and so on, works on it without an end, and
connects anew after a failure. It prints a line `workload began seconds` for each thing that went
well, `workload began failed reason` for each that did not, and beside them its history's lines as
`histories.py` describes them, with the workload in front. A line `cut` on standard input cuts its
connections off; it ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping

from wire_clients import CLIENTS, RefusedError, WireClient

PAUSE_SECONDS = 0.005
RETRY_SECONDS = 0.02
TIMEOUT_SECONDS = 10
"""After so long a client takes its connection for dead; real ones are slower."""
BATCH = 50
RESET = struct.pack("ii", 1, 0)
VALUE = b"x" * 100
READER_OF = {"kafka": "pulsar", "pulsar": "iggy", "iggy": "kafka"}

_RESULTS = os.dup(1)


class Workload(ABC):
    """One thing that is done over and over; `work` is what is timed."""

    def __init__(self, name: str, protocol: str, addresses: Mapping[str, str]) -> None:
        self.name = name
        self.protocol = protocol
        self.clients: list[WireClient] = []
        self._addresses = addresses
        self._numbers = itertools.count()

    @abstractmethod
    def open(self) -> None:
        """Connect what is needed."""

    @abstractmethod
    def work(self) -> None: ...

    def run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                if not self.clients:
                    self.open()
                self.work()
            except Exception as error:
                self._tell(
                    f"{began:.6f} failed {type(error).__name__}: {' '.join(str(error).split())}"
                )
                self._close()
                time.sleep(RETRY_SECONDS)
            else:
                self._tell(f"{began:.6f} {time.monotonic() - began:.6f}")
            time.sleep(PAUSE_SECONDS)

    def cut(self) -> None:
        """Reset the connections, as a network does that drops a client."""
        for client in tuple(self.clients):
            with contextlib.suppress(OSError):  # It may just be connecting anew.
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                client.socket.shutdown(socket.SHUT_RDWR)

    def connect(self, protocol: str) -> WireClient:
        topic = f"{self.protocol}-{self.name}"
        client = CLIENTS[protocol](self._addresses[protocol], topic, TIMEOUT_SECONDS)
        self.clients.append(client)
        return client

    def produce(self, client: WireClient, count: int) -> int:
        """Write values that nobody wrote before and return the first one's offset."""
        values = [f"{self.protocol}-{next(self._numbers)}-" for _ in range(count)]
        for value in values:
            self._tell(f"invoked - - {value}")
        try:
            base = client.produce(*(value.encode() + VALUE for value in values))
        except RefusedError:
            for value in values:
                self._tell(f"refused - - {value}")
            raise
        for offset, value in enumerate(values, base):
            self._tell(f"ok 0 {offset} {value}")
        return base

    def _close(self) -> None:
        for client in self.clients:
            client.close()
        self.clients.clear()

    def _tell(self, line: str) -> None:
        os.write(_RESULTS, f"{self.name} {line}\n".encode())


class Batched(Workload):
    """A request of fifty messages after the other."""

    def open(self) -> None:
        self._client = self.connect(self.protocol)

    def work(self) -> None:
        self.produce(self._client, BATCH)


class Unbatched(Batched):
    """A request of one message after the other."""

    def work(self) -> None:
        self.produce(self._client, 1)


class Tail(Workload):
    """A message is written, and read over another connection of the same protocol."""

    def open(self) -> None:
        self._writer, self._reader = self.connect(self.protocol), self.connect(self.reader_protocol)

    @property
    def reader_protocol(self) -> str:
        return self.protocol

    def work(self) -> None:
        offset = self.produce(self._writer, 1)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not any(found >= offset for found, _ in self._reader.read(offset)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"offset {offset} is not seen")


class Cross(Tail):
    """A message is written through one protocol, and read through another."""

    @property
    def reader_protocol(self) -> str:
        return READER_OF[self.protocol]


WORKLOADS: dict[str, type[Workload]] = {
    "batched": Batched,
    "unbatched": Unbatched,
    "tail": Tail,
    "cross": Cross,
}


def main() -> None:
    protocol, *words = sys.argv[1:]
    addresses = dict(word.split("=", 1) for word in words)
    workloads = [made(name, protocol, addresses) for name, made in WORKLOADS.items()]
    for workload in workloads:
        threading.Thread(target=workload.run, daemon=True).start()
    for line in sys.stdin:
        if line == "cut\n":
            for workload in workloads:
                workload.cut()
    os._exit(0)


if __name__ == "__main__":
    main()
