"""How long `penstock serve` takes to be ready, and what it holds in memory then.

Measured from the start of the process to its own line that says it is ready, as a client would see
it. The bars are those of the project: 0.35 s and 48 MiB with a new data folder, 0.6 s with
`--topics 2000`; and 0.15 s for commands that need no broker. An installed package has its bytecode,
so it is written by the first start, which is not counted, whatever PYTHONDONTWRITEBYTECODE says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

import saved
from penstock.broker.broker import Broker
from penstock.broker.settings import BrokerSettings
from penstock.broker.topics.names import TopicName

BAR_SECONDS = 0.35
BAR_SECONDS_WITH_TOPICS = 0.6
BAR_MIB = 48
BAR_COMMAND_SECONDS = 0.15
COMMANDS = ("version", "--version", "--help")


def start_once(folder: Path) -> tuple[float, float, float]:
    """Seconds to ready, MiB resident at ready, and seconds of CPU time until then."""
    ports = ["--kafka-port", "0", "--pulsar-port", "0", "--iggy-port", "0"]
    command = [sys.executable, "-m", "penstock", "serve", "--format", "json", *ports]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, "--data-folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=installed(),
    ) as process:
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        seconds = time.perf_counter() - began
        started = psutil.Process(process.pid)
        resident = started.memory_info().rss / (1 << 20)
        cpu = started.cpu_times().user + started.cpu_times().system
        process.terminate()
    return seconds, resident, cpu


def run_once(word: str) -> float:
    """Seconds that a command takes."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "penstock", word]
    subprocess.run(command, stdout=subprocess.DEVNULL, env=installed(), check=True)
    return time.perf_counter() - began


def installed() -> dict[str, str]:
    """The environment of a process that may keep its bytecode."""
    return {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


async def make_topics(folder: Path, count: int) -> None:
    """Leave a data folder as a broker with so many topics does."""
    broker = await Broker.open(folder, BrokerSettings())
    for number in range(count):
        await broker.topics.create(TopicName("public", "default", f"topic-{number}"), 1)
    await broker.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--topics", type=int, default=0)
    saved.add_flag(parser)
    options = parser.parse_args()
    runs = options.runs
    with tempfile.TemporaryDirectory(prefix="penstock-startup-") as folder:
        start_once(Path(folder) / "warm-up")
        if options.topics:
            asyncio.run(make_topics(Path(folder) / "0", options.topics))
        names = ["0" if options.topics else str(number) for number in range(runs)]
        measured = [start_once(Path(folder) / name) for name in names]
        commands = {word: [run_once(word) for _ in range(runs)] for word in COMMANDS}
    seconds = [run[0] for run in measured]
    resident = [run[1] for run in measured]
    cpu = [run[2] for run in measured]
    bar = BAR_SECONDS_WITH_TOPICS if options.topics else BAR_SECONDS
    print(f"start-up, {runs} runs         median    worst      bar")
    print(f"seconds to ready      {statistics.median(seconds):9.3f}{max(seconds):9.3f}{bar:9}")
    print(
        f"MiB resident          {statistics.median(resident):9.1f}{max(resident):9.1f}{BAR_MIB:9}"
    )
    print(f"seconds of CPU        {statistics.median(cpu):9.3f}{max(cpu):9.3f}")
    medians = {
        "seconds to ready": statistics.median(seconds),
        "MiB resident": statistics.median(resident),
    }
    for word, took in commands.items():
        median = statistics.median(took)
        print(f"seconds of {word:11}{median:9.3f}{max(took):9.3f}{BAR_COMMAND_SECONDS:9}")
        medians[f"seconds of {word}"] = median
    saved.compare("startup", medians, save=options.save)


if __name__ == "__main__":
    main()
