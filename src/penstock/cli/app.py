"""Puts the commands together and turns their failures into one line and an exit code.

The modules of the commands import at their top only what all of them need; what one command needs
is imported when it runs, so that `penstock serve` does not wait for tables and clients.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from penstock.cli.completion import complete_context
from penstock.cli.consume import consume_command
from penstock.cli.contexts import context_app
from penstock.cli.demo import demo_command
from penstock.cli.failure import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, CommandError, UsageError
from penstock.cli.groups import group_app
from penstock.cli.output import OutputClosed
from penstock.cli.pipeline import pipeline_app
from penstock.cli.produce import produce_command
from penstock.cli.recover import recover_command
from penstock.cli.serve import serve_command
from penstock.cli.topics import topic_app
from penstock.cli.version import print_version, version_command

app = typer.Typer(
    name="penstock",
    help="One message log that Kafka, Pulsar and Iggy clients use in their own protocols.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(
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
            "--version", is_eager=True, callback=print_version, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


app.command("serve")(serve_command)
app.command("demo")(demo_command)
app.add_typer(topic_app, name="topic")
app.command("produce")(produce_command)
app.command("consume")(consume_command)
app.add_typer(group_app, name="group")
app.add_typer(context_app, name="context")
app.add_typer(pipeline_app, name="pipeline")
app.command("recover")(recover_command)
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
    except OutputClosed:
        # Python would complain about what it still has to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    sys.exit(0)


def _end(failure: CommandError, code: int) -> NoReturn:
    typer.echo(f"penstock: {failure}", err=True)
    sys.exit(code)
