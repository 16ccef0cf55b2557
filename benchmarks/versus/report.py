"""Make docs/benchmarks.md, the page of all numbers and the plots from one result file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from versus import results, tables
from versus.cells import NONE, median_ratio, number
from versus.loads import BY_NAME, PROTOCOLS
from versus.plots import LAYOUT, draw
from versus.ratios import (
    CPU_GB,
    CPU_MILLION,
    LATENCIES,
    MEMORY,
    MESSAGES,
    SPEED,
    START,
    Measure,
    Run,
    compare,
    select,
)
from versus.tables import DURABILITIES, PAIRS

DOCS: Final = Path("docs")
GLANCE: Final = (
    ("start", START[1]),
    ("produce-1024-default", SPEED),
    ("produce-1024-default", CPU_GB),
    ("produce-1024-default", MEMORY),
    ("consume-1024-default", SPEED),
    ("consume-1024-default", CPU_GB),
    ("consume-1024-tuned", SPEED),
    ("consume-1024-tuned", CPU_GB),
    ("requests-64", MESSAGES),
    ("requests-64", CPU_MILLION),
    ("publish-1000", LATENCIES[1]),
    ("end-to-end-1000", LATENCIES[1]),
    ("many", SPEED),
)
"""What is shown first: a load, and what is compared of it."""


INTRODUCTION: Final = """\
# Benchmarks

Penstock beside the brokers whose protocols it speaks: on one machine, one broker at a time, driven
by the same client with the same settings. `make versus` takes one round of it, `SCALE=medium` and
`SCALE=full` five; `make report RESULT=file` makes these pages from a result.
[All numbers](benchmarks/tables.md) are on a page of their own, with a list of where Penstock loses.
"""

READING: Final = """\
## How to read it

- The two brokers of a pair take turns, each time from an empty folder and after a warm-up. A figure
  is the median of all rounds; lines in the plots go from the least to the most.
- **Ratio** is Penstock ÷ peer of the same round. For throughput more than 1 is in Penstock's
  favour, for everything else less than 1. Where Penstock loses by more than 2 %, it is bold. The
  plots turn ratios over where less is better: right of 1x is Penstock's side.
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
  messages were sent is left out. **Overload**: more than half of the messages took over 100 ms, so
  the rate was not kept, and the percentiles say how long a queue had grown; they are not compared.
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
    folder = options.output.with_suffix("")
    drawn = draw(result, folder)
    pictures = [f"{folder.name}/{path.name}" for path in drawn]
    pages = {options.output: page(result, pictures), folder / "tables.md": tables.page(result)}
    for path, lines in pages.items():
        path.write_text("\n".join(lines), encoding="utf-8")
    sys.stdout.write(f"{' and '.join(map(str, pages))} and {len(drawn)} plots are written\n")


def page(result: dict[str, Any], pictures: list[str]) -> Iterator[str]:
    """The lines of the page that says what came of it."""
    runs = result["runs"]
    yield INTRODUCTION
    yield from glance(runs)
    yield from (f"![{picture}]({picture})\n" for picture in pictures)
    yield from crossing(runs)
    yield READING
    yield from setting(result)


def glance(runs: list[Run]) -> Iterator[str]:
    """The ratios that matter most, on two shared cores, of both durabilities."""
    yield "## At a glance\n"
    yield "Penstock ÷ peer, medians, on two shared cores. First where both flush before they"
    yield "acknowledge, then where both acknowledge what is in the page cache.\n"
    yield f"| load | measure | {' | '.join(PAIRS.values())} |"
    yield "| --- | --- |" + " --- |" * len(PAIRS)
    for load, measure in GLANCE:
        better = "more is better" if measure.more_is_better else "less is better"
        cells = [glanced(runs, protocol, load, measure) for protocol in PAIRS]
        title = BY_NAME[load].title
        yield f"| {title} | {measure.name} ({better}) | {' | '.join(cells)} |"
    yield ""


def glanced(runs: list[Run], protocol: str, load: str, measure: Measure) -> str:
    """The median ratios of a load, flushed and written."""
    cells = []
    for durability in DURABILITIES:
        comparisons = compare(select(runs, protocol, durability, LAYOUT), load)
        found = [one for one in comparisons if one.measure is measure]
        cells.append(median_ratio(found[0]) if found else NONE)
    return " · ".join(cells)


def crossing(runs: list[Run]) -> Iterator[str]:
    """What a reader gets from another protocol's messages, beside those of its own."""
    read = {load.writer: name for name, load in BY_NAME.items() if load.writer}
    crossed_over = [run for run in runs if run["load"] in read.values()]
    if not crossed_over:
        return
    disturbed = sum(run.get("limit") == "others" for run in crossed_over)
    yield "## Across protocols\n"
    yield "What the clients of one protocol read of what another's wrote: 1 KB, default batches,"
    yield "both on two shared cores, all cells from one run. Throughput in MB/s, then broker CPU"
    yield "in s/GB.\n"
    yield "| written by | " + " | ".join(f"read by {protocol}" for protocol in PROTOCOLS) + " |"
    yield "| --- |" + " --- |" * len(PROTOCOLS)
    for writer in PROTOCOLS:
        cells = (crossed(runs, reader, read[writer]) for reader in PROTOCOLS)
        yield f"| {writer} | {' | '.join(cells)} |"
    yield ""
    if disturbed:
        yield f"Other programs disturbed {disturbed} of these {len(crossed_over)} runs.\n"


def crossed(runs: list[Run], reader: str, load: str) -> str:
    comparisons = compare(select(runs, reader, "flushed", LAYOUT), load)
    found = {one.measure: one.penstock for one in comparisons}
    speed, cpu = found.get(SPEED), found.get(CPU_GB)
    return f"{number(speed.median)}, {number(cpu.median)}" if speed and cpu else NONE


def setting(result: dict[str, Any]) -> Iterator[str]:
    """Machine, versions, and what is set for each durability."""
    machine, versions, scale = result["machine"], result["versions"], result["scale"]
    yield "## What was measured\n"
    yield f"- {computer(machine)}"
    clients = ("confluent-kafka", "pulsar-client", "apache-iggy")
    named = ", ".join(f"{client} {versions[client]}" for client in clients)
    yield f"- Python {versions['python']}, Java {versions['java']}; clients: {named}"
    yield f"- Penstock at commit {result['commit']}, on {result['started'][:10]}"
    yield from additions(result)
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


def additions(result: dict[str, Any]) -> Iterator[str]:
    """Loads that were measured later than the others, and so elsewhere or of another state."""
    for later in result.get("added", []):
        titles = "; ".join(BY_NAME[name].title for name in later["loads"])
        yield f"- later, at commit {later['commit']}, on {later['started'][:10]}: {titles}."
        if later["machine"] != result["machine"]:
            yield f"  Machine: {computer(later['machine'])}"


def computer(machine: dict[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB,"
        f" {machine['system']}"
    )


if __name__ == "__main__":
    main()
