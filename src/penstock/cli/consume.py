"""`penstock consume`: print the messages of a topic, whoever wrote them."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.completion import TopicName
from penstock.cli.escapes import unescaped
from penstock.cli.failure import UsageError
from penstock.cli.message_format import TEMPLATE_FIELDS, printed_as
from penstock.cli.output import Format, print_bytes
from penstock.cli.topic_reader import TopicReader


def consume_command(
    topic: TopicName,
    offset: Annotated[
        str,
        typer.Option(
            "--offset",
            "-o",
            metavar="PLACE",
            help="Where to begin in each partition: 'start', 'end', an offset, "
            "-N for the last N, or @TIME (ISO 8601 or milliseconds).",
        ),
    ] = "start",
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            "-u",
            metavar="PLACE",
            help="Where to stop, before this place; it is named as with --offset.",
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Read this partition only.", min=0)
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", help="Stop after so many messages.", min=1)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Wait for new messages until Ctrl-C.")
    ] = False,
    null: Annotated[
        str, typer.Option("--null", help="What is printed for null; JSON has a null of its own.")
    ] = "",
    server: Server = DEFAULT_SERVER,
    output: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            help=f"'table' for people, 'json' for programs, or a template: {TEMPLATE_FIELDS}; "
            "\\n, \\t and \\x00 are bytes.",
        ),
    ] = Format.TABLE.value,
) -> None:
    r"""Print the messages of a topic; without --follow, up to where it ends now.

    For people: key, a tab when there is a key, and the value; what is not UTF-8 is in hexadecimal,
    with 0x before. A template such as '%k %s\n' prints the bytes as they are. With --format json:
    one object a line, in which "value" is text and "value_base64" is bytes that are none; keys and
    headers likewise.
    """
    printed = printed_as(output, unescaped(null))
    if follow and until is not None and until.startswith("@"):
        raise UsageError("--until @TIME needs messages that are there: it goes without --follow")
    with connected(server) as client:
        reader = TopicReader(client, topic, partition)
        reader.begin(offset)
        found = reader.follow(until) if follow else reader.messages(until or "end")
        for message in islice(found, count):
            print_bytes(printed(message))
