"""Make docs/benchmarks.md and its plots from one result file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from versus import results
from versus.loads import BY_NAME
from versus.plots import draw
from versus.ratios import (
    CPU_GB,
    CPU_MILLION,
    LATENCIES,
    MEMORY,
    MESSAGES,
    PENSTOCK,
    SPEED,
    START,
    Comparison,
    Measure,
    Run,
    Spread,
    compare,
    measures,
)

DOCS: Final = Path("docs")
PAIRS: Final = {"kafka": "Apache Kafka", "pulsar": "Apache Pulsar standalone", "iggy": "Iggy"}
DURABILITIES: Final = {
    "flushed": "both flush to stable storage before they acknowledge",
    "written": "both acknowledge what the operating system's page cache has",
}
LAYOUTS: Final = {
    "two shared": "two cores that broker and client share",
    "one each": "one core for the broker and one for the client",
}
GLANCE: Final = (
    ("start", START[1]),
    ("produce-1024-default", SPEED),
    ("produce-1024-default", CPU_GB),
    ("produce-1024-default", MEMORY),
    ("consume-1024-default", SPEED),
    ("consume-1024-default", CPU_GB),
    ("requests-64", MESSAGES),
    ("requests-64", CPU_MILLION),
    ("publish-1000", LATENCIES[1]),
)
"""What is shown first: a load, and what is compared of it."""
NONE: Final = "-"
LIMITS: Final = {
    "broker": "the broker",
    "client": "**the client**",
    "processor": "both cores together",
    "others": "**disturbed**",
    "waiting": "waiting",
    "": NONE,
}

INTRODUCTION: Final = """\
# Benchmarks

Penstock beside the brokers whose protocols it speaks: on one machine, one broker at a time, driven
by the same client with the same settings. `make versus` takes one round of it, `SCALE=medium` and
`SCALE=full` five; `make report RESULT=file` makes this page from a result.

## How to read it

- The two brokers of a pair take turns, each time from an empty folder and after a warm-up. A cell
  is the median; in brackets are the least and the most of all rounds.
- **Ratio** is Penstock ÷ peer of the same round. For throughput more than 1 is in Penstock's
  favour, for everything else less than 1. Where Penstock loses by more than 2 %, it is bold.
- Broker CPU is what the operating system counts for the broker's processes, in seconds a gigabyte
  (10⁹ bytes of values) and a million messages.
- **Limit** names what could not have gone faster, for Penstock and for the peer: the broker, the
  client, both cores together, or none of them, and then it was waiting for the disk and for
  answers. Where it is the client, the throughput says little about the brokers, and their CPU says
  more. Disturbed means that other programs took a fifth of the machine or more.
- With its defaults, librdkafka rests for a second (`fetch.queue.backoff.ms`) each time it holds
  100,000 messages or 64 MiB that nobody took yet (`queued.min.messages`), and they are taken long
  before it goes on. A broker that answers faster fills that queue sooner and more often. Where a
  consumer from Kafka with default batches is waiting, above all of 100 B, it waits for itself, and
  the ratio of the throughputs says nothing about the brokers; with tuned batches it does not rest.
- Latency is taken at a fixed rate, from the time at which a message was due and not from when it
  was sent, so that a stall counts for every message that it delays. A percentile for which too few
  messages were sent is left out.
- Disk is what was allocated at the end of a load: Pulsar writes each message to its journal at once
  and to its ledger later. Iggy's server is set to write each batch before it answers; by default
  up to 1024 acknowledged messages are only in its memory, which no other side here would do.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make report", description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("--output", type=Path, default=DOCS / "benchmarks.md")
    options = parser.parse_args()
    result = results.load(options.result)
    pictures = options.output.with_suffix("")
    drawn = draw(result, pictures)
    text = "\n".join(page(result, [f"{pictures.name}/{path.name}" for path in drawn]))
    options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{options.output} and {len(drawn)} plots are written\n")


def page(result: dict[str, Any], pictures: list[str]) -> Iterator[str]:
    """The lines of the whole page."""
    runs = result["runs"]
    yield INTRODUCTION
    yield from glance(runs)
    yield from setting(result)
    yield from losses(runs)
    yield from (f"![{picture}]({picture})\n" for picture in pictures)
    for protocol, peer in PAIRS.items():
        of_pair = [run for run in runs if run["protocol"] == protocol]
        if of_pair:
            yield from pair(of_pair, protocol, peer, result)


def glance(runs: list[Run]) -> Iterator[str]:
    """The ratios that matter most, of what was flushed on two shared cores."""
    yield "## At a glance\n"
    yield "Penstock ÷ peer, medians; both flush before they acknowledge, on two shared cores.\n"
    yield f"| load | measure | {' | '.join(PAIRS.values())} |"
    yield "| --- | --- |" + " --- |" * len(PAIRS)
    for load, measure in GLANCE:
        better = "more is better" if measure.more_is_better else "less is better"
        cells = [glanced(runs, protocol, load, measure) for protocol in PAIRS]
        title = BY_NAME[load].title
        yield f"| {title} | {measure.name} ({better}) | {' | '.join(cells)} |"
    yield ""


def glanced(runs: list[Run], protocol: str, load: str, measure: Measure) -> str:
    for comparison in compare(select(runs, protocol, "flushed", "two shared"), load):
        if comparison.measure is measure and comparison.ratio is not None:
            median = number(comparison.ratio.median)
            return f"**{median}**" if comparison.penstock_loses else median
    return NONE


