"""What `penstock produce` makes messages of: lines, other pieces, all of the input, or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import wall_clock
from penstock.cli.failure import CommandError, UsageError
from penstock.cli.message_json import MessageError, parsed_message

if TYPE_CHECKING:
    from io import BufferedIOBase

    from penstock.clients.kafka.record_batch import Record

_READ_BYTES: Final = 1 << 18
"""Read, and sent, at once where the input has as much; what comes slowly is sent as it comes."""


class InputError(CommandError):
    """A message of the input can't be understood; the message says which."""


class Shape(NamedTuple):
    """How messages stand in the input."""

    delimiter: bytes | None = b"\n"
    """Ends a message; None makes one message of all."""
    json: bool = False
    key: bytes | None = None
    separator: bytes | None = None
    """Stands between key and value."""
    null: bytes | None = None
    """As a key or a value, is null."""
    headers: tuple[tuple[str, bytes | None], ...] = ()


def messages(stream: BufferedIOBase, shape: Shape) -> Iterator[list[Record]]:
    """Yield the messages of an input, together as they were read.

    Raises InputError after those before it were yielded.
    """
    number = 0
    for pieces in _pieces(stream, shape.delimiter):
        records: list[Record] = []
        for number, piece in enumerate(pieces, start=number + 1):  # noqa: B020 - it counts on
            try:
                records.append(_record(piece, shape))
            except MessageError as error:
                if records:
                    yield records
                raise InputError(f"message {number} of the input: {error}") from error
        yield records


def parsed_header(text: str) -> tuple[str, bytes | None]:
    """Return the header that NAME=VALUE describes; NAME alone has the value null."""
    name, found, value = text.partition("=")
    if not name or not _is_text(name):
        raise UsageError(f'--header: "{text}" is refused; what is needed is NAME=VALUE')
    return name, value.encode("utf-8", "surrogateescape") if found else None


def _pieces(stream: BufferedIOBase, delimiter: bytes | None) -> Iterator[list[bytes]]:
    if delimiter is None:
        yield [stream.read()]
        return
    rest = bytearray()
    while chunk := stream.read1(_READ_BYTES):
        searched = max(0, len(rest) - len(delimiter) + 1)
        rest += chunk
        if rest.find(delimiter, searched) >= 0:
            *pieces, rest = rest.split(delimiter)
            yield [bytes(piece) for piece in pieces]
    if rest:
        yield [bytes(rest)]


def _record(piece: bytes, shape: Shape) -> Record:
    from penstock.clients.kafka.record_batch import Record

    now_ms = wall_clock.now_ms()
    if shape.json:
        record = parsed_message(piece, now_ms)
        key = shape.key if record.key is None else record.key
        return record._replace(key=key, headers=[*record.headers, *shape.headers])
    key, value = shape.key, piece
    if shape.separator is not None:
        key, found, value = piece.partition(shape.separator)
        if not found:
            raise MessageError(f'no "{_shown(shape.separator)}" between key and value')
    return Record(
        None if value == shape.null else value,
        None if key == shape.null else key,
        shape.headers,
        now_ms,
    )


def _is_text(argument: str) -> bool:
    """Whether a word of the command line was UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


def _shown(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
