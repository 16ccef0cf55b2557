"""Puts the commands together and turns their failures into one line and an exit code.

The modules of the commands import at their top only what all of them need; what one command needs
is imported when it runs, so that `penstock serve` does not wait for tables and clients.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from penstock.cli.failure import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CommandError, UsageError
from penstock.cli.serve import serve_command
from penstock.cli.version import version_command

app = typer.Typer(
    name="penstock",
    help="One message log that Kafka, Pulsar and Iggy clients use in their own protocols.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve_command)
app.command("version")(version_command)


def run() -> NoReturn:
    """Run the command that this process was started with, and exit."""
    try:
        app()
    except UsageError as failure:
        _end(failure, EXIT_USAGE)
    except CommandError as failure:
        _end(failure, EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(0)


def _end(failure: CommandError, code: int) -> NoReturn:
    typer.echo(f"penstock: {failure}", err=True)
    sys.exit(code)
