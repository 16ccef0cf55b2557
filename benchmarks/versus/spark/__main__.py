"""Read and write tables with Spark from Penstock and from Apache Kafka, and compare them."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from versus import machine, results
from versus.accounting import Watch
from versus.peers.kafka import Kafka
from versus.peers.peer import Durability, NotAvailableError, Peer
from versus.peers.penstock import Penstock
from versus.processes import running, tail, wait_for_port
from versus.spark import connector
from versus.spark.cases import (
    BARS,
    CASES,
    CONVERSIONS,
    EFFICIENCY,
    SPEED,
    Bar,
    Case,
    Conversion,
    applications,
    in_turn,
)
from versus.spark.topics import SMALL, Topic, fill

BUILD: Final = Path("build/versus").resolve()
RESULTS: Final = Path("benchmarks/results")
SCALES: Final = {"quick": (10, 1), "medium": (4, 3), "full": (1, 3)}
"""By which the rows of the topics are divided, and the rounds."""
START_SECONDS: Final = 120
CASE_SECONDS: Final = 1800

Run = dict[str, Any]


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    divisor, rounds = SCALES[options.scale]
    cases = [case for case in CASES.values() if any(word in case.name for word in options.cases)]
    peers: dict[str, Peer] = {"penstock": Penstock(), "kafka": Kafka()}
    try:
        jars = ",".join(str(jar.resolve()) for jar in connector.jars(BUILD / "peers"))
        for peer in peers.values():
            peer.obtain(BUILD / "peers")
    except NotAvailableError as error:
        sys.exit(f"nothing to compare with: {error}")
    folder = BUILD / "spark"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(started(peer, folder / name)) for name, peer in peers.items()
        }
        filled(servers, cases, divisor)
        result = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "scale": {"name": options.scale, "rows_divided_by": divisor, "rounds": rounds},
            **machine.describe(),
            "kafka": peers["kafka"].version,
            "connector": connector.VERSION,
            "runs": [],
        }
        path = options.output or RESULTS / f"spark-{time.strftime('%Y%m%d-%H%M%S')}.json"
        for number in range(1, rounds + 1):
            for together in applications(cases):
                address = servers[together[0].reads]
                for run in measured(together, address, jars, folder / "case", divisor):
                    result["runs"].append({"round": number, **run})
                    took = run.get("failure") or f"{run['seconds']:.1f} s"
                    print(f"round {number}: {run['case']}: {took}", flush=True)
                    results.save(path, result)
    print("\n" + "\n".join(table(result["runs"])) + f"\n\nThe result is in {path}.")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make versus SPARK=1", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="quick")
    parser.add_argument(
        "--cases", nargs="+", metavar="WORD", default=[""], help="only those that have this word"
    )
    parser.add_argument("--output", type=Path, help="result file")
    return parser.parse_args()


@contextmanager
def started(peer: Peer, folder: Path) -> Iterator[str]:
    """Run a broker, with its defaults, on all processors; yields its address."""
    folder.mkdir()
    launch = peer.prepare(folder, Durability.WRITTEN)
    log = folder / "log"
    cpus = sorted(os.sched_getaffinity(0))
    with running(
        launch.command, folder=folder, log=log, cpus=cpus, environment=launch.environment
    ) as process:
        wait_for_port(launch.ports["kafka"], process, START_SECONDS, log)
        yield f"127.0.0.1:{launch.ports['kafka']}"


def filled(servers: dict[str, str], cases: list[Case], divisor: int) -> None:
    topics = {case.topic.name: case.topic for case in cases}
    for topic in topics.values():
        for name, address in servers.items():
            print(f"{rows_of(topic, divisor):,} rows of {topic.name} to {name}", flush=True)
            fill(address, topic, rows_of(topic, divisor))


def rows_of(topic: Topic, divisor: int) -> int:
    return topic.rows if topic is SMALL else topic.rows // divisor


def measured(
    cases: list[Case], address: str, jars: str, folder: Path, divisor: int
) -> Iterator[Run]:
    """Run an application for the cases, and yield what each turn took."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = [case.name for case in cases]
    order = {"cases": names, "address": address, "jars": jars, "folder": str(folder)}
    log = folder / "log"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    cpus = sorted(os.sched_getaffinity(0))
    with running(
        [sys.executable, "-m", "versus.spark.application", json.dumps(order)],
        folder=folder,
        log=log,
        cpus=cpus,
        environment=environment,
        talks=True,
    ) as process:
        for turn, case in in_turn(cases):
            run = measured_turn(process, folder, rows_of(case.topic, divisor) * case.times)
            if run is None:
                failure = tail(log).splitlines()[-1:] or "it ended"
                yield {"case": case.name, "turn": turn, "failure": failure}
                return
            yield {"case": case.name, "turn": turn, **run}


