"""`penstock group`: what consumer groups have read and who is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.completion import GroupName
from penstock.cli.failure import CommandError
from penstock.cli.group_seek import seek_command
from penstock.cli.output import Format, FormatOption, counted, print_json, print_rows

if TYPE_CHECKING:
    from penstock.clients.kafka.client import GroupDescription, KafkaClient

group_app = typer.Typer(
    help="List, describe, move and delete consumer groups.", no_args_is_help=True
)
group_app.command("seek")(seek_command)

Output: TypeAlias = Annotated[Format, FormatOption]
_COLUMNS = ["topic", "partition", "committed", "next_offset", "lag", "member"]


@group_app.command("list")
def list_command(server: Server = DEFAULT_SERVER, output: Output = Format.TABLE) -> None:
    """List all consumer groups."""
    with connected(server) as client:
        rows = [
            {"group": group.group_id, "type": group.protocol_type, "state": group.state}
            for group in sorted(client.groups())
        ]
    print_rows(rows, ["group", "type", "state"], output, empty="There are no groups.")


@group_app.command("describe")
def describe_command(
    name: GroupName,
    server: Server = DEFAULT_SERVER,
    output: Output = Format.TABLE,
) -> None:
    """Show what a group has committed, how far it is behind, and who reads what."""
    with connected(server) as client:
        group = client.describe_group(name)
        rows = _progress(client, group)
    if output is Format.JSON:
        members = [member._asdict() for member in group.members]
        print_json({"group": name, "state": group.state, "members": members, "partitions": rows})
        return
    typer.echo(f"{name}: {group.state.lower()}, {counted(len(group.members), 'member')}")
    print_rows(rows, _COLUMNS, output, empty="It has committed nothing and reads nothing.")


@group_app.command("delete")
def delete_command(
    name: GroupName,
    server: Server = DEFAULT_SERVER,
    sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a Kafka consumer group that has no members, with all that it has committed."""
    if not sure and not typer.confirm(f"Delete {name} and all that it has committed?"):
        raise CommandError("nothing was deleted")
    with connected(server) as client:
        client.delete_group(name)
    typer.echo(f"deleted {name}")


def _progress(client: KafkaClient, group: GroupDescription) -> list[dict[str, object]]:
    from penstock.clients.kafka.client import LATEST

    committed = client.committed_offsets(group.group_id)
    readers = {
        (topic, partition): member.client_id
        for member in group.members
        for topic, partitions in member.assigned.items()
        for partition in partitions
    }
    places = sorted(committed.keys() | readers.keys())
    ends = client.list_offsets(dict.fromkeys(places, LATEST))
    rows: list[dict[str, object]] = []
    for place in places:
        done, end = committed.get(place), ends[place] or 0
        row = {"topic": place[0], "partition": place[1], "committed": done, "next_offset": end}
        rows.append(row | {"lag": end - (done or 0), "member": readers.get(place)})
    return rows
