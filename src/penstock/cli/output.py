"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from rich.text import Text

_WIDE: Final = 1 << 20
"""Columns of what is no terminal: nothing is wrapped for it."""


class Format(StrEnum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"


FormatOption = typer.Option(
    "--format", "-f", help="'table' for people, 'json' for programs.", show_default=True
)


class OutputClosed(Exception):  # noqa: N818 - the reader had enough, which is no error
    """Nobody reads what is printed any more, as after `penstock consume x | head`."""


def print_line(text: str) -> None:
    """Print one line at once. Raises OutputClosed."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_bytes(data: bytes) -> None:
    """Print bytes as they are, at once. Raises OutputClosed."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def counted(number: int, noun: str) -> str:
    """Say how many there are of what is named by a regular noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_json(value: object) -> None:
    """Print one JSON value on one line, at once. Raises OutputClosed."""
    print_line(json.dumps(value, ensure_ascii=False, default=str))


def print_rows(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], output: Format, *, empty: str
) -> None:
    """Print rows of the same keys. JSON has all keys, the table has `columns`."""
    if output is Format.JSON:
        print_json(rows)
        return
    if not rows:
        typer.echo(empty)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            column.upper().replace("_", " "),
            justify="right" if all(isinstance(row[column], int) for row in rows) else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)


def _cell(value: object) -> Text:
    """Return what a cell shows, to the letter: no markup, and nothing that moves the cursor."""
    from rich.text import Text

    text = "" if value is None else str(value)
    return Text("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))
