"""The chaos matrix: what each fault costs each workload of each protocol.

A row is one fault. A fresh broker serves all workloads of all protocols at once, each on a topic of
its own; the fault comes and goes; what each client measured is a cell. Afterwards every topic is
read, and all that was acknowledged must be in its place, and nothing that was refused.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from chaos_client import WORKLOADS
from faulty_broker import FaultyBroker
from histories import Anomaly, History, find_anomalies, parse
from stand import PROTOCOLS, Stand
from wire_clients import KafkaWire

CLIENT = Path(__file__).parent / "chaos_client.py"
WARM_SECONDS = 1.0
AFTER_SECONDS = 1.0
PATIENCE_SECONDS = 180
"""Until everybody works, before and after the fault."""

Fault = Callable[["Chaos"], None]


class Cell(NamedTuple):
    """What one workload of one protocol measured, in seconds."""

    protocol: str
    workload: str
    unavailable: float
    """The longest time between two successes that touches the fault."""
    p99: float
    """Of what began during the fault and succeeded; 0 where nothing did."""
    failures: int
    baseline: float
    """The p99 before it."""


class Sample(NamedTuple):
    began: float
    seconds: float | None


class Chaos:
    """One row: a broker, its clients, and what a fault may use."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.broker = FaultyBroker(stand.fresh_folder())
        stand.add(self.broker)
        self._clients: dict[str, subprocess.Popen[str]] = {}

    def row(self, fault: Fault) -> tuple[list[Cell], list[Anomaly]]:
        """Run it all, and return the cells and what was wrong with the histories."""
        self._start()
        try:
            self._wait_for_all(time.monotonic())
            warm = time.monotonic()
            time.sleep(WARM_SECONDS)
            began = time.monotonic()
            fault(self)
            ended = time.monotonic()
            self._wait_for_all(ended)
            time.sleep(AFTER_SECONDS)
        finally:
            self._end()
        cells = [
            _cell(protocol, workload, self._samples(protocol, workload), (warm, began, ended))
            for protocol in PROTOCOLS
            for workload in WORKLOADS
        ]
        return cells, self._anomalies()

    def cut_connections(self) -> None:
        for client in self._clients.values():
            assert client.stdin is not None
            client.stdin.write("cut\n")
            client.stdin.flush()

    def _start(self) -> None:
        for protocol in PROTOCOLS:
            for workload in WORKLOADS:
                admin = KafkaWire(self.broker.kafka, f"{protocol}-{workload}")
                admin.create_topic()
                admin.close()
        addresses = [f"{protocol}={getattr(self.broker, protocol)}" for protocol in PROTOCOLS]
        for protocol in PROTOCOLS:
            with self._file(protocol).open("wb") as output:
                self._clients[protocol] = subprocess.Popen(
                    [sys.executable, str(CLIENT), protocol, *addresses],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    text=True,
                )

    def _end(self) -> None:
        for client in self._clients.values():
            client.kill()
            client.wait()
            assert client.stdin is not None
            client.stdin.close()

    def _wait_for_all(self, since: float) -> None:
        """Return when every workload succeeded with something that began after `since`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        waiting = {(protocol, workload) for protocol in PROTOCOLS for workload in WORKLOADS}
        while waiting:
            waiting = {
                each
                for each in waiting
                if not any(s.seconds is not None and s.began > since for s in self._samples(*each))
            }
            assert time.monotonic() < deadline, f"no success: {sorted(waiting)}: {self._tails()}"
            time.sleep(0.1)

    def _file(self, protocol: str) -> Path:
        return self.broker.folder / f"chaos-{protocol}.txt"

    def _lines(self, protocol: str, workload: str) -> list[str]:
        text = self._file(protocol).read_text().rpartition("\n")[0]
        start = f"{workload} "
        return [line[len(start) :] for line in text.splitlines() if line.startswith(start)]

    def _tails(self) -> str:
        return "".join(f"\n{self._file(protocol).read_text()[-300:]}" for protocol in PROTOCOLS)

    def _samples(self, protocol: str, workload: str) -> list[Sample]:
        samples = []
        for line in self._lines(protocol, workload):
            began, second, *_ = line.split(" ")
            if began[0].isdigit():
                samples.append(Sample(float(began), None if second == "failed" else float(second)))
        return samples

    def _anomalies(self) -> list[Anomaly]:
        found = []
        for protocol in PROTOCOLS:
            for workload in WORKLOADS:
                lines = self._lines(protocol, workload)
                written = parse("".join(f"{line}\n" for line in lines if line[0].isalpha()))
                truth = self._read(f"{protocol}-{workload}")
                history = History({protocol: written}, {}, {"kafka": parse(truth)})
                found += find_anomalies(history)
        return found

    def _read(self, topic: str) -> str:
        client, lines, offset = KafkaWire(self.broker.kafka, topic), [], 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (end := client.end_offset()) > offset:
            assert time.monotonic() < deadline, f"{topic} ends at {end}, and {offset} is reached"
            for at, value in client.read(offset):
                lines.append(f"read 0 {at} {value.rstrip(b'x').decode()}\n")
                offset = at + 1
        client.close()
        return "".join(lines)


def _cell(
    protocol: str, workload: str, samples: list[Sample], times: tuple[float, float, float]
) -> Cell:
    warm, began, ended = times
    done = [s.began + s.seconds for s in samples if s.seconds is not None]
    relevant = [t for t in done if t <= began][-1:] + [t for t in done if t > began]
    gaps = [after - before for before, after in pairwise(relevant) if before < ended]
    during = [s.seconds for s in samples if s.seconds is not None and began <= s.began < ended]
    before = [s.seconds for s in samples if s.seconds is not None and warm <= s.began < began]
    failures = sum(s.seconds is None for s in samples if s.began >= began)
    return Cell(protocol, workload, max(gaps), _p99(during), failures, _p99(before))


def _p99(seconds: list[float]) -> float:
    found = sorted(seconds)
    return found[min(len(found) - 1, int(0.99 * len(found)))] if found else 0.0
