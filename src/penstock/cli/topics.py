"""`penstock topic`: create, list, describe, alter, trim, compact, reopen, end and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.completion import TopicName
from penstock.cli.failure import CommandError
from penstock.cli.output import Format, FormatOption, counted, print_json, print_rows
from penstock.cli.setting_names import set_pairs
from penstock.cli.topic_changes import add_partitions_command, alter_command
from penstock.cli.topic_compact import compact_command
from penstock.cli.topic_trim import trim_command
from penstock.limits import TOPIC_PARTITIONS

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient

topic_app = typer.Typer(
    help="Create, list, describe, alter, trim, compact, reopen, terminate and delete topics.",
    no_args_is_help=True,
)

topic_app.command("alter")(alter_command)
topic_app.command("add-partitions")(add_partitions_command)
topic_app.command("compact")(compact_command)
topic_app.command("trim")(trim_command)

Output: TypeAlias = Annotated[Format, FormatOption]


@topic_app.command("create")
def create_command(
    name: TopicName,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", help="Number of partitions.", min=1, max=TOPIC_PARTITIONS
        ),
    ] = 1,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="KEY=VALUE",
            help="A setting of the topic, under its name in any protocol; may be repeated.",
        ),
    ] = None,
    server: Server = DEFAULT_SERVER,
    output: Output = Format.TABLE,
) -> None:
    """Create a topic, which clients of every protocol then see."""
    with connected(server) as client:
        client.create_topic(name, partitions, set_pairs(config or [], "--config"))
    if output is Format.JSON:
        print_json({"topic": name, "partitions": partitions})
    else:
        typer.echo(f"created {name} with {counted(partitions, 'partition')}")


@topic_app.command("list")
def list_command(server: Server = DEFAULT_SERVER, output: Output = Format.TABLE) -> None:
    """List all topics."""
    with connected(server) as client:
        rows = [
            {"topic": topic.name, "partitions": len(topic.partitions), "id": str(topic.topic_id)}
            for topic in sorted(client.topics())
        ]
    print_rows(rows, ["topic", "partitions", "id"], output, empty="There are no topics.")


@topic_app.command("describe")
def describe_command(
    name: TopicName,
    settings: Annotated[
        bool, typer.Option("--settings", help="Show the topic's settings too; JSON has them.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    output: Output = Format.TABLE,
) -> None:
    """Show the partitions of a topic: first and next offset, and size on disk."""
    with connected(server) as client:
        rows = _partitions(client, name)
        config = client.topic_config(name)
    if output is Format.JSON:
        print_json({"topic": name, "config": config, "partitions": rows})
        return
    print_rows(rows, ["partition", "first_offset", "next_offset", "bytes"], output, empty="")
    for key, value in sorted(config.items()) if settings else ():
        typer.echo(f"{key} = {value}")


@topic_app.command("reopen")
def reopen_command(
    name: TopicName, server: Server = DEFAULT_SERVER, output: Output = Format.TABLE
) -> None:
    """Have a topic take writes again after the disk failed to flush some: it is read from the disk
    again. Do it once the disk is well; a restart of the broker does the same.
    """
    with connected(server) as client:
        (topic,) = client.topics([name])
        reopened = client.elect_leaders(name, topic.partitions)
    if output is Format.JSON:
        print_json({"topic": name, "reopened": reopened})
    elif reopened:
        typer.echo(f"reopened {counted(len(reopened), 'partition')} of {name}")
    else:
        typer.echo(f"{name} takes writes: nothing was to be reopened")


@topic_app.command("terminate")
def terminate_command(
    name: TopicName,
    server: Server = DEFAULT_SERVER,
    sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End a topic for good: it takes no more messages, and what it has can be read.

    Consumers of Pulsar's Java client hear of it once they have acknowledged everything.
    """
    if not sure and not typer.confirm(f"End {name}, so that it never takes a message again?"):
        raise CommandError("nothing was ended")
    with connected(server) as client:
        client.alter_topic_config(name, {"penstock.terminated": "true"})
    typer.echo(f"terminated {name}")


@topic_app.command("delete")
def delete_command(
    name: TopicName,
    server: Server = DEFAULT_SERVER,
    sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Delete a topic and all its messages, for clients of every protocol."""
    if not sure and not typer.confirm(f"Delete {name} and all its messages?", err=True):
        raise CommandError("nothing was deleted")
    with connected(server) as client:
        client.delete_topic(name)
    if output is Format.JSON:
        print_json({"topic": name, "deleted": True})
    else:
        typer.echo(f"deleted {name}")


def _partitions(client: KafkaClient, name: str) -> list[dict[str, int]]:
    from penstock.clients.kafka.client import EARLIEST, LATEST

    (topic,) = client.topics([name])
    places = [(name, partition) for partition in topic.partitions]
    first = client.list_offsets(dict.fromkeys(places, EARLIEST))
    following = client.list_offsets(dict.fromkeys(places, LATEST))
    sizes = client.log_directory([name]).sizes
    return [
        {
            "partition": place[1],
            "first_offset": first[place] or 0,
            "next_offset": following[place] or 0,
            "bytes": sizes.get(place, 0),
        }
        for place in places
    ]
