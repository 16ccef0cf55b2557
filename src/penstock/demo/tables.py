"""What the demo shows: each result beside what it must equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.demo.digest import Digest
    from penstock.demo.flights import CarrierDelay


def events(found: Mapping[str, Digest], expected: Digest) -> Table:
    """Show what each client read beside what the source file holds."""
    shown = Table(title="What each client read")
    shown.add_column("events of")
    shown.add_column("count", justify="right")
    shown.add_column("digest of keys and values")
    shown.add_column("")
    shown.add_row("source file", f"{expected.count:,}", str(expected))
    for name, digest in found.items():
        shown.add_row(name, f"{digest.count:,}", str(digest), _verdict(digest == expected))
    return shown


def delays(found: Sequence[CarrierDelay], expected: Sequence[CarrierDelay]) -> Table:
    """Show the figure of the Spark table beside that of the source file."""
    shown = Table(title="Mean arrival delay by carrier, in minutes")
    shown.add_column("carrier")
    for name in ("flights in table", "in source", "delay in table", "in source"):
        shown.add_column(name, justify="right")
    shown.add_column("")
    tables = [{row.carrier: row for row in rows} for rows in (found, expected)]
    for carrier in sorted(tables[0].keys() | tables[1].keys()):
        rows = [table.get(carrier) for table in tables]
        flights = ["-" if row is None else f"{row.flights:,}" for row in rows]
        shown.add_row(carrier, *flights, *map(_minutes, rows), _verdict(rows[0] == rows[1]))
    return shown


def seconds(parts: Mapping[str, float]) -> Table:
    """Show how long each part took."""
    shown = Table(title="How long each part took")
    shown.add_column("part")
    shown.add_column("seconds", justify="right")
    for part, took in parts.items():
        shown.add_row(part, f"{took:.1f}")
    shown.add_section()
    shown.add_row("all", f"{sum(parts.values()):.1f}")
    return shown


def _minutes(row: CarrierDelay | None) -> str:
    return "-" if row is None or row.mean_delay is None else f"{row.mean_delay:.4f}"


def _verdict(same: bool) -> str:
    return "[green]same[/]" if same else "[red]differs[/]"
