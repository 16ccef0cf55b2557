"""`penstock consume`: print the messages of a topic, whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.cli.client import DEFAULT_SERVER, Server, connected
from penstock.cli.failure import UsageError
from penstock.cli.output import Format, FormatOption, print_json, print_line

if TYPE_CHECKING:
    from penstock.clients.kafka.client import KafkaClient
    from penstock.clients.kafka.record_batch import StoredRecord

_WAIT_MS: Final = 500


def consume_command(
    topic: Annotated[str, typer.Argument(help="The topic's Kafka name.")],
    offset: Annotated[
        str,
        typer.Option(
            "--offset",
            "-o",
            help="Where to begin in each partition: 'start', 'end', an offset, "
            "-N for the last N, or @TIME (ISO 8601 or milliseconds).",
        ),
    ] = "start",
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Read this partition only.", min=0)
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", help="Stop after so many messages.", min=1)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-F", help="Wait for new messages until Ctrl-C.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    output: Annotated[Format, FormatOption] = Format.TABLE,
) -> None:
    """Print the messages of a topic; without --follow, up to where it ends now.

    For people: key, a tab when there is a key, and the value. With --format json: one object a
    line; bytes that are not UTF-8 are shown in hexadecimal, with 0x before.
    """
    with connected(server) as client:
        reader = _Reader(client, topic, partition)
        reader.begin(offset)
        left = count
        for place, record in reader.records(follow=follow):
            _show(topic, place, record, output)
            if left is not None and (left := left - 1) == 0:
                return


class _Reader:
    """Reads the partitions of one topic in turn."""

    def __init__(self, client: KafkaClient, topic: str, partition: int | None) -> None:
        (description,) = client.topics([topic])
        if partition is not None and partition not in description.partitions:
            last = max(description.partitions)
            raise UsageError(f"--partition: {topic} has partitions 0 to {last}, not {partition}")
        self._client = client
        self._topic = topic
        self._chosen = list(description.partitions) if partition is None else [partition]
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def begin(self, offset: str) -> None:
        """Go to the place that a person named. Raises UsageError."""
        from penstock.clients.kafka.client import EARLIEST, LATEST

        first, self._ends = self._offsets(EARLIEST), self._offsets(LATEST)
        if offset.startswith("@"):
            found = self._offsets(_time_ms(offset[1:]))
            self._positions = {each: found.get(each, end) for each, end in self._ends.items()}
            return
        for each, end in self._ends.items():
            wanted = _position(offset, first[each], end)
            self._positions[each] = min(max(wanted, first[each]), end)

    def records(self, *, follow: bool) -> Iterator[tuple[int, StoredRecord]]:
        """Yield each record with its partition, up to the ends of now or for ever."""
        if not follow:
            for partition in self._chosen:
                yield from self._records_to_end(partition)
            return
        while True:
            for partition in self._chosen:
                yield from self._new_records(partition, _WAIT_MS // len(self._chosen))

    def _records_to_end(self, partition: int) -> Iterator[tuple[int, StoredRecord]]:
        place = (self._topic, partition, self._positions[partition], self._ends[partition])
        for batches in self._client.fetch_below(*place):
            yield from self._decoded(partition, batches)

    def _new_records(self, partition: int, wait_ms: int) -> Iterator[tuple[int, StoredRecord]]:
        position = self._positions[partition]
        fetched = self._client.fetch(self._topic, partition, position, max_wait_ms=wait_ms)
        yield from self._decoded(partition, fetched.batches)

    def _decoded(self, partition: int, batches: memoryview) -> Iterator[tuple[int, StoredRecord]]:
        from penstock.clients.kafka.record_batch import decode_batches
        from penstock.log.header import walk

        position = self._positions[partition]
        for _, header in walk(batches):
            self._positions[partition] = header.next_offset
        for record in decode_batches(batches):
            if record.offset >= position:
                yield partition, record

    def _offsets(self, timestamp: int) -> dict[int, int]:
        places = {(self._topic, partition): timestamp for partition in self._chosen}
        found = self._client.list_offsets(places)
        return {place[1]: offset for place, offset in found.items() if offset is not None}


def _position(text: str, first: int, end: int) -> int:
    if text in {"start", "end"}:
        return first if text == "start" else end
    try:
        number = int(text)
    except ValueError:
        raise UsageError(
            f'--offset: "{text}" is refused; what is needed is start, end, N, -N or @TIME'
        ) from None
    return end + number if number < 0 else number


def _time_ms(text: str) -> int:
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f'--offset: "@{text}" is refused; what is needed is @2026-01-31T12:00:00Z or @ and '
            "milliseconds since 1970"
        ) from None
    return round(moment.timestamp() * 1000)


def _show(topic: str, partition: int, record: StoredRecord, output: Format) -> None:
    if output is Format.TABLE:
        key = "" if record.key is None else f"{_text(record.key)}\t"
        print_line(key + (_text(record.value) or ""))
        return
    print_json(
        {
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp": datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).isoformat(),
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
        }
    )


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()
