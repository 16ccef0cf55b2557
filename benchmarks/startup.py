"""How long `penstock serve` takes to be ready, and what it holds in memory then.

Measured from the start of the process to its own line that says it is ready, as a client would see
it. The bars are those of the project: under 0.75 s and under 80 MiB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

import saved

BAR_SECONDS = 0.75
BAR_MIB = 80


def start_once(folder: Path) -> tuple[float, float]:
    """Seconds to ready, and MiB resident at ready."""
    ports = ["--kafka-port", "0", "--pulsar-port", "0", "--iggy-port", "0"]
    command = [sys.executable, "-m", "penstock", "serve", "--format", "json", *ports]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, "--data-folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        seconds = time.perf_counter() - began
        resident = psutil.Process(process.pid).memory_info().rss / (1 << 20)
        process.terminate()
    return seconds, resident


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    saved.add_flag(parser)
    options = parser.parse_args()
    runs = options.runs
    with tempfile.TemporaryDirectory(prefix="penstock-startup-") as folder:
        start_once(Path(folder) / "warm-up")
        measured = [start_once(Path(folder) / str(number)) for number in range(runs)]
    seconds = [run[0] for run in measured]
    resident = [run[1] for run in measured]
    print(f"start-up, {runs} runs    median    worst      bar")
    print(f"seconds to ready   {statistics.median(seconds):9.3f}{max(seconds):9.3f}{BAR_SECONDS:9}")
    print(f"MiB resident       {statistics.median(resident):9.1f}{max(resident):9.1f}{BAR_MIB:9}")
    medians = {
        "seconds to ready": statistics.median(seconds),
        "MiB resident": statistics.median(resident),
    }
    saved.compare("startup", medians, save=options.save)


if __name__ == "__main__":
    main()
