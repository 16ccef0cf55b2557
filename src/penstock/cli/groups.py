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
    from penstock.clients.kafka.client import GroupDescription, KafkaClient, Reader

group_app = typer.Typer(
    help="List, describe, move and delete consumer groups.", no_args_is_help=True
)
group_app.command("seek")(seek_command)

Output: TypeAlias = Annotated[Format, FormatOption]
_PLACE_COLUMNS = ["topic", "partition", "committed", "next_offset", "lag"]
_COLUMNS = [*_PLACE_COLUMNS, "member"]


@group_app.command("list")
def list_command(server: Server = DEFAULT_SERVER, output: Output = Format.TABLE) -> None:
    """List the consumer groups of Kafka and Iggy and the subscriptions of Pulsar, with what each
    has left to read.
    """
    with connected(server) as client:
        rows = [_summary(each) for each in client.readers()]
    rows.sort(key=lambda row: (str(row["group"]), str(row["protocol"]), str(row["topic"])))
    columns = ["group", "protocol", "type", "state", "topic", "members", "lag"]
    print_rows(rows, columns, output, empty="There are no groups.")


@group_app.command("describe")
def describe_command(
    name: GroupName,
    server: Server = DEFAULT_SERVER,
    output: Output = Format.TABLE,
) -> None:
    """Show what groups and subscriptions of a name have done, how far they are behind, and who is
    in a group of Kafka.
    """
    from penstock.clients.kafka.client import KafkaError

    with connected(server) as client:
        others = [each for each in client.readers(name) if each.protocol != "kafka"]
        group = None
        try:
            group = client.describe_group(name)
        except KafkaError:
            if not others:
                raise
        rows = _progress(client, group) if group else []
    if output is Format.JSON:
        _print_json(name, group, rows, others)
        return
    if group:
        typer.echo(f"{name}: {group.state.lower()}, {counted(len(group.members), 'member')}")
        print_rows(rows, _COLUMNS, output, empty="It has committed nothing and reads nothing.")
    for each in others:
        typer.echo(
            f"{name}: {each.protocol.capitalize()} {each.type} of {', '.join(each.topics)}, "
            f"{each.state.lower()}, {counted(each.members, 'member')}"
        )
        print_rows(_places(each), _PLACE_COLUMNS, output, empty="It has stored no offset.")


@group_app.command("delete")
def delete_command(
    name: GroupName,
    server: Server = DEFAULT_SERVER,
    sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Delete a Kafka consumer group that has no members, with all that it has committed."""
    if not sure and not typer.confirm(f"Delete {name} and all that it has committed?", err=True):
        raise CommandError("nothing was deleted")
    with connected(server) as client:
        client.delete_group(name)
    if output is Format.JSON:
        print_json({"group": name, "deleted": True})
    else:
        typer.echo(f"deleted {name}")


def _summary(reader: Reader) -> dict[str, object]:
    topics = reader.topics
    return {
        "group": reader.name,
        "protocol": reader.protocol,
        "type": reader.type,
        "state": reader.state,
        "topic": topics[0] if len(topics) == 1 else counted(len(topics), "topic"),
        "topics": topics,
        "members": reader.members,
        "lag": reader.backlog,
    }


def _places(reader: Reader) -> list[dict[str, object]]:
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "committed": each.position,
            "next_offset": each.end_offset,
            "lag": each.backlog,
        }
        for each in reader.progress
    ]


def _print_json(
    name: str,
    group: GroupDescription | None,
    rows: list[dict[str, object]],
    others: list[Reader],
) -> None:
    print_json(
        {
            "group": name,
            "state": group.state if group else None,
            "members": [member._asdict() for member in group.members] if group else [],
            "partitions": rows,
            "others": [_summary(each) | {"partitions": _places(each)} for each in others],
        }
    )


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
