"""`penstock group seek`: have a consumer group go on from another place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, chosen_partitions, connected
from penstock.cli.completion import GroupName, complete_topic
from penstock.cli.failure import CommandError, UsageError
from penstock.cli.output import Format, FormatOption, counted, print_json, print_rows
from penstock.cli.places import offset_of, time_of

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient

Place: TypeAlias = tuple[str, int]
"""A topic and a partition of it."""
Offsets: TypeAlias = Mapping[Place, int]


class _Move(NamedTuple):
    before: int | None
    after: int
    lag: int


def seek_command(
    name: GroupName,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="'start', 'end', an offset, -N for N before the end, "
            "or @TIME (ISO 8601 or milliseconds).",
        ),
    ] = None,
    by: Annotated[
        int | None,
        typer.Option("--by", metavar="N", help="N messages on from where it is; -N goes back."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "-t",
            autocompletion=complete_topic,
            help="Only in this topic, of which the group need not have read anything.",
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", help="Only in this partition of --topic.", min=0),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be, and change nothing.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Move a Kafka consumer group that has no members, in all its topics or in one.

    A place outside of a partition is the nearest one in it. With --by, partitions in which the
    group has committed nothing stay as they are.
    """
    if (to is None) == (by is None):
        raise UsageError("what is needed is one of --to PLACE and --by N")
    if partition is not None and topic is None:
        raise UsageError("--partition: what is needed besides is --topic NAME")
    with connected(server) as client:
        _refuse_members(client, name)
        before = _committed(client, name, topic, partition)
        moves = _moves_by(client, before, by) if to is None else _moves_to(client, before, to)
        if not dry_run:
            client.commit_offsets(name, {place: move.after for place, move in moves.items()})
    rows = [
        {"topic": place[0], "partition": place[1], **move._asdict()}
        for place, move in sorted(moves.items())
    ]
    if output is Format.JSON:
        print_json({"group": name, "dry_run": dry_run, "partitions": rows})
        return
    print_rows(rows, ["topic", "partition", "before", "after", "lag"], output, empty="")
    if dry_run:
        typer.echo("nothing was changed: this was a dry run")


def _refuse_members(client: KafkaClient, name: str) -> None:
    from penstock.clients.kafka.client import KafkaError
    from penstock.kafka.wire import ErrorCode

    try:
        members = client.describe_group(name).members
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # With --topic it is one that is yet to come.
    if members:
        raise CommandError(
            f"{name} has {counted(len(members), 'member')}, who would not notice: stop them first; "
            f"'penstock group describe {name}' shows them"
        )


def _committed(
    client: KafkaClient, name: str, topic: str | None, partition: int | None
) -> dict[Place, int | None]:
    committed = client.committed_offsets(name)
    if topic is not None:
        places = [(topic, each) for each in chosen_partitions(client, topic, partition)]
        return {place: committed.get(place) for place in places}
    if not committed:
        raise CommandError(f"{name} has committed nothing; --topic says where it is to begin")
    return dict(committed)


def _moves_to(
    client: KafkaClient, before: Mapping[Place, int | None], to: str
) -> dict[Place, _Move]:
    firsts, ends = _ends(client, before)
    if to.startswith("@"):
        time = time_of(to, "--to")
        found = client.list_offsets(dict.fromkeys(before, time))
        wanted = {place: ends[place] if at is None else at for place, at in found.items()}
    else:
        wanted = {each: offset_of(to, "--to", firsts[each], ends[each]) for each in before}
    return _clamped(before, wanted, firsts, ends)


def _moves_by(
    client: KafkaClient, before: Mapping[Place, int | None], by: int | None
) -> dict[Place, _Move]:
    wanted = {place: at + (by or 0) for place, at in before.items() if at is not None}
    if not wanted:
        raise CommandError("the group has committed nothing there; --to says where it is to begin")
    return _clamped(before, wanted, *_ends(client, wanted))


def _clamped(
    before: Mapping[Place, int | None], wanted: Offsets, firsts: Offsets, ends: Offsets
) -> dict[Place, _Move]:
    moves = {}
    for place, offset in wanted.items():
        after = min(max(offset, firsts[place]), ends[place])
        moves[place] = _Move(before[place], after, ends[place] - after)
    return moves


def _ends(client: KafkaClient, places: Iterable[Place]) -> tuple[Offsets, Offsets]:
    from penstock.clients.kafka.client import EARLIEST, LATEST

    chosen = list(places)
    firsts = client.list_offsets(dict.fromkeys(chosen, EARLIEST))
    ends = client.list_offsets(dict.fromkeys(chosen, LATEST))
    return (
        {place: offset or 0 for place, offset in firsts.items()},
        {place: offset or 0 for place, offset in ends.items()},
    )
