"""Well-behaved clients of the three protocols in a process of their own, which time what they ask.

    python probe_client.py topic kafka=127.0.0.1:9092 pulsar=... iggy=...

Every few milliseconds each asks for the cheapest thing there is, and every so often it writes one
message and reads it back. Each answer is a line `protocol verb began seconds`, times as
`time.monotonic` gives them, which all processes of a machine share; a failure is a line
`protocol verb began failed reason`, and the client connects anew. It ends when its standard input
does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from wire_clients import CLIENTS, WireClient

PAUSE_SECONDS = 0.004
PINGS_BETWEEN_WRITES = 10
RETRY_SECONDS = 0.05

_RESULTS = os.dup(1)


class Probe:
    """One client."""

    def __init__(self, protocol: str, address: str, topic: str) -> None:
        self._protocol = protocol
        self._address = address
        self._topic = topic
        self._client: WireClient | None = None
        self._next = 0

    def run(self) -> None:
        for verb, work in self._forever():
            began = time.monotonic()
            try:
                work()
            except Exception as error:
                self._lose(verb, began, error)
            else:
                self._report(f"{verb} {began:.6f} {time.monotonic() - began:.6f}")
            time.sleep(PAUSE_SECONDS)

    def _forever(self) -> Iterator[tuple[str, Callable[[], None]]]:
        while True:
            yield "connect", self._connect
            while self._client is not None:
                for _ in range(PINGS_BETWEEN_WRITES):
                    if self._client is not None:
                        yield "ping", self._client.ping
                if self._client is not None:
                    yield "produce", self._produce
                if self._client is not None:
                    yield "read", self._read

    def _connect(self) -> None:
        self._client = CLIENTS[self._protocol](self._address, self._topic)

    def _produce(self) -> None:
        assert self._client is not None
        self._next = self._client.produce(b"probe")

    def _read(self) -> None:
        assert self._client is not None
        while not self._client.read(self._next):
            pass

    def _lose(self, verb: str, began: float, error: Exception) -> None:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        self._report(f"{verb} {began:.6f} failed {reason}")
        if self._client is not None:
            self._client.close()
            self._client = None
        time.sleep(RETRY_SECONDS)

    def _report(self, line: str) -> None:
        os.write(_RESULTS, f"{self._protocol} {line}\n".encode())


def main() -> None:
    topic, *addresses = sys.argv[1:]
    for word in addresses:
        protocol, _, address = word.partition("=")
        threading.Thread(target=Probe(protocol, address, topic).run, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
