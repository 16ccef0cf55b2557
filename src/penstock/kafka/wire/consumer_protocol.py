"""What the consumers of a group tell each other inside JoinGroup and SyncGroup.

A broker passes these bytes on unread; tools that describe a group read them.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Packer
from typing import TYPE_CHECKING, Any

from penstock.kafka.wire.apis import MESSAGES, Message, MessageType, protocol_name
from penstock.kafka.wire.primitives import MalformedMessageError
from penstock.kafka.wire.schema import parse
from penstock.session import Buffer

if TYPE_CHECKING:
    from penstock.kafka.wire.messages.consumer_protocol_assignment import (
        ConsumerProtocolAssignmentType,
    )
    from penstock.kafka.wire.messages.consumer_protocol_subscription import (
        ConsumerProtocolSubscriptionType,
    )

NEWEST_VERSION = 3

_VERSION = Packer(">h")


@cache
def subscription_type() -> ConsumerProtocolSubscriptionType:
    """A member's metadata in JoinGroup: topics, and what it owns."""
    loaded: ConsumerProtocolSubscriptionType = _load("consumer_protocol_subscription")
    return loaded


@cache
def assignment_type() -> ConsumerProtocolAssignmentType:
    """A member's assignment in SyncGroup: partitions by topic."""
    loaded: ConsumerProtocolAssignmentType = _load("consumer_protocol_assignment")
    return loaded


def decode(message_type: MessageType[Message], data: Buffer) -> Message:
    """Read either of the two, of any version. Raises MalformedMessageError.

    A version newer than those known is read as the newest: fields are only ever added at the end.
    """
    return message_type.decode(data, _version(data), _VERSION.size)


async def subscribed_topics(metadata: Buffer) -> list[str]:
    """Return the topics that a member subscribes to, read between the turns of others.

    Read as the first version, as Kafka's coordinator does: clients that say that theirs is a later
    one leave out what that has behind the topics. Raises MalformedMessageError.
    """
    _version(metadata)
    subscription, _ = await subscription_type().decode_in_steps(metadata, 0, _VERSION.size)
    return subscription.topics


def encode(
    message_type: MessageType[Message], message: Message, version: int = NEWEST_VERSION
) -> bytes:
    """Write either of the two, with its version before it."""
    return b"".join(message_type.encode(message, version, _VERSION.pack(version)))


def _version(data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessageError(f"{len(data)} bytes are no consumer protocol message")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise MalformedMessageError(f"consumer protocol version {version}")
    return int(min(version, NEWEST_VERSION))


def _load(file_name: str) -> Any:
    text = (MESSAGES / f"{file_name}.schema").read_text(encoding="utf-8")
    return MessageType(parse(text, protocol_name(file_name)), "data")
