"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum

import typer


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
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosed from error


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
        numeric = all(isinstance(row[column], int) for row in rows)
        table.add_column(column.upper().replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*("" if row[column] is None else str(row[column]) for column in columns))
    Console().print(table)
