"""One dot plot a protocol: how much better or worse Penstock is than its peer, with all rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from versus.loads import BY_NAME, PROTOCOLS
from versus.ratios import (
    CPU_GB,
    CPU_MILLION,
    LATENCIES,
    MEMORY,
    MESSAGES,
    SPEED,
    Comparison,
    Measure,
    Run,
    Spread,
    compare,
    select,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAYOUT: Final = "two shared"
BATCHED: Final = ("produce-1024-default", "consume-1024-default", "produce-1024-tuned")
CONSUMED: Final = ("consume-1024-tuned", "produce-100-default", "consume-100-tuned")
GROUPS: Final[tuple[tuple[str, tuple[tuple[str, Measure], ...]], ...]] = (
    (
        "throughput",
        (*((load, SPEED) for load in BATCHED + CONSUMED), ("requests-64", MESSAGES)),
    ),
    (
        "broker CPU",
        (*((load, CPU_GB) for load in BATCHED + CONSUMED), ("requests-64", CPU_MILLION)),
    ),
    ("p99", (("publish-1000", LATENCIES[1]), ("end-to-end-1000", LATENCIES[1]))),
    ("memory", (("produce-1024-default", MEMORY),)),
)
"""What is drawn, from top to bottom."""
DURABILITIES: Final = {"flushed": ("#1f6f8b", "#1f6f8b"), "written": ("#d9822b", "white")}
"""Colours of line and dot."""
INCHES_WIDE: Final = 5.2
INCHES_A_ROW: Final = 0.27
BETWEEN_DURABILITIES: Final = 0.16
EDGE: Final = 32.0
"""Ratios beyond are drawn at the edge: a factor of thirty or a hundred makes no difference."""

Row = tuple[str, str, Measure]


def draw(result: dict[str, Any], folder: Path) -> list[Path]:
    """Write a plot of each protocol that has a peer into `folder` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = (_figure(result["runs"], protocol, folder) for protocol in PROTOCOLS)
    return [path for path in drawn if path is not None]


def advantage(comparison: Comparison) -> Spread | None:
    """How many times better Penstock is: the ratio, turned over where less is better."""
    ratio = comparison.ratio
    if ratio is None or comparison.overloaded or not ratio.least:
        return None
    if comparison.measure.more_is_better:
        return ratio
    return Spread(1 / ratio.most, 1 / ratio.median, 1 / ratio.least)


def _figure(runs: list[Run], protocol: str, folder: Path) -> Path | None:
    found = {
        durability: _advantages(select(runs, protocol, durability, LAYOUT))
        for durability in DURABILITIES
    }
    rows = [
        (group, load, measure)
        for group, lines in GROUPS
        for load, measure in lines
        if any((load, measure.name) in these for these in found.values())
    ]
    if not rows:
        return None
    figure = Figure(figsize=(INCHES_WIDE, INCHES_A_ROW * len(rows) + 1.1), layout="constrained")
    axes = figure.subplots()
    _dots(axes, rows, found)
    _frame(axes, rows)
    figure.suptitle(f"{protocol} clients: to the right of 1x, Penstock is better", fontsize=9)
    figure.legend(fontsize=8, loc="outside lower center", ncols=len(DURABILITIES))
    path = folder / f"{protocol}.svg"
    # Neither the day nor the drawing library's version is to change the file.
    unchanging = {"Date": None, "Creator": None}
    with mpl.rc_context({"svg.hashsalt": protocol, "svg.fonttype": "none"}):
        figure.savefig(path, metadata=unchanging)
    return path


def _advantages(runs: list[Run]) -> dict[tuple[str, str], Spread]:
    loads = {load for _, lines in GROUPS for load, _ in lines}
    return {
        (load, comparison.measure.name): spread
        for load in loads
        for comparison in compare(runs, load)
        if (spread := advantage(comparison)) is not None
    }


def _dots(axes: Axes, rows: list[Row], found: dict[str, dict[tuple[str, str], Spread]]) -> None:
    for number, (durability, (line, dot)) in enumerate(DURABILITIES.items()):
        shift = (number - 0.5) * 2 * BETWEEN_DURABILITIES
        label = durability
        for place, (_, load, measure) in enumerate(rows):
            spread = found[durability].get((load, measure.name))
            if spread is None:
                continue
            least, median, most = (
                min(max(value, 1 / EDGE), EDGE)
                for value in (spread.least, spread.median, spread.most)
            )
            axes.plot([least, most], [place + shift] * 2, color=line, linewidth=1.5, zorder=2)
            axes.plot(
                *([median], [place + shift], "o"),
                markersize=5,
                markerfacecolor=dot,
                markeredgecolor=line,
                label=label,
                zorder=3,
            )
            label = "_"  # one entry in the legend


def _frame(axes: Axes, rows: list[Row]) -> None:
    titles = [_title(number, rows) for number in range(len(rows))]
    axes.set_yticks(range(len(rows)), titles, fontsize=8)
    axes.invert_yaxis()
    for number in range(1, len(rows)):
        if rows[number][0] != rows[number - 1][0]:
            axes.axhline(number - 0.5, color="#cccccc", linewidth=0.8)
    axes.axvline(1, color="#888888", linewidth=1)
    axes.set_xscale("log", base=2)
    least, most = axes.get_xlim()
    axes.set_xlim(min(least, 0.5), max(most, 2))
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="#eeeeee")


def _title(number: int, rows: list[Row]) -> str:
    group, load, _ = rows[number]
    short = BY_NAME[load].title.replace(" batches", "").replace(" requests under way", " under way")
    is_first = number == 0 or rows[number - 1][0] != group
    return f"{group}: {short}" if is_first else short
