"""`penstock topic alter` and `add-partitions`: change a topic that is there."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.completion import TopicName
from penstock.cli.failure import UsageError
from penstock.cli.output import Format, FormatOption, counted, print_json, print_rows
from penstock.cli.setting_names import key_of, set_pairs


def alter_command(
    name: TopicName,
    to_set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set this, under its name in any protocol; may be repeated.",
        ),
    ] = None,
    to_unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset", metavar="KEY", help="Go back to the default of this; may be repeated."
        ),
    ] = None,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Set and remove settings of a topic: all that is asked for, or nothing.

    A setting has a name in each protocol, and a value under a protocol's name is one of its own:
    retention.ms=3600000, message_expiry=1h and retentionTimeInMinutes=60 are the same. What is
    changed takes effect at once: messages that are too old or too many by it are deleted.
    'penstock topic describe NAME --settings' shows all under their names in Kafka.
    """
    changes = _changes(to_set or [], to_unset or [])
    with connected(server) as client:
        before = client.topic_config(name)
        client.alter_topic_config(name, changes)
        after = client.topic_config(name)
    rows = [{"setting": key, "before": before.get(key), "after": after.get(key)} for key in changes]
    if output is Format.JSON:
        print_json({"topic": name, "settings": rows})
    else:
        print_rows(rows, ["setting", "before", "after"], output, empty="")


def add_partitions_command(
    name: TopicName,
    count: Annotated[
        int, typer.Argument(help="How many more partitions the topic is to have.", min=1)
    ],
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Add partitions to a topic; they can't be taken away again.

    Messages that are there stay where they are. Keys of messages to come may have another
    partition than before.
    """
    with connected(server) as client:
        (topic,) = client.topics([name])
        total = len(topic.partitions) + count
        client.add_partitions(name, total)
    if output is Format.JSON:
        print_json({"topic": name, "added": count, "partitions": total})
    else:
        typer.echo(f"added {counted(count, 'partition')} to {name}, which has {total}")


def _changes(to_set: list[str], to_unset: list[str]) -> dict[str, str | None]:
    if not to_set and not to_unset:
        raise UsageError("what is needed is --set KEY=VALUE or --unset KEY")
    changes: dict[str, str | None] = dict(set_pairs(to_set, "--set"))
    for name in to_unset:
        key = key_of(name, "--unset")
        if key in changes:
            raise UsageError(f"--unset: {name} is set by the same command")
        changes[key] = None
    return changes
