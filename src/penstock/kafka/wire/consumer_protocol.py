"""What the consumers of a group tell each other inside JoinGroup and SyncGroup.

A broker passes these bytes on unread; tools that describe a group read them.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Packer

from penstock.kafka.wire.apis import MESSAGES, MessageType
from penstock.kafka.wire.primitives import MalformedMessageError
from penstock.kafka.wire.schema import parse
from penstock.kafka.wire.structs import Struct
from penstock.session import Buffer

NEWEST_VERSION = 3

_VERSION = Packer(">h")


@cache
def subscription_type() -> MessageType:
    """A member's metadata in JoinGroup: topics, and what it owns."""
    return _load("consumer_protocol_subscription", "ConsumerProtocolSubscription")


@cache
def assignment_type() -> MessageType:
    """A member's assignment in SyncGroup: partitions by topic."""
    return _load("consumer_protocol_assignment", "ConsumerProtocolAssignment")


def decode(message_type: MessageType, data: Buffer) -> Struct:
    """Read either of the two, of any version. Raises MalformedMessageError.

    A version newer than those known is read as the newest: fields are only ever added at the end.
    """
    if len(data) < _VERSION.size:
        raise MalformedMessageError(f"{len(data)} bytes are no consumer protocol message")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise MalformedMessageError(f"consumer protocol version {version}")
    return message_type.decode(data, min(version, NEWEST_VERSION), _VERSION.size)


def encode(message_type: MessageType, message: Struct, version: int = NEWEST_VERSION) -> bytes:
    """Write either of the two, with its version before it."""
    return b"".join(message_type.encode(message, version, _VERSION.pack(version)))


def _load(file_name: str, name: str) -> MessageType:
    text = (MESSAGES / f"{file_name}.schema").read_text(encoding="utf-8")
    return MessageType(parse(text, name), "data")
