"""The dialect of 2023, as iggy 0.0.60 and 0.0.61 and the clients of that autumn speak it.

There is no login, everything is counted from 1 and clients choose the numbers. Source: iggy at
commit 670a8bab (2023-08-31), and what its Go client of September 2023 sends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from penstock.iggy.wire import from_one, replies, requests
from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import (
    F32,
    U8,
    U32,
    U64,
    Bool,
    Field,
    Name,
    Reader,
    RestView,
    Text,
    U32FromOne,
    to_the_end,
    u32,
    u32_from_one,
    unsaid,
)
from penstock.iggy.wire.from_one import IdentifierFromOne, PolledCount
from penstock.iggy.wire.identifiers import (
    Consumer,
    ConsumerKind,
    Identifier,
    Partitioning,
    PollingStrategy,
)
from penstock.iggy.wire.message import Message, laid_out
from penstock.iggy.wire.murmur3 import murmur3
from penstock.iggy.wire.older import OlderDialect
from penstock.iggy.wire.options import Typed
from penstock.iggy.wire.placed_poll import PlacedPoll

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECOND: Final = 1_000_000
_NEVER: Final = (1 << 64) - 1
_U32_MAX: Final = (1 << 32) - 1
_NAME: Final = re.compile(r"[\w.\-\s]*")


def stored_name(name: str, refusal: ErrorCode) -> str:
    """Return what a stream or a topic of this name is called; raises IggyError."""
    stored = ".".join(name.lower().split())
    if not stored or _NAME.fullmatch(name) is None:
        raise IggyError(refusal, name)
    return stored


def _chosen(number: int, refusal: ErrorCode) -> int:
    if number < 0:
        raise IggyError(refusal, "0")
    return number


def _expiry(seconds: int) -> dict[str, Typed]:
    return {"message_expiry": Typed.u64(seconds * _SECOND)}


def _read_consumer(reader: Reader) -> Consumer:
    kind, number = reader.take(1)[0], u32.read(reader)
    if kind == ConsumerKind.GROUP:
        return Consumer(ConsumerKind.GROUP, Identifier(number - 1))
    if kind == ConsumerKind.CONSUMER:
        return Consumer(ConsumerKind.CONSUMER, Identifier(number))
    raise IggyError(ErrorCode.INVALID_COMMAND, f"kind {kind} of consumer")


def _write_consumer(out: bytearray, consumer: Consumer) -> None:
    out.append(consumer.kind)
    field = u32_from_one if consumer.kind is ConsumerKind.GROUP else u32
    field.write(out, consumer.id.value)


def _read_group(reader: Reader) -> Identifier:
    number: int = u32_from_one.read(reader)
    return Identifier(_chosen(number, ErrorCode.INVALID_CONSUMER_GROUP_ID))


def _key_hash(key: bytes) -> int:
    # The remainder 0 means the last partition, and the others count from 1.
    return murmur3(key) - 1


def _read_partitioning(reader: Reader) -> Partitioning:
    said = from_one.partitioning_from_one(Partitioning.read(reader), -1)
    return Partitioning(said.kind, said.value, _key_hash)


def _write_seconds(out: bytearray, microseconds: int) -> None:
    seconds = 0 if microseconds == _NEVER else -(-microseconds // _SECOND)
    u32.write(out, min(seconds, _U32_MAX))


EarlyConsumer: TypeAlias = Annotated[Consumer, Field(_read_consumer, _write_consumer)]
"""A kind and a number."""
GroupNumber: TypeAlias = Annotated[
    Identifier, Field(_read_group, lambda out, group: u32_from_one.write(out, group.value))
]
EarlyPartitioning: TypeAlias = Annotated[
    Partitioning,
    Field(
        _read_partitioning,
        lambda out, value: from_one.partitioning_from_one(value, 1).write(out),
    ),
]
Seconds: TypeAlias = Annotated[int, Field(u32.read, _write_seconds)]
"""Of a number of microseconds; 0 is never, or the server's default where a client says it."""


class GetClient(Message):
    client_id: U32

    def request(self) -> requests.GetClient:
        if self.client_id == 0:
            raise IggyError(ErrorCode.INVALID_CLIENT_ID, "0")
        return requests.GetClient(self.client_id)


class CreateStream(Message):
    number: U32FromOne
    name: Name

    def request(self) -> requests.CreateStream:
        name = stored_name(self.name, ErrorCode.INVALID_STREAM_NAME)
        number = _chosen(self.number, ErrorCode.INVALID_STREAM_ID)
        return requests.CreateStream(name, {}, number)


class UpdateStream(Message):
    stream: IdentifierFromOne
    name: Name

    def request(self) -> requests.UpdateStream:
        name = stored_name(self.name, ErrorCode.INVALID_STREAM_NAME)
        return requests.UpdateStream(self.stream, name, {})


