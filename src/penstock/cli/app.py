"""The command line of this process, and how failures become one line and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from penstock import __version__
from penstock.cli.commands import Commands
from penstock.cli.completion import complete_context
from penstock.cli.failure import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CommandError, UsageError
from penstock.cli.output import OutputClosed

app = typer.Typer(
    name="penstock",
    cls=Commands,
    epilog="Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 130 interrupted.",
    invoke_without_command=True,
    rich_markup_mode=None,  # to load rich takes longer than most commands do
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def penstock(
    call: typer.Context,
    *,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_context,
            help="Speak to the broker of this context; 'penstock context list' shows them.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """One message log that Kafka, Pulsar and Iggy clients use in their own protocols."""
    del context, version
    if call.invoked_subcommand is None:
        typer.echo(call.get_help())
        raise typer.Exit(EXIT_USAGE)


def run() -> NoReturn:
    """Run the command that this process was started with, and exit."""
    try:
        app()
    except UsageError as failure:
        _end(failure, EXIT_USAGE)
    except CommandError as failure:
        _end(failure, EXIT_FAILED)
    except OSError as error:
        if error.filename is None:  # It is no file that the command line named.
            raise
        _end(CommandError(f"{error.filename!r} can't be used: {error.strerror}"), EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except OutputClosed:
        sys.exit(EXIT_FAILED)
    sys.exit(0)


def _end(failure: CommandError, code: int) -> NoReturn:
    typer.echo(f"penstock: {failure}", err=True)
    sys.exit(code)
