"""`penstock produce`: write lines from standard input to a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.output import Format, FormatOption, counted, print_json

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient
    from penstock.clients.kafka.record_batch import Record

_LINES_TOGETHER: Final = 1_000
"""Lines of one batch when they come from a file; what a person types is sent line by line."""


def produce_command(
    topic: Annotated[str, typer.Argument(help="The topic's Kafka name.")],
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-k", help="What parts key and value in a line."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Write to this partition only.", min=0)
    ] = None,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Write each line of standard input as one message, and return when all are durable.

    Messages with a key go to the partition that Kafka's own clients choose for it, the others to
    each partition in turn. A topic that is not there is created if the broker allows it.
    """
    together = 1 if sys.stdin.isatty() else _LINES_TOGETHER
    with connected(server) as client:
        partitions = _partitions(client, topic)
        writer = _Writer(client, topic, partitions if partition is None else [partition])
        lines = _lines(sys.stdin.buffer)
        while records := list(islice(_records(lines, key_separator), together)):
            writer.write(records)
    if output is Format.JSON:
        print_json({"topic": topic, "messages": writer.written})
    else:
        typer.echo(f"{counted(writer.written, 'message')} written to {topic}")


class _Writer:
    """Spreads records over the partitions of a topic."""

    def __init__(self, client: KafkaClient, topic: str, partitions: list[int]) -> None:
        self._client = client
        self._topic = topic
        self._partitions = partitions
        self._next = 0
        self.written = 0

    def write(self, records: list[Record]) -> None:
        from penstock.clients.kafka.record_batch import encode_batch

        by_partition: dict[int, list[Record]] = {}
        for record in records:
            by_partition.setdefault(self._choose(record.key), []).append(record)
        for partition, chosen in by_partition.items():
            self._client.produce(self._topic, partition, encode_batch(chosen))
        self.written += len(records)

    def _choose(self, key: bytes | None) -> int:
        from penstock.clients.kafka.partitioner import partition_of

        if key is not None:
            return self._partitions[partition_of(key, len(self._partitions))]
        self._next += 1
        return self._partitions[(self._next - 1) % len(self._partitions)]


def _partitions(client: KafkaClient, topic: str) -> list[int]:
    (description,) = client.topics([topic], create=True)
    return list(description.partitions)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.removesuffix(b"\n")


def _records(lines: Iterable[bytes], separator: str | None) -> Iterator[Record]:
    import time

    from penstock.clients.kafka.record_batch import Record

    for line in lines:
        key, value = None, line
        if separator:
            before, found, after = line.partition(separator.encode())
            key, value = (before, after) if found else (None, line)
        yield Record(value, key, timestamp_ms=time.time_ns() // 1_000_000)
