"""`penstock topic trim`: give up the oldest messages of a topic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, chosen_partitions, connected
from penstock.cli.completion import TopicName
from penstock.cli.failure import CommandError, UsageError
from penstock.cli.output import Format, FormatOption, counted, print_json, print_rows
from penstock.cli.places import offset_of, time_of

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient
    from penstock.clients.kafka.segments import Segments

_UNITS: Final = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_COLUMNS: Final = ["partition", "first_offset", "first_after", "messages", "segments", "bytes"]


def trim_command(
    name: TopicName,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="PLACE",
            help="Everything before this goes: 'end', an offset, -N for N before the end, "
            "or @TIME (ISO 8601 or milliseconds).",
        ),
    ] = None,
    keep_bytes: Annotated[
        str | None,
        typer.Option(
            "--keep-bytes",
            metavar="SIZE",
            help="Whole segments go, the oldest first, as long as so much of each partition is "
            "left; such as 10GiB.",
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Only of this partition.", min=0)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")
    ] = False,
    sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Give up the oldest messages of a topic for good, for clients of every protocol.

    Offsets go on: who reads below the new beginning goes on there. The disk gets back the segments
    of which nothing is left, which 'segments' and 'bytes' show. It does not ask who still needs the
    messages; 'penstock group list' shows who has not read them.
    """
    if (before is None) == (keep_bytes is None):
        raise UsageError("what is needed is one of --before PLACE and --keep-bytes SIZE")
    size = None if keep_bytes is None else _size(keep_bytes)
    with connected(server) as client:
        there = client.segments(name, chosen_partitions(client, name, partition))
        starts = (
            {index: _start_for_size(found, size) for index, found in there.items()}
            if size is not None
            else _starts_before(client, name, there, before or "")
        )
        rows = [_row(index, found, starts[index]) for index, found in sorted(there.items())]
        moved = {row["partition"]: row["first_after"] for row in rows if row["messages"]}
        if moved and not dry_run:
            if not sure and output is Format.TABLE:
                print_rows(rows, _COLUMNS, output, empty="")
            if not sure and not typer.confirm(f"Give up these messages of {name}?", err=True):
                raise CommandError("nothing was given up")
            client.delete_records(name, moved)
    if output is Format.JSON:
        print_json({"topic": name, "dry_run": dry_run, "partitions": rows})
        return
    if dry_run or sure or not moved:
        print_rows(rows, _COLUMNS, output, empty="")
    if dry_run:
        typer.echo("nothing was changed: this was a dry run")
    else:
        messages = sum(row["messages"] for row in rows)
        typer.echo(f"gave up {counted(messages, 'message')} of {name}")


def _starts_before(
    client: KafkaClient, name: str, there: Mapping[int, Segments], before: str
) -> dict[int, int]:
    if not before.startswith("@"):
        return {
            index: offset_of(before, "--before", found.start_offset, found.end_offset)
            for index, found in there.items()
        }
    places = {(name, index): time_of(before, "--before") for index in there}
    found_at = client.list_offsets(places)
    # Where no message is as late, all of them are before.
    return {
        index: found.end_offset if (at := found_at[name, index]) is None else at
        for index, found in there.items()
    }


def _start_for_size(found: Segments, size: int) -> int:
    if found.segments is None:
        raise CommandError("this broker does not say how much of a partition lies where")
    left = sum(each.size_bytes for each in found.segments)
    start = found.start_offset
    for segment in found.segments:
        if left - segment.size_bytes < size:
            break
        left -= segment.size_bytes
        start = segment.end_offset
    return start


def _row(index: int, found: Segments, start: int) -> dict[str, int]:
    start = min(max(start, found.start_offset), found.end_offset)
    goes = [each for each in found.segments or () if each.end_offset <= start]
    return {
        "partition": index,
        "first_offset": found.start_offset,
        "first_after": start,
        "messages": start - found.start_offset,
        "segments": len(goes),
        "bytes": sum(each.size_bytes for each in goes),
    }


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d{1,18})\s*([A-Za-z]*)", text)
    if match is None or match[2].lower() not in _UNITS:
        raise UsageError(f'--keep-bytes: "{text}" is refused; what is needed is a size as 10GiB')
    return int(match[1]) * _UNITS[match[2].lower()]
