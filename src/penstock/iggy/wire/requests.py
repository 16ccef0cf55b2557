"""What clients ask, field by field in the order of the wire.

Source: apache-iggy 0.9.0's binary protocol 0.11.0. Commands that are not here have no body.
What has a default is said in older dialects only; their bytes are declared beside their codecs.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Annotated, Final, Self, TypeAlias, cast

from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.errors import IggyError
from penstock.iggy.wire.fields import (
    U8,
    U32,
    U64,
    Bool,
    Name,
    OptionalU32,
    Reader,
    RestView,
    ShortBytes,
    ShortText,
    Text,
    unsaid,
)
from penstock.iggy.wire.identifiers import (
    Consumer,
    Identifier,
    Partitioning,
    PollingStrategy,
)
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.options import Options
from penstock.iggy.wire.placed_poll import LONGEST_POLL, PlacedPoll
from penstock.limits import IGGY_KNOWN_PLACES

ChosenNumber: TypeAlias = Annotated[int | None, unsaid(None)]
"""The number that a client wants for what it creates; None where the broker gives one."""
InBatches: TypeAlias = Annotated[MessageForm, unsaid(MessageForm.BATCH)]


class Empty(Message):
    """A command without arguments."""


class ClientVersion(Message):
    """What every login begins with, whatever its version makes of the rest."""

    protocol_version: U32
    """`major << 20 | minor << 10 | patch`."""
    sdk_name: ShortText
    sdk_version: ShortText


class LoginRegister(Message):
    """Log in with a password and open a session."""

    protocol_version: U32
    """`major << 20 | minor << 10 | patch`."""
    sdk_name: Name
    sdk_version: Name
    username: Name
    password: Name
    context: Text


class LoginRegisterWithToken(Message):
    """Log in with a personal access token and open a session."""

    protocol_version: U32
    sdk_name: Name
    sdk_version: Name
    token: Name
    context: Text


class GetClient(Message):
    """One connection."""

    client_id: U32


class UserRequest(Message):
    """Get or delete a user."""

    user: Identifier


class DescribeOptions(Message):
    """The options that a kind of resource knows: 1 topic, 2 stream, 3 user."""

    scope: U8


class StreamRequest(Message):
    """Get, delete or purge a stream, or list its topics."""

    stream: Identifier


class CreateStream(Message):
    """Make a stream."""

    name: Name
    options: Options
    number: ChosenNumber = None


class UpdateStream(Message):
    """Rename a stream."""

    stream: Identifier
    name: Name
    options: Options


class TopicRequest(Message):
    """Get, delete or purge a topic, or list its groups."""

    stream: Identifier
    topic: Identifier


class CreateTopic(Message):
    """Make a topic."""

    stream: Identifier
    partitions_count: U32
    name: Name
    options: Options
    number: ChosenNumber = None


class UpdateTopic(Message):
    """Rename a topic or change options; options that are left out stay as they are."""

    stream: Identifier
    topic: Identifier
    name: Name
    options: Options


class GetSnapshot(Message):
    """A number of how the archive is compressed, and of each section that is to be in it."""

    compression: U8
    sections: ShortBytes


class CreatePartitions(Message):
    """Add this many partitions to a topic."""

    stream: Identifier
    topic: Identifier
    partitions_count: U32


class DeletePartitions(Message):
    """Take the last ones of a topic away, this many."""

    stream: Identifier
    topic: Identifier
    partitions_count: U32
    or_all: Annotated[bool, unsaid(False)] = False
    """Whether it is all of them where the topic has fewer, and no mistake."""


class DeleteSegments(Message):
    """Give up so many of a partition's oldest segments."""

    stream: Identifier
    topic: Identifier
    partition_id: U32
    segments_count: U32


class CreateConsumerGroup(Message):
    """Make a consumer group of a topic."""

    stream: Identifier
    topic: Identifier
    name: Name
    number: ChosenNumber = None


class ConsumerGroupRequest(Message):
    """Get, delete, join, leave or sync a consumer group."""

    stream: Identifier
    topic: Identifier
    group: Identifier


class FlushUnsavedBuffer(Message):
    """Bring a partition to stable storage."""

    stream: Identifier
    topic: Identifier
    partition_id: U32
    fsync: Bool


class GetConsumerOffset(Message):
    """The offset that a consumer has stored."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32


class StoreConsumerOffset(Message):
    """Store the offset of the last message that a consumer is done with."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    offset: U64
    acknowledge: U8


class DeleteConsumerOffset(Message):
    """Forget the offset that a consumer has stored."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    acknowledge: U8


class PollMessages(PlacedPoll):
    """Read up to `count` messages of one partition."""

    consumer: Consumer
    stream: Identifier
    topic: Identifier
    partition_id: OptionalU32
    strategy: PollingStrategy
    count: U32
    auto_commit: Bool
    form: InBatches = MessageForm.BATCH
    rewinds: Annotated[bool, unsaid(False)] = False
    """Whether auto commit may store less than is stored."""

    @classmethod
    def decode(cls, body: bytes | bytearray | memoryview) -> Self:
        """Read it; what is the same from the first byte to the last is not read anew."""
        if len(body) > LONGEST_POLL:
            return super().decode(body)  # Not kept: what follows may be of any length.
        return cast("Self", _polled(bytes(body)))


@lru_cache(IGGY_KNOWN_PLACES)
def _polled(body: bytes) -> PollMessages:
    return PollMessages.read(Reader(body))


class SendMessages(Message):
    """Append one batch to one partition."""

    metadata_size: U32
    """Bytes from after this field up to the batch."""
    stream: Identifier
    topic: Identifier
    partitioning: Partitioning
    messages_count: U32
    batch: RestView
    form: InBatches = MessageForm.BATCH

    @classmethod
    def decode(cls, body: bytes | bytearray | memoryview) -> Self:
        """Read it; a client sends to one place again and again, which is read once."""
        if len(body) >= _U32.size:
            (size,) = _U32.unpack_from(body)
            if _U32.size < size <= min(_LONGEST_SENT_PLACE, len(body) - _U32.size):
                place = _sent_place(bytes(body[_U32.size : size]))
                if place is not None:
                    (count,) = _U32.unpack_from(body, size)
                    return cls(size, *place, count, memoryview(body)[size + _U32.size :])
        return super().decode(body)  # The size says nothing that has to be so.


_U32: Final = struct.Struct("<I")
_LONGEST_SENT_PLACE: Final = 800
"""Bytes of the longest names and the longest key that there are, or more."""


class _SentPlace(Message):
    """What a send begins with, behind a size."""

    stream: Identifier
    topic: Identifier
    partitioning: Partitioning


@lru_cache(IGGY_KNOWN_PLACES)
def _sent_place(data: bytes) -> tuple[Identifier, Identifier, Partitioning] | None:
    """Read what a send begins with; None where it is not that, or more."""
    reader = Reader(data)
    try:
        stream, topic, partitioning = _SentPlace.read_fields(reader)
    except IggyError:
        return None
    return None if reader.remaining else (stream, topic, partitioning)


class Anything(Message):
    """A body that nobody looks into."""

    body: RestView
