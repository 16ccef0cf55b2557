"""`penstock context`: names for brokers, so that commands need no --server."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

import typer

from penstock.cli.completion import complete_context
from penstock.cli.context_file import Contexts, load_contexts, save_contexts
from penstock.cli.failure import UsageError
from penstock.cli.output import Format, FormatOption, print_json, print_rows
from penstock.cli.server_choice import checked_address, choose_server

context_app = typer.Typer(
    help="Give brokers names, and choose the one that commands speak to.", no_args_is_help=True
)

Name: TypeAlias = Annotated[
    str, typer.Argument(help="The context's name.", autocompletion=complete_context)
]
Output: TypeAlias = Annotated[Format, FormatOption]
_NAME: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)


@context_app.command("set")
def set_command(
    name: Annotated[str, typer.Argument(help="A name of your choice.")],
    server: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The broker's Kafka address.")],
    use: Annotated[bool, typer.Option("--use", help="Have commands speak to it now.")] = False,
) -> None:
    """Add a context, or give it another address."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f'"{name}" is refused; a context\'s name has up to 64 letters, digits, ".", "_", "-"'
        )
    contexts = load_contexts()
    servers = contexts.servers | {name: checked_address(server, "HOST:PORT")}
    save_contexts(Contexts(name if use else contexts.current, servers))
    typer.echo(f"{name} is {server}")


@context_app.command("use")
def use_command(name: Name) -> None:
    """Have commands speak to the broker of a context, in every shell, from now on."""
    contexts = load_contexts()
    server = contexts.server(name)
    save_contexts(contexts._replace(current=name))
    typer.echo(f"commands speak to {name}, {server}")


@context_app.command("list")
def list_command(output: Output = Format.TABLE) -> None:
    """List all contexts; the current one is marked."""
    contexts = load_contexts()
    rows: list[dict[str, object]] = [
        {"context": name, "server": server, "current": name == contexts.current}
        for name, server in sorted(contexts.servers.items())
    ]
    if output is Format.TABLE:
        rows = [row | {"current": "*" if row["current"] else ""} for row in rows]
    empty = "There are no contexts; 'penstock context set NAME HOST:PORT' adds one."
    print_rows(rows, ["context", "server", "current"], output, empty=empty)


@context_app.command("show")
def show_command(call: typer.Context, output: Output = Format.TABLE) -> None:
    """Show which broker commands speak to, and what says so."""
    choice = choose_server(None, call.find_root().params.get("context"))
    if output is Format.JSON:
        print_json({"server": choice.address, "from": choice.origin})
    else:
        typer.echo(f"{choice.address} ({choice.origin})")


@context_app.command("delete")
def delete_command(name: Name) -> None:
    """Forget a context; the broker is not touched."""
    contexts = load_contexts()
    contexts.server(name)
    rest = {each: server for each, server in contexts.servers.items() if each != name}
    save_contexts(Contexts(None if contexts.current == name else contexts.current, rest))
    typer.echo(f"deleted {name}")
