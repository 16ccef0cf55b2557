"""The commands by name, of which only the one that is run is loaded.

Their modules import what they need: tables, clients, Spark. `penstock --help` needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import CommandInfo, TyperInfo

if TYPE_CHECKING:
    AnyCommand = Any
    """Of typer's own copy of click, or of click, whichever its version has."""


class Place(NamedTuple):
    """Where a command is: a function, or a `typer.Typer` of several."""

    module: str
    name: str
    summary: str
    """The first sentence of its help text."""


COMMANDS: Final = {
    "serve": Place(
        "penstock.cli.serve",
        "serve_command",
        "Run a broker for Kafka, Pulsar and Iggy clients until Ctrl-C or SIGTERM.",
    ),
    "demo": Place(
        "penstock.cli.demo",
        "demo_command",
        "Send the flights of 2013 through three clients, read them by all, and make a Spark table.",
    ),
    "topic": Place(
        "penstock.cli.topics",
        "topic_app",
        "Create, list, describe, alter, trim, compact, reopen, terminate and delete topics.",
    ),
    "produce": Place(
        "penstock.cli.produce",
        "produce_command",
        "Write each line of standard input as one message, and return when all are durable.",
    ),
    "consume": Place(
        "penstock.cli.consume",
        "consume_command",
        "Print the messages of a topic; without --follow, up to where it ends now.",
    ),
    "group": Place(
        "penstock.cli.groups", "group_app", "List, describe, move and delete consumer groups."
    ),
    "context": Place(
        "penstock.cli.contexts",
        "context_app",
        "Give brokers names, and choose the one that commands speak to.",
    ),
    "pipeline": Place("penstock.cli.pipeline", "pipeline_app", "Topics as tables, with Spark."),
    "export": Place(
        "penstock.cli.exports",
        "export_command",
        "Write topics as Parquet files, of which 'penstock import' makes the same topics again.",
    ),
    "import": Place(
        "penstock.cli.exports",
        "import_command",
        "Make the topics of an export: the same records at the same offsets, the same settings.",
    ),
    "audit": Place(
        "penstock.cli.audit",
        "audit_command",
        "Check every byte of all logs of a data folder, in parallel on Spark.",
    ),
    "recover": Place(
        "penstock.cli.recover",
        "recover_command",
        "Show what is missing or does not belong together, and which option ends it.",
    ),
    "version": Place(
        "penstock.cli.version",
        "version_command",
        "Print the versions of Penstock, Python and the platform.",
    ),
}


class LoadedCommands(Mapping[str, "AnyCommand"]):
    """All commands; one is loaded when it is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, AnyCommand] = {}

    def __getitem__(self, name: str) -> AnyCommand:
        if name not in self._loaded:
            self._loaded[name] = _load(name, COMMANDS[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Group(TyperGroup):
    """A group whose help has the first sentence of each command, however long it is."""

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the list of commands; see click."""
        with formatter.section("Commands"):
            formatter.write_dl(self._summaries())

    def _summaries(self) -> list[tuple[str, str]]:
        return [(name, each.get_short_help_str(1_000)) for name, each in self.commands.items()]


class Commands(Group):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LoadedCommands()  # type: ignore[assignment]  # nothing is added to it

    def _summaries(self) -> list[tuple[str, str]]:
        return [(name, place.summary) for name, place in COMMANDS.items()]


def _load(name: str, place: Place) -> AnyCommand:
    found = getattr(import_module(place.module), place.name)
    if isinstance(found, typer.Typer):
        return get_group_from_info(
            TyperInfo(found, name=name, cls=Group),
            pretty_exceptions_short=True,
            suggest_commands=True,
            rich_markup_mode=None,
        )
    return get_command_from_info(
        CommandInfo(name=name, callback=found), pretty_exceptions_short=True, rich_markup_mode=None
    )
