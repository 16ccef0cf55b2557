"""The dialect of apache-iggy 0.5: as that of 0.6, but that everything is counted from 1.

Clients may choose the numbers of what they create, and the number of a partition has no flag in
front of it. Source: the client 0.5.0 on PyPI.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from penstock.iggy.wire import from_one, replies, requests
from penstock.iggy.wire.batch import MessageForm
from penstock.iggy.wire.commands import Command
from penstock.iggy.wire.dialect_l import (
    COMMANDS,
    ERROR_NUMBERS,
    LOOKED_UP,
    REPLIES,
    REQUESTS,
    Form06,
    Rewinds,
    TopicSettings,
)
from penstock.iggy.wire.fields import (
    U8,
    U32,
    U64,
    Bool,
    Field,
    LongBytes,
    Name,
    Reader,
    RestView,
    Text,
    U32FromOne,
    to_the_end,
    u32,
    unsaid,
)
from penstock.iggy.wire.from_one import (
    ConsumerFromOne,
    IdentifierFromOne,
    PartitioningFromOne,
    PolledCount,
)
from penstock.iggy.wire.identifiers import PollingStrategy
from penstock.iggy.wire.message import Message, laid_out
from penstock.iggy.wire.older import OlderDialect
from penstock.iggy.wire.placed_poll import PlacedPoll


def _read_or_none(reader: Reader) -> int | None:
    number: int = u32.read(reader)
    return number - 1 if number else None


OptionalFromOne = Annotated[
    int | None,
    Field(_read_or_none, lambda out, value: u32.write(out, 0 if value is None else value + 1)),
]
"""A number from 1, 0 where there is none."""


class CreateStream(Message):
    number: OptionalFromOne
    name: Name

    def request(self) -> requests.CreateStream:
        return requests.CreateStream(self.name, {}, self.number)


class UpdateStream(Message):
    stream: IdentifierFromOne
    name: Name

    def request(self) -> requests.UpdateStream:
        return requests.UpdateStream(self.stream, self.name, {})


class CreateTopic(Message):
    stream: IdentifierFromOne
    number: OptionalFromOne
    partitions_count: U32
    settings: TopicSettings
    name: Name

    def request(self) -> requests.CreateTopic:
        options = self.settings.options_set()
        return requests.CreateTopic(
            self.stream, self.partitions_count, self.name, options, self.number
        )


class UpdateTopic(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    settings: TopicSettings
    name: Name

    def request(self) -> requests.UpdateTopic:
        options = self.settings.options()
        return requests.UpdateTopic(self.stream, self.topic, self.name, options)


class CreateConsumerGroup(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    number: OptionalFromOne
    name: Name


class FlushUnsavedBuffer(Message):
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: U32FromOne
    fsync: Bool


class GetConsumerOffset(Message):
    consumer: ConsumerFromOne
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: OptionalFromOne


class StoreConsumerOffset(Message):
    consumer: ConsumerFromOne
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: OptionalFromOne
    offset: U64
    acknowledge: Annotated[int, unsaid(1)] = 1


class DeleteConsumerOffset(Message):
    consumer: ConsumerFromOne
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: OptionalFromOne
    acknowledge: Annotated[int, unsaid(1)] = 1


class PollMessages(PlacedPoll):
    consumer: ConsumerFromOne
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partition_id: OptionalFromOne
    strategy: PollingStrategy
    count: PolledCount
    auto_commit: Bool
    form: Form06 = MessageForm.WITHOUT_RESERVE
    rewinds: Rewinds = True


class SendMessages(Message):
    metadata_size: U32
    stream: IdentifierFromOne
    topic: IdentifierFromOne
    partitioning: PartitioningFromOne
    messages_count: U32
    batch: RestView
    form: Form06 = MessageForm.WITHOUT_RESERVE


class LoggedIn(Message):
    user_id: U32FromOne


class ClientInfo(Message):
    client_id: U32
    user_id: U32FromOne
    """0 before login."""
    transport: U8
    address: Text
    groups_count: U32


class Clients(Message):
    clients: Annotated[list[Any], to_the_end(laid_out(ClientInfo))]


class ClientDetails(Message):
    client: ClientInfo
    groups: Annotated[list[Any], to_the_end(laid_out(from_one.GroupMembership))]


class Topic(Message):
    id: U32FromOne
    created_at: U64
    partitions_count: U32
    message_expiry: U64
    compression: U8
    max_size: U64
    replication_factor: U8
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
    name: Name


class ConsumerGroups(Message):
    groups: Annotated[list[Any], to_the_end(laid_out(ConsumerGroup))]


class ConsumerGroupDetails(Message):
    group: ConsumerGroup
    members: Annotated[list[Any], to_the_end(laid_out(from_one.ConsumerGroupMember))]


class User(Message):
    id: U32FromOne
    created_at: U64
    status: U8
    username: Name


class Users(Message):
    users: Annotated[list[Any], to_the_end(laid_out(User))]


class UserDetails(Message):
    user: User
    has_permissions: Bool
    permissions: LongBytes


class UserRequest(Message):
    user: IdentifierFromOne


VERSION_0_5: Final = OlderDialect(
    "apache-iggy 0.5",
    {code: command for code, command in COMMANDS.items() if code != Command.GET_CLUSTER_METADATA},
    {
        **REQUESTS,
        requests.UserRequest: UserRequest,
        requests.StreamRequest: from_one.StreamRequest,
        requests.CreateStream: CreateStream,
        requests.UpdateStream: UpdateStream,
        requests.TopicRequest: from_one.TopicRequest,
        requests.CreateTopic: CreateTopic,
        requests.UpdateTopic: UpdateTopic,
        requests.CreatePartitions: from_one.CreatePartitions,
        requests.DeletePartitions: from_one.DeletePartitions,
        requests.DeleteSegments: from_one.DeleteSegments,
        requests.CreateConsumerGroup: CreateConsumerGroup,
        requests.ConsumerGroupRequest: from_one.ConsumerGroupRequest,
        requests.FlushUnsavedBuffer: FlushUnsavedBuffer,
        requests.GetConsumerOffset: GetConsumerOffset,
        requests.StoreConsumerOffset: StoreConsumerOffset,
        requests.DeleteConsumerOffset: DeleteConsumerOffset,
        requests.PollMessages: PollMessages,
        requests.SendMessages: SendMessages,
    },
    {
        **REPLIES,
        replies.LoggedIn: LoggedIn,
        replies.Clients: Clients,
        replies.ClientDetails: ClientDetails,
        replies.Users: Users,
        replies.UserDetails: UserDetails,
        replies.Stream: from_one.Stream,
        replies.Streams: from_one.Streams,
        replies.StreamDetails: StreamDetails,
        replies.Topics: Topics,
        replies.TopicDetails: TopicDetails,
        replies.ConsumerGroups: ConsumerGroups,
        replies.ConsumerGroupDetails: ConsumerGroupDetails,
        replies.ConsumerOffset: from_one.ConsumerOffset,
        replies.Polled: from_one.Polled,
    },
    MessageForm.WITHOUT_RESERVE,
    numbers=ERROR_NUMBERS,
    looked_up=LOOKED_UP,
)
