"""`penstock produce`: write what comes on standard input to a topic."""

from __future__ import annotations

import sys
from io import BufferedIOBase
from typing import TYPE_CHECKING, Annotated, cast

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, chosen_partitions, connected
from penstock.cli.completion import TopicName
from penstock.cli.escapes import unescaped
from penstock.cli.failure import UsageError
from penstock.cli.message_input import InputError, Shape, messages, parsed_header
from penstock.cli.output import Format, FormatOption, counted, print_json

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient
    from penstock.clients.kafka.record_batch import Record


def produce_command(  # noqa: PLR0913, PLR0917  # Typer reads flags from the signature
    topic: TopicName,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", "-k", help="What parts key and value in a line; \\t is a tab."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="The key of all messages.")] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", help="NAME=VALUE for all messages; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Write to this partition only.", min=0)
    ] = None,
    null: Annotated[
        str | None,
        typer.Option("--null", help="A key or value that reads so is null: a tombstone, for one."),
    ] = None,
    delimiter: Annotated[
        str, typer.Option("--delimiter", "-D", help="What ends a message; \\x00 is a byte.")
    ] = "\\n",
    whole: Annotated[
        bool, typer.Option("--whole", help="All of the input is one message, byte for byte.")
    ] = False,
    json_lines: Annotated[
        bool,
        typer.Option("--json", help="Each line is an object as 'consume --format json' prints it."),
    ] = False,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Write each line of standard input as one message, and return when all are durable.

    Messages with a key go to the partition that Kafka's own clients choose for it, the others to
    each partition in turn. A topic that is not there is created if the broker allows it. What
    comes slowly, as from a person or `tail -f`, is written as it comes.
    """
    _check_together(
        json_lines=json_lines,
        with_others=whole or key_separator is not None or null is not None,
        keys=(key is not None) + (key_separator is not None),
    )
    shape = Shape(
        None if whole else _needed(delimiter, "--delimiter"),
        json_lines,
        None if key is None else unescaped(key),
        None if key_separator is None else _needed(key_separator, "--key-separator"),
        None if null is None else unescaped(null),
        tuple(parsed_header(text) for text in headers or ()),
    )
    with connected(server) as client:
        partitions = chosen_partitions(client, topic, partition, create=True)
        writer = _Writer(client, topic, partitions)
        _write_all(writer, shape)
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
        by_partition: dict[int, list[Record]] = {}
        for record in records:
            by_partition.setdefault(self._choose(record.key), []).append(record)
        for partition, chosen in by_partition.items():
            self._send(partition, chosen)

    def _send(self, partition: int, records: list[Record]) -> None:
        """Write records together, or in halves where the topic takes no batch of that size."""
        from penstock.clients.kafka.client import KafkaError
        from penstock.clients.kafka.record_batch import encode_batch

        try:
            self._client.produce(self._topic, partition, encode_batch(records))
        except KafkaError as error:
            if error.code.name != "MESSAGE_TOO_LARGE" or len(records) == 1:
                raise
            middle = len(records) // 2
            self._send(partition, records[:middle])
            self._send(partition, records[middle:])
        else:
            self.written += len(records)

    def _choose(self, key: bytes | None) -> int:
        from penstock.clients.kafka.partitioner import partition_of

        if key is not None:
            return self._partitions[partition_of(key, len(self._partitions))]
        self._next += 1
        return self._partitions[(self._next - 1) % len(self._partitions)]


def _write_all(writer: _Writer, shape: Shape) -> None:
    try:
        for records in messages(cast(BufferedIOBase, sys.stdin.buffer), shape):
            writer.write(records)
    except InputError as error:
        written = counted(writer.written, "message")
        raise InputError(f"{error}; written before it: {written}") from None


def _check_together(*, json_lines: bool, with_others: bool, keys: int) -> None:
    """Refuse what would contradict or be without effect."""
    if keys > 1:
        raise UsageError("--key is for all messages and --key-separator for each: give one of them")
    if json_lines and with_others:
        raise UsageError(
            "--json says all of a message: --whole, --key-separator and --null don't go with it"
        )


def _needed(text: str, option: str) -> bytes:
    if not text:
        raise UsageError(f"{option}: it is empty; what is needed is a text such as ':' or '\\t'")
    return unescaped(text)
