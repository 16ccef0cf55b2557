"""How a message is printed: for people, as JSON, or as a template says that looks like kcat's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from penstock.cli.escapes import unescaped
from penstock.cli.failure import UsageError
from penstock.cli.message_json import message_object
from penstock.cli.output import Format

if TYPE_CHECKING:
    from penstock.clients.kafka.record_batch import StoredRecord


class Message(NamedTuple):
    """A record and where it is."""

    topic: str
    partition: int
    record: StoredRecord


Printed: TypeAlias = Callable[[Message], bytes]

TEMPLATE_FIELDS: Final = (
    "%s value, %k key, %h headers, %t topic, %p partition, %o offset, %T milliseconds since 1970, "
    "%S and %K the bytes of value and key (-1 is null), %% a percent sign"
)
_PART: Final = re.compile(r"%(?P<field>.?)|(?P<text>[^%]+)", re.DOTALL)


def printed_as(wanted: str, null: bytes) -> Printed:
    """Return what makes bytes of a message; `null` stands for null where a text is wanted.

    Raises UsageError for what is neither a format nor a template.
    """
    if wanted == Format.JSON:
        return _json_line
    if wanted == Format.TABLE:
        return lambda message: _text_line(message, null)
    if "%" not in wanted:
        raise UsageError(
            f'--format: "{wanted}" is refused; what is needed is table, json or a template '
            f"such as '%k %s\\n': {TEMPLATE_FIELDS}"
        )
    parts = [_part(found, null) for found in _PART.finditer(wanted)]
    return lambda message: b"".join(part(message) for part in parts)


def _json_line(message: Message) -> bytes:
    return json.dumps(message_object(*message), ensure_ascii=False).encode() + b"\n"


def _text_line(message: Message, null: bytes) -> bytes:
    record = message.record
    key = b"" if record.key is None else _shown(record.key, null) + b"\t"
    return key + _shown(record.value, null) + b"\n"


def _shown(data: bytes | None, null: bytes) -> bytes:
    if data is None:
        return null
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"0x" + data.hex().encode()
    return data


def _part(found: re.Match[str], null: bytes) -> Printed:
    if found["field"] is None:
        text = unescaped(found["text"])
        return lambda _: text
    part = _fields(null).get(found["field"])
    if part is None:
        raise UsageError(f'--format: "{found[0]}" is refused; there are {TEMPLATE_FIELDS}')
    return part


def _fields(null: bytes) -> dict[str, Printed]:
    return {
        "s": lambda message: null if message.record.value is None else message.record.value,
        "k": lambda message: null if message.record.key is None else message.record.key,
        "h": lambda message: _headers(message.record, null),
        "t": lambda message: message.topic.encode(),
        "p": lambda message: b"%d" % message.partition,
        "o": lambda message: b"%d" % message.record.offset,
        "T": lambda message: b"%d" % message.record.timestamp_ms,
        "S": lambda message: b"%d" % _length(message.record.value),
        "K": lambda message: b"%d" % _length(message.record.key),
        "%": lambda _: b"%",
    }


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: StoredRecord, null: bytes) -> bytes:
    return b",".join(
        name.encode() + b"=" + (null if value is None else value) for name, value in record.headers
    )
