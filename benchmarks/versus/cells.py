"""How a comparison reads in a cell of a table."""

from __future__ import annotations

from typing import Final

from versus.ratios import PENSTOCK, Comparison, Spread

NONE: Final = "-"
OVERLOAD: Final = "overload"
LIMITS: Final = {
    "broker": "the broker",
    "client": "**the client**",
    "processor": "both cores together",
    "others": "**disturbed**",
    "waiting": "waiting",
    "": NONE,
}


def ours(comparison: Comparison) -> str:
    return _side(comparison.penstock, PENSTOCK, comparison)


def theirs(comparison: Comparison) -> str:
    peer = next((name for name in comparison.limits if name != PENSTOCK), "")
    return _side(comparison.peer, peer, comparison)


def ratio(comparison: Comparison) -> str:
    """The ratio of all rounds; bold where Penstock loses."""
    return _emphasized(spread(comparison.ratio), comparison)


def median_ratio(comparison: Comparison) -> str:
    """The median ratio alone; bold where Penstock loses."""
    found = comparison.ratio
    return _emphasized(NONE if found is None else number(found.median), comparison)


def limits(comparison: Comparison) -> str:
    named = [LIMITS[limit] for limit in comparison.limits.values()]
    return "" if set(named) == {LIMITS[""]} else ", ".join(named)


def _side(measured: Spread | None, broker: str, comparison: Comparison) -> str:
    failure = comparison.failures.get(broker)
    if measured is None and failure is not None:
        return "failed: " + " ".join(failure.split())[:120].replace("|", "/")
    return f"overload: {spread(measured)}" if broker in comparison.overloaded else spread(measured)


def _emphasized(text: str, comparison: Comparison) -> str:
    shown = OVERLOAD if comparison.overloaded else text
    return f"**{shown}**" if comparison.penstock_loses and shown != NONE else shown


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
