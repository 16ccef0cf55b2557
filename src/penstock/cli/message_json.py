"""A message as a JSON object: text is text, and bytes that are none are in base64.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": "2026-01-31T12:00:00+00:00",
     "key": "42", "value_base64": "/wA=", "headers": [{"name": "trace", "value": "a1"}]}

What is UTF-8 stands under its name; what is not stands under its name and `_base64`; null is null,
under the name.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from penstock.clients.kafka.record_batch import Record, StoredRecord

_PLACE: Final = {"topic", "partition", "offset"}
"""Where a message was; whoever writes it again says where it goes."""

_KNOWN: Final = {*_PLACE, "timestamp", "key", "key_base64", "value", "value_base64", "headers"}


class MessageError(Exception):
    """It describes no message; what is wrong is said for people."""


def message_object(topic: str, partition: int, record: StoredRecord) -> dict[str, object]:
    """Return what JSON says of a stored record."""
    return {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": _moment(record.timestamp_ms),
        **_member("key", record.key),
        **_member("value", record.value),
        "headers": [{"name": name, **_member("value", value)} for name, value in record.headers],
    }


def parsed_message(text: bytes, now_ms: int) -> Record:
    """Return the record that an object describes; one without a time is of now.

    Raises MessageError.
    """
    from penstock.clients.kafka.record_batch import Record

    try:
        found = json.loads(text)
    except RecursionError as error:
        raise MessageError("JSON that is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise MessageError("no JSON: it is not UTF-8") from error
    except ValueError as error:
        raise MessageError(f"no JSON: {error}") from error
    _check_names(found, _KNOWN)
    if not found.keys() & {"value", "value_base64"}:
        raise MessageError('there is no "value"; null is a message that deletes its key')
    headers = found.get("headers", [])
    if not isinstance(headers, list):
        raise MessageError('"headers" is a list of {"name": ..., "value": ...}')
    return Record(
        _data(found, "value"),
        _data(found, "key"),
        [_header(each) for each in headers],
        _milliseconds(found["timestamp"]) if found.get("timestamp") is not None else now_ms,
    )


def _member(name: str, data: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data or b"").decode()}


def _moment(milliseconds: int) -> str | None:
    """Return the time in ISO 8601; None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _milliseconds(text: object) -> int:
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise MessageError('"timestamp" is such as "2026-01-31T12:00:00Z"') from None


def _check_names(found: object, known: set[str]) -> None:
    if not isinstance(found, dict):
        raise MessageError("not a JSON object")
    unknown = sorted(found.keys() - known)
    if unknown:
        raise MessageError(f'unknown name "{unknown[0]}"; known are {", ".join(sorted(known))}')


def _header(found: Any) -> tuple[str, bytes | None]:
    _check_names(found, {"name", "value", "value_base64"})
    if not isinstance(found.get("name"), str):
        raise MessageError('a header has a "name"')
    _encoded(found["name"], "name")
    return found["name"], _data(found, "value")


def _data(found: dict[str, Any], name: str) -> bytes | None:
    text, encoded = found.get(name), found.get(f"{name}_base64")
    if encoded is None:
        if text is None or isinstance(text, str):
            return None if text is None else _encoded(text, name)
        raise MessageError(f'"{name}" is text or null; bytes are "{name}_base64"')
    if text is not None:
        raise MessageError(f'there are both "{name}" and "{name}_base64"')
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise MessageError(f'"{name}_base64" is no base64') from None


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise MessageError(f'"{name}" has half a surrogate pair, which is no text') from None