def setting(result: dict[str, Any]) -> Iterator[str]:
    """Machine, versions, and what is set for each durability."""
    machine, versions, scale = result["machine"], result["versions"], result["scale"]
    yield "## What was measured\n"
    yield f"- {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB,"
    yield f"  {machine['system']}"
    clients = ("confluent-kafka", "pulsar-client", "apache-iggy")
    named = ", ".join(f"{client} {versions[client]}" for client in clients)
    yield f"- Python {versions['python']}, Java {versions['java']}; clients: {named}"
    yield f"- Penstock at commit {result['commit']}, on {result['started'][:10]}"
    yield f"- scale {scale['name']}, rounds: {scale['rounds']}"
    disturbed = sum(run.get("limit") == "others" for run in result["runs"])
    yield f"- runs: {len(result['runs'])}, of which other programs disturbed {disturbed}\n"
    yield "| broker | version | flushed | written |"
    yield "| --- | --- | --- | --- |"
    for name, broker in result["brokers"].items():
        settings = broker["settings"]
        version = broker["version"]
        if broker["client"]:
            version += f", both sides with its client {broker['client']}"
        yield f"| {name} | {version} | {settings['flushed']} | {settings['written']} |"
    for name, reason in result["not_measured"].items():
        yield f"| {name} | **not measured** | {reason} | |"
    yield ""


def losses(runs: list[Run]) -> Iterator[str]:
    """Every comparison that is to Penstock's disadvantage, in the order of the loads."""
    yield "## Where Penstock loses\n"
    lost = [
        (comparison, names)
        for names, comparison in every_comparison(runs)
        if comparison.penstock_loses and not told_by_gigabyte(comparison)
    ]
    if not lost:
        yield "Nowhere in these runs.\n"
        return
    yield "| against | durability | layout | load | measure | Penstock | peer | ratio |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for comparison, (protocol, durability, layout) in lost:
        measure = comparison.measure
        yield (
            f"| {protocol} | {durability} | {layout} | {BY_NAME[comparison.load].title} |"
            f" {measure.name}, {measure.unit} | {ours(comparison)} | {spread(comparison.peer)} |"
            f" {ratio(comparison)} |"
        )
    yield ""


def told_by_gigabyte(comparison: Comparison) -> bool:
    """Whether a line on CPU a gigabyte has the same ratio and says the same."""
    return comparison.measure is CPU_MILLION and CPU_GB in measures(comparison.load)


def every_comparison(runs: list[Run]) -> Iterator[tuple[tuple[str, str, str], Comparison]]:
    """All comparisons of pairs that were measured on both sides."""
    for layout in LAYOUTS:
        for protocol in PAIRS:
            for durability in DURABILITIES:
                names = (protocol, durability, layout)
                these = select(runs, *names)
                if {run["broker"] for run in these} > {PENSTOCK}:
                    for load in loads_of(these):
                        yield from ((names, comparison) for comparison in compare(these, load))


def select(runs: list[Run], protocol: str, durability: str, layout: str) -> list[Run]:
    wanted = {"protocol": protocol, "durability": durability, "layout": layout}
    return [run for run in runs if wanted.items() <= run.items()]


def loads_of(runs: list[Run]) -> list[str]:
    present = {run["load"] for run in runs}
    return [name for name in BY_NAME if name in present]


def pair(runs: list[Run], protocol: str, peer: str, result: dict[str, Any]) -> Iterator[str]:
    yield f"## {peer}\n"
    if reason := result["not_measured"].get(protocol):
        yield f"Not measured: {reason}. Penstock's own numbers stand alone.\n"
    for layout, where in LAYOUTS.items():
        for durability, how in DURABILITIES.items():
            these = select(runs, protocol, durability, layout)
            if these:
                yield f"### {durability.capitalize()}, {layout}\n"
                yield f"On {where}; {how}.\n"
                yield from table(these, peer)


def table(runs: list[Run], peer: str) -> Iterator[str]:
    yield f"| load | measure | Penstock | {peer} | ratio | limit of Penstock, of the peer |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for load in loads_of(runs):
        title = BY_NAME[load].title
        for comparison in compare(runs, load):
            measure = comparison.measure
            limit = limits(comparison) if title else ""
            yield (
                f"| {title} | {measure.name}, {measure.unit} | {ours(comparison)} |"
                f" {theirs(comparison)} | {ratio(comparison)} | {limit} |"
            )
            title = ""
    yield ""


def ours(comparison: Comparison) -> str:
    return _side(comparison.penstock, comparison.failures.get(PENSTOCK))


def theirs(comparison: Comparison) -> str:
    failures = [why for broker, why in comparison.failures.items() if broker != PENSTOCK]
    return _side(comparison.peer, failures[0] if failures else None)


def ratio(comparison: Comparison) -> str:
    if comparison.ratio is None:
        return NONE
    return (
        f"**{spread(comparison.ratio)}**" if comparison.penstock_loses else spread(comparison.ratio)
    )


def limits(comparison: Comparison) -> str:
    named = [LIMITS[limit] for limit in comparison.limits.values()]
    return "" if set(named) == {LIMITS[""]} else ", ".join(named)


def _side(measured: Spread | None, failure: str | None) -> str:
    if measured is None and failure is not None:
        return "failed: " + " ".join(failure.split())[:120].replace("|", "/")
    return spread(measured)


def spread(measured: Spread | None) -> str:
    if measured is None:
        return NONE
    if measured.least == measured.most:
        return number(measured.median)
    return f"{number(measured.median)} ({number(measured.least)} to {number(measured.most)})"


def number(value: float) -> str:
    """Three digits: more would be noise."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()
