"""Throughput and the broker's CPU time for a gigabyte, of each protocol and between them.

One real client at a time writes or reads one partition; every acknowledgement means stable storage.
Throughput is what client and broker reach together, and the client is often the slower one; the
CPU time is the broker's alone, so it says what a gigabyte costs whatever the client does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import psutil

import saved
from broker_cpu import broker_in, cpu_seconds
from penstock.clients.kafka.client import KafkaClient
from penstock.demo.processes import running_broker

CLIENT = Path(__file__).with_name("client_load.py")
PROTOCOLS = ("kafka", "pulsar", "iggy")
WARM_UP_MESSAGES = 2_000


class Measured(NamedTuple):
    """One client's run."""

    megabytes_per_second: float
    cpu_seconds_per_gigabyte: float


class Bench:
    """Runs clients against one broker."""

    def __init__(self, folder: Path, addresses: dict[str, str], size: int) -> None:
        self._broker = psutil.Process(broker_in(folder))
        self._addresses = addresses
        self._size = size

    def create(self, topic: str) -> None:
        with KafkaClient(self._addresses["kafka"]) as client:
            client.create_topic(topic, 1)

    def run(self, verb: str, protocol: str, topic: str, count: int) -> Measured:
        words = [verb, protocol, self._addresses[protocol], topic, str(count), str(self._size)]
        before = cpu_seconds(self._broker.pid)
        ran = subprocess.run(
            [sys.executable, str(CLIENT), *words], stdout=subprocess.PIPE, text=True, check=True
        )
        cpu = cpu_seconds(self._broker.pid) - before
        volume = count * self._size
        return Measured(volume / 1e6 / float(ran.stdout), cpu / (volume / 1e9))

    def resident_mib(self) -> float:
        return float(self._broker.memory_info().rss) / (1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--bytes", type=int, default=1_000, help="size of a message's value")
    saved.add_flag(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        with running_broker(folder) as addresses:
            bench = Bench(folder, addresses, arguments.bytes)
            everything(bench, "warm-up", WARM_UP_MESSAGES)
            writes, reads = everything(bench, "measured", arguments.messages)
            memory = bench.resident_mib()
    volume = arguments.messages * arguments.bytes / 1e6
    print(f"{arguments.messages} messages of {arguments.bytes} bytes ({volume:.0f} MB) each,")
    print(f"{os.cpu_count()} cores; the broker held {memory:.0f} MiB at the end")
    show_writes(writes)
    show_reads(reads)
    runs = {f"written by {writer}": measured for writer, measured in writes.items()}
    runs |= {f"{writer} read by {reader}": measured for (writer, reader), measured in reads.items()}
    saved.compare("throughput", numbers(runs), save=arguments.save)


def numbers(runs: dict[str, Measured]) -> dict[str, float]:
    """One number a name, to be kept and compared."""
    return {
        f"{name}, {unit}": number
        for name, measured in runs.items()
        for unit, number in zip(("MB/s", "CPU s/GB"), measured, strict=True)
    }


def everything(
    bench: Bench, name: str, count: int
) -> tuple[dict[str, Measured], dict[tuple[str, str], Measured]]:
    """Write a topic with each client and read each with each."""
    writes: dict[str, Measured] = {}
    reads: dict[tuple[str, str], Measured] = {}
    for writer in PROTOCOLS:
        topic = f"{name}-{writer}"
        bench.create(topic)
        writes[writer] = bench.run("write", writer, topic, count)
        for reader in PROTOCOLS:
            reads[writer, reader] = bench.run("read", reader, topic, count)
    return writes, reads


def show_writes(writes: dict[str, Measured]) -> None:
    print("\nwritten by              MB/s   broker CPU s/GB")
    for writer, measured in writes.items():
        speed, cpu = measured
        print(f"{writer:20}{speed:8.0f}{cpu:18.2f}")


def show_reads(reads: dict[tuple[str, str], Measured]) -> None:
    """The last column compares with the same client reading what its own kind wrote."""
    print("\nwritten by  read by     MB/s   broker CPU s/GB   CPU to own kind's")
    for (writer, reader), (speed, cpu) in reads.items():
        ratio = cpu / max(reads[reader, reader].cpu_seconds_per_gigabyte, 1e-9)
        print(f"{writer:12}{reader:8}{speed:8.0f}{cpu:18.2f}{ratio:20.1f}")


if __name__ == "__main__":
    main()