class CreateTopic(Message):
    stream: IdentifierFromOne
    number: U32FromOne
    partitions_count: U32
    message_expiry: U32
    name: Name

    def request(self) -> requests.CreateTopic:
        name = stored_name(self.name, ErrorCode.INVALID_TOPIC_NAME)
        number = _chosen(self.number, ErrorCode.INVALID_TOPIC_ID)
        options = _expiry(self.message_expiry) if self.message_expiry else {}
        return requests.CreateTopic(self.stream, self.partitions_count, name, options, number)


class UpdateTopic(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    message_expiry: U32
    name: Name

    def request(self) -> requests.UpdateTopic:
        name = stored_name(self.name, ErrorCode.INVALID_TOPIC_NAME)
        return requests.UpdateTopic(self.stream, self.topic, name, _expiry(self.message_expiry))


class DeletePartitions(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partitions_count: U32
    or_all: Annotated[bool, unsaid(True)] = True


class ConsumerGroupRequest(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    group: GroupNumber


class CreateConsumerGroup(Message):
    """A group has no name yet: other dialects call it by its number."""

    stream: IdentifierFromOne
    topic: IdentifierFromOne
    number: U32FromOne

    def request(self) -> requests.CreateConsumerGroup:
        number = _chosen(self.number, ErrorCode.INVALID_CONSUMER_GROUP_ID)
        return requests.CreateConsumerGroup(self.stream, self.topic, str(number + 1), number)


def _partition(consumer: Consumer, partition_id: int) -> int | None:
    """Return the partition that is meant: a member's own, whatever it says."""
    return None if consumer.kind is ConsumerKind.GROUP else partition_id


class GetConsumerOffset(Message):
    consumer: EarlyConsumer
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: U32FromOne

    def request(self) -> requests.GetConsumerOffset:
        partition_id = _partition(self.consumer, self.partition_id)
        return requests.GetConsumerOffset(self.consumer, self.stream, self.topic, partition_id)


class StoreConsumerOffset(Message):
    consumer: EarlyConsumer
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: U32FromOne
    offset: U64

    def request(self) -> requests.StoreConsumerOffset:
        partition_id = _partition(self.consumer, self.partition_id)
        where = (self.consumer, self.stream, self.topic, partition_id)
        return requests.StoreConsumerOffset(*where, self.offset, 1)


class PollMessages(PlacedPoll):
    consumer: EarlyConsumer
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: U32FromOne
    strategy: PollingStrategy
    count: PolledCount
    auto_commit: Bool

    def request(self) -> requests.PollMessages:
        partition_id = _partition(self.consumer, self.partition_id)
        where = (self.consumer, self.stream, self.topic, partition_id)
        what = (self.strategy, self.count, self.auto_commit)
        return requests.PollMessages(*where, *what, MessageForm.EARLY, rewinds=True)


class SendMessages(Message):
    """Messages up to the end; nothing says how many."""

    metadata_size: Annotated[int, unsaid(0)]
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partitioning: EarlyPartitioning
    messages_count: Annotated[int, unsaid(0)]
    batch: RestView
    form: Annotated[MessageForm, unsaid(MessageForm.EARLY)] = MessageForm.EARLY


class Stats(Message):
    process_id: U32
    cpu_usage: F32
    memory_usage: U64
    total_memory: U64
    available_memory: U64
    run_time: U64
    start_time: U64
    read_bytes: U64
    written_bytes: U64
    messages_size: U64
    streams_count: U32
    topics_count: U32
    partitions_count: U32
    segments_count: U32
    messages_count: U64
    clients_count: U32
    consumer_groups_count: U32
    hostname: Text
    os_name: Text
    os_version: Text
    kernel_version: Text


class ClientInfo(Message):
    client_id: U32
    transport: U8
    address: Text
    groups_count: U32


class Clients(Message):
    clients: Annotated[list[Any], to_the_end(laid_out(ClientInfo))]


class ClientDetails(Message):
    """The numbers of a group's stream, topic and its own, as clients read them.

    The server of that time wrote them the other way round.
    """

    client: ClientInfo
    groups: Annotated[list[Any], to_the_end(laid_out(from_one.GroupMembership))]


class Topic(Message):
    id: U32FromOne
    created_at: U64
    partitions_count: U32
    message_expiry: Seconds
    size: U64
    messages_count: U64
    name: Name


class StreamDetails(Message):
    stream: from_one.Stream
    topics: Annotated[list[Any], to_the_end(laid_out(Topic))]


class Topics(Message):
    topics: Annotated[list[Any], to_the_end(laid_out(Topic))]


class TopicDetails(Message):
    topic: Topic
    partitions: Annotated[list[Any], to_the_end(laid_out(from_one.Partition))]


class ConsumerGroup(Message):
    id: U32FromOne
    partitions_count: U32
    members_count: U32


class ConsumerGroups(Message):
    groups: Annotated[list[Any], to_the_end(laid_out(ConsumerGroup))]


class ConsumerGroupDetails(Message):
    group: ConsumerGroup
    members: Annotated[list[Any], to_the_end(laid_out(from_one.ConsumerGroupMember))]


COMMANDS: Final[Mapping[int, Command]] = {
    code: Command(code)
    for code in (
        *(1, 10, 20, 21, 22, 100, 101, 120, 121, *range(200, 205), *range(300, 305)),
        *(402, 403, *range(600, 606)),
    )
}
_NUMBERS: Final = {
    ErrorCode.CONSUMER_GROUP_NAME_ALREADY_EXISTS: 5001,
    ErrorCode.CONSUMER_GROUP_NAME_NOT_FOUND: 5000,
    ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND: 5002,
    ErrorCode.INVALID_CONSUMER_GROUP_ID: 5003,
    ErrorCode.CANNOT_CREATE_CONSUMER_GROUP_INFO: 5006,
    ErrorCode.INVALID_MESSAGE_PAYLOAD_LENGTH: 4024,
    ErrorCode.INVALID_MESSAGES_SIZE: int(ErrorCode.CANNOT_READ_MESSAGE_PAYLOAD),
    ErrorCode.INVALID_HEADER_KIND: int(ErrorCode.INVALID_HEADER_VALUE),
    ErrorCode.INVALID_INDEXES_COUNT: int(ErrorCode.INVALID_MESSAGES_COUNT),
    ErrorCode.TIMESTAMP_OUT_OF_RANGE: int(ErrorCode.CANNOT_READ_MESSAGE_TIMESTAMP),
    ErrorCode.UNSUPPORTED_OPTION_KEY: int(ErrorCode.FEATURE_UNAVAILABLE),
    ErrorCode.INVALID_OPTION_VALUE: int(ErrorCode.FEATURE_UNAVAILABLE),
    ErrorCode.INVALID_TOPIC_SIZE: int(ErrorCode.FEATURE_UNAVAILABLE),
    ErrorCode.TOO_MANY_STREAMS: int(ErrorCode.CANNOT_CREATE_STREAM),
    ErrorCode.TOO_MANY_TOPICS: int(ErrorCode.CANNOT_CREATE_TOPIC),
    ErrorCode.TOO_MANY_CONSUMER_OFFSETS: int(ErrorCode.INVALID_OFFSET),
    ErrorCode.INVALID_PARTITIONS_COUNT: int(ErrorCode.CANNOT_DELETE_PARTITION),
    ErrorCode.IO_ERROR: 200,
    ErrorCode.CANNOT_SERIALIZE_RESOURCE: 201,
}
EARLY: Final = OlderDialect(
    "iggy 0.0.60",
    COMMANDS,
    {
        requests.GetClient: GetClient,
        requests.StreamRequest: from_one.StreamRequest,
        requests.CreateStream: CreateStream,
        requests.UpdateStream: UpdateStream,
        requests.TopicRequest: from_one.TopicRequest,
        requests.CreateTopic: CreateTopic,
        requests.UpdateTopic: UpdateTopic,
        requests.CreatePartitions: from_one.CreatePartitions,
        requests.DeletePartitions: DeletePartitions,
        requests.ConsumerGroupRequest: ConsumerGroupRequest,
        requests.CreateConsumerGroup: CreateConsumerGroup,
        requests.GetConsumerOffset: GetConsumerOffset,
        requests.StoreConsumerOffset: StoreConsumerOffset,
        requests.PollMessages: PollMessages,
        requests.SendMessages: SendMessages,
    },
    {
        replies.Stats: Stats,
        replies.Clients: Clients,
        replies.ClientDetails: ClientDetails,
        replies.Streams: from_one.Streams,
        replies.StreamDetails: StreamDetails,
        replies.Topics: Topics,
        replies.TopicDetails: TopicDetails,
        replies.ConsumerGroups: ConsumerGroups,
        replies.ConsumerGroupDetails: ConsumerGroupDetails,
        replies.ConsumerOffset: from_one.ConsumerOffset,
        replies.NoConsumerOffset: from_one.ConsumerOffset,
        replies.Polled: from_one.Polled,
    },
    MessageForm.EARLY,
    needs_login=False,
    numbers=_NUMBERS,
    answered_with_nothing=frozenset(
        {
            Command.SEND_MESSAGES,
            Command.CREATE_STREAM,
            Command.CREATE_TOPIC,
            Command.CREATE_CONSUMER_GROUP,
        }
    ),
    hangs_up=True,
)