def measured_turn(process: subprocess.Popen[str], folder: Path, rows: int) -> Run | None:
    """Return what a turn took; None where the application does not come to its end."""
    assert process.stdin is not None
    assert process.stdout is not None
    if process.stdout.readline() != "begin\n":
        return None
    watch = Watch(process.pid, folder)
    watch.begin()
    began = time.perf_counter()
    print(file=process.stdin, flush=True)
    if process.stdout.readline() != "end\n":
        return None
    seconds = time.perf_counter() - began
    use = watch.end()
    print(file=process.stdin, flush=True)
    return {
        "rows": rows,
        "seconds": seconds,
        "cpu_seconds": use["broker_cpu_seconds"],
        "resident_mib": use["broker_resident_mib"],
        SPEED: rows / seconds,
        EFFICIENCY: rows / use["broker_cpu_seconds"],
    }


def table(runs: list[Run]) -> Iterator[str]:
    """The cases and the bars as tables of Markdown."""
    good = [run for run in runs if "failure" not in run]
    yield f"| case | {SPEED} | {EFFICIENCY} | seconds | peak memory, MiB |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for case in dict.fromkeys(run["case"] for run in good):
        cells = [f"{middle(good, case, SPEED):,.0f}", f"{middle(good, case, EFFICIENCY):,.0f}"]
        cells += [
            f"{middle(good, case, 'seconds'):.1f}",
            f"{middle(good, case, 'resident_mib'):.0f}",
        ]
        yield f"| {case} | {' | '.join(cells)} |"
    yield ""
    yield "| ours ÷ theirs | of | bar | median | each |"
    yield "| --- | --- | ---: | ---: | --- |"
    for bar in BARS:
        if ratios := by_turn(good, bar):
            cells = [f"{bar.at_least}", f"{statistics.median(ratios):.2f}"]
            cells.append(" ".join(f"{ratio:.2f}" for ratio in ratios))
            yield f"| {bar.ours} ÷ {bar.theirs} | {bar.figure} | {' | '.join(cells)} |"
    for conversion in CONVERSIONS:
        if ratios := alone(good, conversion):
            cells = [f"{statistics.median(ratios):.2f}", " ".join(f"{each:.2f}" for each in ratios)]
            yield f"| {conversion.name} | {EFFICIENCY}, reading left out | | {' | '.join(cells)} |"


def middle(runs: list[Run], case: str, figure: str) -> float:
    return statistics.median(run[figure] for run in runs if run["case"] == case)


def by_turn(runs: list[Run], bar: Bar) -> list[float]:
    """Ours ÷ theirs in each turn that has both: what ran next to each other is compared."""
    figures = {(run["round"], run["turn"], run["case"]): run[bar.figure] for run in runs}
    turns = sorted({(run["round"], run["turn"]) for run in runs})
    return [
        figures[*turn, bar.ours] / figures[*turn, bar.theirs]
        for turn in turns
        if {(*turn, bar.ours), (*turn, bar.theirs)} <= figures.keys()
    ]


def alone(runs: list[Run], conversion: Conversion) -> list[float]:
    """Ours ÷ theirs of a conversion, in each round that has all four cases."""
    spent = {(run["round"], run["case"]): 1 / run[EFFICIENCY] for run in runs}

    def conversion_seconds(number: int, cases: tuple[str, str]) -> float:
        columns, stored = cases
        return spent[number, columns] - spent[number, stored]

    return [
        conversion_seconds(number, conversion.theirs) / conversion_seconds(number, conversion.ours)
        for number in sorted({run["round"] for run in runs})
        if {(number, case) for case in conversion.cases} <= spent.keys()
    ]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; all that was started is ended")
