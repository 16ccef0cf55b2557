"""`penstock demo`: real flights through three clients, one log and one Spark table."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.failure import CommandError


def demo_command(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the broker up until Ctrl-C, to try clients on.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Use only so many flights, at least 1000.", min=1000)
    ] = None,
) -> None:
    """Send the flights of 2013 through three clients, read them by all, and make a Spark table.

    Starts a broker of its own on free ports and leaves nothing behind. The exit code is 0 only if
    every client and the table agree with the source.
    """
    try:
        from penstock.demo.run import Demo
    except ModuleNotFoundError as error:
        raise CommandError(f"{error}: pip install 'penstock-broker[demo]'") from error
    from rich.console import Console

    from penstock.demo.processes import DemoError
    from penstock.pipeline.jobs.job import PipelineError
    from penstock.pipeline.session import SessionError, check_java

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as folder:
        demo = Demo(console, Path(folder), limit)
        try:
            check_java()
            agree = demo.run(_wait if keep else None)
        except (DemoError, SessionError, ModuleNotFoundError, PipelineError) as error:
            raise CommandError(str(error)) from error
    if not agree:
        raise CommandError("not everything agrees; see the rows that say 'differs'")
    console.print("[green]Everything agrees.[/]")


def _wait(addresses: Mapping[str, str]) -> None:
    from penstock.demo.hints import lines_to_try

    typer.echo(lines_to_try(addresses))
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()
