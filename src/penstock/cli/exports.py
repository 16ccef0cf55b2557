"""`penstock export` and `penstock import`: topics to Parquet files, and back."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from penstock.cli.client import DEFAULT_SERVER, Server
from penstock.cli.failure import CommandError
from penstock.cli.output import Format, FormatOption, print_json
from penstock.cli.paths import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.pipeline.logs.numbered import OpenSpark
    from penstock.pipeline.logs.progress import Report

Master: TypeAlias = Annotated[str, typer.Option(help="Spark's master URL.")]


def export_command(
    topics: Annotated[list[str], typer.Argument(help="Topics by their Kafka names.")],
    folder: Annotated[
        Path,
        typer.Option(
            "--to",
            parser=path_of,
            metavar="FOLDER",
            help="A new folder, or that of an export that was ended.",
        ),
    ],
    server: Server = DEFAULT_SERVER,
    read_mode: Annotated[
        str, typer.Option(help="Read segment files (log), the broker (wire), or what works (auto).")
    ] = "auto",
    master: Master = "local[*]",
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Write topics as Parquet files, of which 'penstock import' makes the same topics again.

    What is committed now is written, each record once. A run that was ended in whatever way is
    taken up by the next one with the same topics and folder; an export that is whole stays so.
    """
    with _failing_in_words("penstock export", master) as open_spark:
        from penstock.pipeline.logs.exporting import Exporting

        with Exporting(server, topics, folder, read_mode) as exporting, _bar() as report:
            made = exporting.run(open_spark, report)
    if output is Format.JSON:
        print_json({"records": made.rows, "files": made.files})
    else:
        typer.echo(f"{made.rows:,} records in {made.files} files")


def import_command(
    folder: Annotated[
        Path, typer.Argument(parser=path_of, metavar="FOLDER", help="The folder of an export.")
    ],
    topics: Annotated[
        list[str] | None, typer.Argument(help="Some of its topics; without a name, all.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    compression: Annotated[
        str, typer.Option(help="How batches are compressed: none, gzip, snappy, lz4 or zstd.")
    ] = "lz4",
    master: Master = "local[*]",
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Make the topics of an export: the same records at the same offsets, the same settings.

    Topics are made anew; one that exists has to be empty. A run that was ended in whatever way is
    taken up by the next one.
    """
    with _failing_in_words("penstock import", master) as open_spark:
        from penstock.pipeline.logs.importing import Importing

        importing = Importing(server, folder, topics or (), compression)
        with _bar() as report:
            made = importing.run(open_spark, report)
    if output is Format.JSON:
        print_json({"records": made.records, "partitions": made.partitions})
    else:
        typer.echo(f"{made.records:,} records in {made.partitions} partitions")


@contextmanager
def _failing_in_words(name: str, master: str) -> Iterator[OpenSpark]:
    """Hand out what opens the Spark session, which is closed at the end."""
    try:
        from penstock.pipeline.logs.manifest import ExportError
        from penstock.pipeline.session import SessionError, close_session, open_session
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[spark]'") from error
    try:
        yield lambda: open_session(name, master, Path(os.devnull))
    except (ExportError, SessionError) as error:
        raise CommandError(str(error)) from error
    finally:
        close_session()


@contextmanager
def _bar() -> Iterator[Report]:
    """Show how far it is, for the person at the terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Spark starts", total=None)
        yield lambda done, total: progress.update(
            task, description=f"{total:,} offsets", completed=done, total=total
        )
