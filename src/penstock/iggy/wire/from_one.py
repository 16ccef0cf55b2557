"""Who and what a command means in the dialects that count from 1: those of 2023 and of 0.5.

The broker counts from 0, as Kafka and today's Iggy do, so that every number is one less there:
those of streams, topics, groups and partitions, and of users. A consumer's number is its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import (
    U32,
    U64,
    Field,
    Name,
    U32FromOne,
    counted,
    to_the_end,
    u32,
    u32_from_one,
    unsaid,
)
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PartitioningKind,
)
from penstock.iggy.wire.message import Message, laid_out

if TYPE_CHECKING:
    from penstock.iggy.wire.fields import Reader

U32_MAX: Final = (1 << 32) - 1


def _read_polled_count(reader: Reader) -> int:
    count: int = u32.read(reader)
    if not count:
        raise IggyError(ErrorCode.INVALID_MESSAGES_COUNT, "a poll of none")
    return count


PolledCount: TypeAlias = Annotated[int, Field(_read_polled_count, u32.write)]
"""How many messages a poll wants. From 0.6 on servers answer one that wants none."""


def shifted(identifier: Identifier, by: int) -> Identifier:
    """Return the same in the other way of counting; a name stays."""
    value = identifier.value
    return identifier if isinstance(value, str) else Identifier(value + by)


def _read_identifier(reader: Reader) -> Identifier:
    return shifted(Identifier.read(reader), -1)


def _write_identifier(out: bytearray, identifier: Identifier) -> None:
    shifted(identifier, 1).write(out)


def _read_consumer(reader: Reader) -> Consumer:
    consumer = Consumer.read(reader)
    if consumer.kind is ConsumerKind.CONSUMER:
        return consumer
    return Consumer(consumer.kind, shifted(consumer.id, -1))


def _write_consumer(out: bytearray, consumer: Consumer) -> None:
    is_group = consumer.kind is ConsumerKind.GROUP
    Consumer(consumer.kind, shifted(consumer.id, int(is_group))).write(out)


def partitioning_from_one(partitioning: Partitioning, by: int) -> Partitioning:
    """Return the same in the other way of counting; there is no partition before the first."""
    if partitioning.kind is not PartitioningKind.PARTITION_ID:
        return partitioning
    return Partitioning.partition((partitioning.partition_id + by) & U32_MAX)


IdentifierFromOne: TypeAlias = Annotated[Identifier, Field(_read_identifier, _write_identifier)]
ConsumerFromOne: TypeAlias = Annotated[Consumer, Field(_read_consumer, _write_consumer)]
PartitioningFromOne: TypeAlias = Annotated[
    Partitioning,
    Field(
        lambda reader: partitioning_from_one(Partitioning.read(reader), -1),
        lambda out, value: partitioning_from_one(value, 1).write(out),
    ),
]


class StreamRequest(Message):
    stream: IdentifierFromOne


class TopicRequest(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne


class CreatePartitions(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partitions_count: U32


class DeletePartitions(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partitions_count: U32
    or_all: Annotated[bool, unsaid(False)] = False


class ConsumerGroupRequest(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    group: IdentifierFromOne


class DeleteSegments(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: U32FromOne
    segments_count: U32


class GroupMembership(Message):
    stream_id: U32FromOne
    topic_id: U32FromOne
    group_id: U32FromOne


class Stream(Message):
    id: U32FromOne
    created_at: U64
    topics_count: U32
    size: U64
    messages_count: U64
    name: Name


class Streams(Message):
    streams: Annotated[list[Any], to_the_end(laid_out(Stream))]


class Partition(Message):
    id: U32FromOne
    created_at: U64
    segments_count: U32
    current_offset: U64
    size: U64
    messages_count: U64


class ConsumerGroupMember(Message):
    """A member's number is that of its connection."""

    client_id: U32
    partitions: Annotated[list[int], counted(u32_from_one)]


class ConsumerOffset(Message):
    partition_id: U32FromOne
    current_offset: U64
    stored_offset: U64


class Polled(Message):
    partition_id: U32FromOne
    current_offset: U64
    messages_count: U32
