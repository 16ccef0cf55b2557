"""The page of all numbers: where Penstock loses, and each load of each pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from versus.cells import limits, ours, ratio, spread, theirs
from versus.loads import BY_NAME
from versus.ratios import CPU_GB, CPU_MILLION, PENSTOCK, Comparison, Run, compare, measures, select

PAIRS: Final = {"kafka": "Apache Kafka", "pulsar": "Apache Pulsar standalone", "iggy": "Iggy"}
DURABILITIES: Final = {
    "flushed": "both flush to stable storage before they acknowledge",
    "written": "both acknowledge what the operating system's page cache has",
}
LAYOUTS: Final = {
    "two shared": "two cores that broker and client share",
    "one each": "one core for the broker and one for the client",
}

INTRODUCTION: Final = """\
# All numbers

Every load, durability and layout, as [the benchmarks](../benchmarks.md) were taken; how to read
them is said there. A cell is the median, in brackets are the least and the most of all rounds.
"""


def page(result: dict[str, Any]) -> Iterator[str]:
    """The lines of the whole page."""
    runs = result["runs"]
    yield INTRODUCTION
    yield from losses(runs)
    for protocol, peer in PAIRS.items():
        of_pair = [run for run in runs if run["protocol"] == protocol]
        if of_pair:
            yield from pair(of_pair, protocol, peer, result)


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


def loads_of(runs: list[Run]) -> list[str]:
    present = {run["load"] for run in runs}
    return [name for name in BY_NAME if name in present]
