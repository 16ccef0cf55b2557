"""Plots of a result: ratios of throughput and of broker CPU, and latencies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from versus.loads import BY_NAME
from versus.ratios import CPU_GB, LATENCIES, PENSTOCK, SPEED, Comparison, Run, compare

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS_AN_INCH: Final = 90
COLOURS: Final = {PENSTOCK: "#1f6f8b", "kafka": "#444444", "pulsar": "#8b5fbf", "iggy": "#d9822b"}
LAYOUT: Final = "two shared"
BATCHED: Final = [name for name in BY_NAME if name.startswith(("produce-", "consume-"))]
PACED: Final = [name for name, load in BY_NAME.items() if load.is_latency]


def draw(result: dict[str, Any], folder: Path) -> list[Path]:
    """Write all plots into `folder` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for protocol in ("kafka", "pulsar", "iggy"):
        for durability in ("flushed", "written"):
            wanted = {"protocol": protocol, "durability": durability, "layout": LAYOUT}
            runs = [run for run in result["runs"] if wanted.items() <= run.items()]
            if runs:
                drawn.append(_figure(runs, protocol, durability, folder))
    return drawn


def _figure(runs: list[Run], protocol: str, durability: str, folder: Path) -> Path:
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    speed, cpu, latency = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    _bars(speed, _comparisons(runs, BATCHED, SPEED), "throughput, MB/s (more is better)", protocol)
    _bars(cpu, _comparisons(runs, BATCHED, CPU_GB), "broker CPU, s/GB (less is better)", protocol)
    cpu.set_yticklabels([])
    _percentiles(latency, runs, protocol)
    figure.suptitle(f"{protocol} clients, {durability}")
    path = folder / f"{protocol}-{durability}.png"
    # The drawing library writes its version into a file, which would change with each update.
    figure.savefig(path, dpi=DOTS_AN_INCH, metadata={"Software": None})
    return path


def _comparisons(runs: list[Run], loads: list[str], measure: Any) -> list[Comparison]:
    return [
        comparison
        for load in loads
        for comparison in compare(runs, load)
        if comparison.measure is measure
    ]


def _bars(axes: Axes, comparisons: list[Comparison], title: str, peer: str) -> None:
    axes.set_title(title, fontsize=10)
    places = range(len(comparisons))
    axes.set_yticks(places, [BY_NAME[one.load].title for one in comparisons], fontsize=7)
    axes.invert_yaxis()
    sides = {
        PENSTOCK: [one.penstock for one in comparisons],
        peer: [one.peer for one in comparisons],
    }
    for shift, (name, spreads) in zip((-0.2, 0.2), sides.items(), strict=True):
        axes.barh(
            [place + shift for place in places],
            [spread.median if spread else 0 for spread in spreads],
            height=0.38,
            color=COLOURS[name] if name == PENSTOCK else COLOURS[peer],
            label=name if name == PENSTOCK else f"{peer} (peer)",
        )
    axes.legend(fontsize=7)


def _percentiles(axes: Axes, runs: list[Run], peer: str) -> None:
    axes.set_title("latency, ms (less is better)", fontsize=10)
    for load, style in zip(PACED, ("-", "--", ":"), strict=False):
        found = {one.measure.name: one for one in compare(runs, load)}
        for name in (PENSTOCK, peer):
            points = [
                (measure.name, side.median)
                for measure in LATENCIES
                if measure.name in found and (side := _side(found[measure.name], name)) is not None
            ]
            if points:
                label = f"{name if name == PENSTOCK else peer + ' (peer)'}: {load}"
                axes.plot(*zip(*points, strict=True), style, color=COLOURS[name], label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if axes.lines:
        axes.legend(fontsize=7)


def _side(comparison: Comparison, name: str) -> Any:
    return comparison.penstock if name == PENSTOCK else comparison.peer
