"""`penstock topic compact`: have the last message of each key left, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from penstock import wall_clock
from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.completion import TopicName
from penstock.cli.failure import CommandError
from penstock.cli.output import Format, FormatOption, print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.clients.kafka.client import KafkaClient

_COLUMNS: Final = ["partition", "messages", "keys", "superseded", "bytes"]
_MAP_BYTES: Final = 512 << 20
"""Room for 12 million keys, which takes no memory before they come."""
_REQUESTED: Final = "penstock.compaction.requested.ms"


class _Range(NamedTuple):
    partition: int
    start: int
    end: int


def compact_command(
    name: TopicName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Have a topic compacted once: of all messages with a key that are there by now, the last one
    of each key is left.

    It is done beside the broker's other work, whatever the topic's cleanup policy; its log says
    when, and what was left. Where the policy is not to compact, what a durable subscription has not
    acknowledged is kept. A dry run reads the whole topic: 'superseded' is how many messages a later
    one of their key has taken the place of, and 'bytes' those of their keys and values.
    """
    with connected(server) as client:
        if dry_run:
            rows = [_counted(client, name, each) for each in _ranges(client, name)]
        else:
            client.alter_topic_config(name, {_REQUESTED: str(wall_clock.now_ms())})
            rows = []
    if output is Format.JSON:
        print_json({"topic": name, "dry_run": dry_run, "partitions": rows})
    elif dry_run:
        print_rows(rows, _COLUMNS, output, empty="")
        typer.echo("nothing was changed: this was a dry run")
    else:
        typer.echo(f"{name} is going to be compacted; the broker's log says when that is done")


def _ranges(client: KafkaClient, name: str) -> list[_Range]:
    from penstock.clients.kafka.client import EARLIEST, LATEST

    (topic,) = client.topics([name])
    places = [(name, index) for index in topic.partitions]
    starts = client.list_offsets(dict.fromkeys(places, EARLIEST))
    ends = client.list_offsets(dict.fromkeys(places, LATEST))
    return [_Range(place[1], starts[place] or 0, ends[place] or 0) for place in places]


def _counted(client: KafkaClient, name: str, where: _Range) -> dict[str, int]:
    """Return what one partition has, and what of it has a later message of the same key."""
    from penstock.records import decode_run, field
    from penstock.records.compaction.aborted import Transactions
    from penstock.records.compaction.cleaning import InflatesTooMuchError, Inflating, remember
    from penstock.records.compaction.offset_map import OffsetMap

    offsets, inflating = OffsetMap(_MAP_BYTES), Inflating()
    for batches in _batches(client, name, where):
        try:
            stopped = remember(batches, offsets, Transactions(), inflating)
        except InflatesTooMuchError as error:
            raise CommandError(f"it would not be compacted: {error}") from error
        if stopped is not None:
            raise CommandError(f"there are over {len(offsets)} keys, too many to count them here")
    messages = superseded = size = 0
    for batches in _batches(client, name, where):
        for columns in decode_run(batches, headers=False):
            keyed = columns.records[field.KEY_SIZE] >= 0
            old = offsets.replaced(columns, keyed)
            sizes = columns.records[[field.KEY_SIZE, field.VALUE_SIZE]].clip(0).sum(0)
            messages += len(columns)
            superseded += int(old.sum())
            size += int(sizes[old].sum())
    counts = (where.partition, messages, len(offsets), superseded, size)
    return dict(zip(_COLUMNS, counts, strict=True))


def _batches(client: KafkaClient, name: str, where: _Range) -> Iterator[memoryview]:
    if where.start < where.end:
        yield from client.fetch_below(name, where.partition, where.start, where.end)
