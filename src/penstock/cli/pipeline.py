"""`penstock pipeline run`: keep a table up to date with topics."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.client import DEFAULT_SERVER, Server
from penstock.cli.failure import CommandError, UsageError
from penstock.cli.output import Format, FormatOption, print_json

if TYPE_CHECKING:
    from penstock.pipeline.jobs.job import PipelineConfig, Progress, Run

pipeline_app = typer.Typer(help="Topics as tables, with Spark.", no_args_is_help=True)


@pipeline_app.callback()
def _group() -> None:
    """Topics as tables, with Spark."""


@pipeline_app.command("run")
def run_command(  # noqa: PLR0913, PLR0917  # Typer reads flags from the signature
    topics: Annotated[list[str], typer.Argument(help="Topics by their Kafka names.")],
    table: Annotated[Path, typer.Option("--table", help="Folder of the table.")],
    server: Server = DEFAULT_SERVER,
    table_format: Annotated[
        str, typer.Option(help="What the table is kept as: parquet, delta or iceberg.")
    ] = "parquet",
    partition_by: Annotated[
        list[str] | None, typer.Option(help="A column, day(COLUMN) or hour(COLUMN); repeatable.")
    ] = None,
    upsert_by: Annotated[
        list[str] | None,
        typer.Option(help="A column to keep the newest row of each value of; repeatable."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder of Spark's offsets; inside the table's unless given."),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(help="Seconds from batch to batch; without it the job ends when caught up."),
    ] = None,
    starting_offsets: Annotated[
        str, typer.Option(help="Where a new table begins: earliest, latest or JSON.")
    ] = "earliest",
    read_mode: Annotated[
        str, typer.Option(help="Read segment files (log), the broker (wire), or what works (auto).")
    ] = "auto",
    batch_rows: Annotated[int, typer.Option(help="Rows of one batch.", min=1)] = 2_000_000,
    headers: Annotated[bool, typer.Option("--headers", help="Add the column of headers.")] = False,
    ignore_data_loss: Annotated[
        bool, typer.Option("--ignore-data-loss", help="Go on where offsets are gone.")
    ] = False,
    master: Annotated[str, typer.Option(help="Spark's master URL.")] = "local[*]",
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Write topics to a table, each row once, until caught up or until Ctrl-C.

    A run that was ended in whatever way is taken up by the next one with the same table.
    """
    try:
        from penstock.pipeline.jobs.job import PipelineConfig
        from penstock.pipeline.source.options import ReadMode
        from penstock.pipeline.tables.interface import TableFormat
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[spark]'") from error
    config = PipelineConfig(
        servers=server,
        topics=tuple(topics),
        table=table,
        table_format=_choice("--table-format", table_format, list(TableFormat)),
        partition_by=tuple(partition_by or ()),
        upsert_by=tuple(upsert_by or ()),
        checkpoint=checkpoint,
        interval_seconds=every,
        starting_offsets=starting_offsets,
        read_mode=_choice("--read-mode", read_mode, list(ReadMode)),
        batch_rows=batch_rows,
        include_headers=headers,
        fail_on_data_loss=not ignore_data_loss,
        master=master,
    )
    _show(_run(config), output)


def _choice(flag: str, word: str, choices: list[Any]) -> Any:
    if word not in choices:
        raise UsageError(f"{flag} must be one of {', '.join(choices)}, not {word!r}")
    return choices[choices.index(word)]


def _run(config: PipelineConfig) -> Progress:
    from rich.console import Console

    from penstock.pipeline.jobs.job import PipelineError, Run
    from penstock.pipeline.session import JavaError, close_session
    from penstock.pipeline.tables.interface import TableError

    try:
        run = Run(config)
    except TableError as error:
        raise CommandError(str(error)) from error
    _stop_on_signals(run)
    # Progress is for the person at the terminal, what a program reads is the result. The terminal
    # is kept under a number of its own, for the job gives standard error's to Java as it starts.
    terminal = os.fdopen(os.dup(2), "w")
    with terminal, Console(file=terminal).status("Spark starts") as status:
        try:
            return run.run(lambda progress: status.update(_line(progress)))
        except (JavaError, PipelineError, TableError) as error:
            raise CommandError(str(error)) from error
        finally:
            close_session()


def _stop_on_signals(run: Run) -> None:
    """Stop in order at the first signal, and at once at the second."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def stop(*_: object) -> None:
        run.stop()
        for number in numbers:
            signal.signal(number, signal.default_int_handler)

    for number in numbers:
        signal.signal(number, stop)


def _line(progress: Progress) -> str:
    behind = "" if progress.behind is None else f", {progress.behind:,} behind"
    return f"{progress.rows:,} rows in {progress.batches} batches{behind}"


def _show(progress: Progress, output: Format) -> None:
    if output is Format.JSON:
        seconds = round(progress.seconds, 1)
        print_json({"rows": progress.rows, "batches": progress.batches, "seconds": seconds})
        return
    typer.echo(f"{_line(progress)}, {progress.seconds:.1f} s")
