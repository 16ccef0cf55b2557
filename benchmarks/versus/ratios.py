"""Comparisons of two brokers, from the runs of a result: pure arithmetic, no formatting."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from versus.loads import BY_NAME, Kind

PENSTOCK: Final = "penstock"
TIE: Final = 0.02
"""Medians that differ by less are called equal."""
OVERLOAD_MS: Final = 100.0
"""Where messages at a fixed rate take longer than this in the middle, most of it is a queue."""
Run = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """One number of a run, and which way it is better."""

    name: str
    unit: str
    of: Callable[[Run], float | None]
    more_is_better: bool = False


@dataclass(frozen=True)
class Spread:
    """Least, median and most of the same number over all rounds."""

    least: float
    median: float
    most: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Spread | None:
        ordered = sorted(values)
        if not ordered:
            return None
        return cls(ordered[0], statistics.median(ordered), ordered[-1])


@dataclass(frozen=True)
class Comparison:
    """One measure of one load. A side is None where it was not measured or has failed."""

    load: str
    measure: Measure
    penstock: Spread | None
    peer: Spread | None
    ratio: Spread | None
    """Penstock ÷ peer, round by round: what ran next to each other is compared."""
    limits: dict[str, str]
    """What limited each side, as most of its rounds say."""
    failures: dict[str, str]
    overloaded: frozenset[str]
    """Who could not keep a fixed rate: its percentiles tell how long the queue grew, no more."""

    @property
    def penstock_loses(self) -> bool:
        if self.overloaded:
            return self.overloaded == {PENSTOCK}
        if self.ratio is None:
            return PENSTOCK in self.failures and self.peer is not None
        if self.measure.more_is_better:
            return self.ratio.median < 1 - TIE
        return self.ratio.median > 1 + TIE


def throughput(run: Run) -> float:
    return float(run["messages"]) / float(run["load_seconds"])


def megabytes_a_second(run: Run) -> float:
    return throughput(run) * BY_NAME[run["load"]].value_bytes / 1e6


def cpu_a_gigabyte(run: Run) -> float:
    return 1e3 * float(run["broker_cpu_seconds"]) / (_bytes(run) / 1e6)


def cpu_a_million(run: Run) -> float:
    return 1e6 * float(run["broker_cpu_seconds"]) / float(run["messages"])


def transactions_a_second(run: Run) -> float:
    return throughput(run) / BY_NAME[run["load"]].transaction


def cpu_a_transaction(run: Run) -> float:
    count = float(run["messages"]) / BY_NAME[run["load"]].transaction
    return 1e3 * float(run["broker_cpu_seconds"]) / count


def _bytes(run: Run) -> float:
    return float(run["messages"]) * BY_NAME[run["load"]].value_bytes


def _latency(point: str) -> Callable[[Run], float | None]:
    def of(run: Run) -> float | None:
        return (run.get("latency_ms") or {}).get(point)

    return of


def _field(name: str) -> Callable[[Run], float | None]:
    return lambda run: run.get(name)


SPEED: Final = Measure("throughput", "MB/s", megabytes_a_second, more_is_better=True)
MESSAGES: Final = Measure("throughput", "messages/s", throughput, more_is_better=True)
CPU_GB: Final = Measure("broker CPU", "s/GB", cpu_a_gigabyte)
CPU_MILLION: Final = Measure("broker CPU", "s/million", cpu_a_million)
TRANSACTIONS: Final = Measure(
    "throughput", "transactions/s", transactions_a_second, more_is_better=True
)
CPU_TRANSACTION: Final = Measure("broker CPU", "ms a transaction", cpu_a_transaction)
LATENCIES: Final = tuple(
    Measure(point, "ms", _latency(point)) for point in ("p50", "p99", "p99.9", "p99.99")
)
START: Final = (
    Measure("listening after", "s", _field("listening_seconds")),
    Measure("first message acknowledged after", "s", _field("seconds")),
    Measure("resident when listening", "MiB", _field("listening_resident_mib")),
    Measure("resident after the first message", "MiB", _field("broker_resident_mib")),
)
MEMORY: Final = Measure("resident under the load", "MiB", _field("broker_resident_mib"))
DISK: Final = Measure(
    "disk", "bytes a message", lambda run: float(run["disk_bytes"]) / float(run["messages"])
)


MEASURES: Final = {
    Kind.START: START,
    Kind.PUBLISH: (*LATENCIES, CPU_MILLION),
    Kind.END_TO_END: (*LATENCIES, CPU_MILLION),
    Kind.REQUESTS: (MESSAGES, CPU_MILLION),
    Kind.TRANSACTIONS: (TRANSACTIONS, *LATENCIES[:2], CPU_TRANSACTION),
    Kind.CATCH_UP: (SPEED, LATENCIES[1], CPU_GB),
    Kind.PRODUCE: (SPEED, CPU_GB, CPU_MILLION, MEMORY, DISK),
}


def measures(load: str) -> tuple[Measure, ...]:
    """What is compared of a load."""
    return MEASURES.get(BY_NAME[load].kind, (SPEED, CPU_GB, CPU_MILLION))


def select(runs: list[Run], protocol: str, durability: str, layout: str) -> list[Run]:
    """The runs of one pair, durability and layout."""
    wanted = {"protocol": protocol, "durability": durability, "layout": layout}
    return [run for run in runs if wanted.items() <= run.items()]


def compare(runs: list[Run], load: str) -> list[Comparison]:
    """All measures of a load. `runs` are those of one pair, durability and layout."""
    of_load = [run for run in runs if run["load"] == load]
    good = [run for run in of_load if "failure" not in run]
    peers = {run["broker"] for run in of_load} - {PENSTOCK}
    peer = next(iter(peers), "")
    failures = {run["broker"]: run["failure"] for run in of_load if "failure" in run}
    limits = {broker: _limit(good, broker) for broker in (PENSTOCK, peer)}
    overloaded = _overloaded(good, load, (PENSTOCK, peer))
    found = []
    for measure in measures(load):
        ours, theirs = _by_round(good, PENSTOCK, measure), _by_round(good, peer, measure)
        if ours or theirs or failures:
            found.append(
                Comparison(
                    load=load,
                    measure=measure,
                    penstock=Spread.over(ours.values()),
                    peer=Spread.over(theirs.values()),
                    ratio=_ratio(ours, theirs),
                    limits=limits,
                    failures=failures,
                    overloaded=overloaded if measure in LATENCIES else frozenset(),
                )
            )
    return found


def _ratio(ours: dict[int, float], theirs: dict[int, float]) -> Spread | None:
    both = ours.keys() & theirs.keys()
    return Spread.over(ours[number] / theirs[number] for number in both if theirs[number])


def _by_round(runs: list[Run], broker: str, measure: Measure) -> dict[int, float]:
    values = {run["round"]: measure.of(run) for run in runs if run["broker"] == broker}
    return {number: value for number, value in values.items() if value is not None}


def _overloaded(runs: list[Run], load: str, brokers: tuple[str, ...]) -> frozenset[str]:
    if not BY_NAME[load].is_latency:
        return frozenset()
    middle = {
        broker: Spread.over(_by_round(runs, broker, LATENCIES[0]).values()) for broker in brokers
    }
    return frozenset(
        broker for broker, spread in middle.items() if spread and spread.median > OVERLOAD_MS
    )


def _limit(runs: list[Run], broker: str) -> str:
    named = [run["limit"] for run in runs if run["broker"] == broker and "limit" in run]
    return statistics.mode(named) if named else ""
