"""`penstock pipeline backfill`: what is older than a table, added to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.failure import CommandError
from penstock.cli.output import OutputClosed, print_json
from penstock.cli.pipeline_files import Definition, loaded
from penstock.cli.pipeline_run import Lines
from penstock.cli.pipeline_signals import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Mapping


def backfill_command(
    file: Definition,
    begin: Annotated[
        str,
        typer.Option("--from", help="Where to begin: earliest, or offsets as JSON."),
    ] = "earliest",
    lines: Lines = False,
) -> None:
    """Add the rows that are older than those the pipeline's table began with, each once.

    The pipeline may run meanwhile. A backfill that was ended in whatever way is taken up by the
    next one.
    """
    config = loaded(file)
    from penstock.pipeline.jobs.backfill import Backfill
    from penstock.pipeline.jobs.checks import CheckError
    from penstock.pipeline.session import SessionError, close_session
    from penstock.pipeline.source.errors import SourceError
    from penstock.pipeline.source.options import OptionError
    from penstock.pipeline.tables.interface import TableError

    def show_batch(figures: Mapping[str, Any]) -> None:
        if not lines:
            typer.echo(f"{figures['rows']:,} rows, {figures['behind']:,} to go", err=True)
            return
        try:
            print_json(figures)
        except OutputClosed:
            backfill.stop()

    try:
        backfill = Backfill(config, show_batch)
        stop_on_signals(backfill)
        filled = backfill.run(begin)
    except (CheckError, SourceError, OptionError, TableError, SessionError, OSError) as error:
        raise CommandError(str(error)) from error
    finally:
        close_session()
    result = f"{filled.rows:,} rows added in {filled.batches} batches, {filled.behind:,} to go"
    typer.echo(result, err=lines)
