"""What servers answer, field by field in the order of the wire, result section left out."""

from __future__ import annotations

import struct
from typing import Annotated, Final, NamedTuple, TypeAlias

from penstock.iggy.wire.fields import (
    F32,
    U8,
    U16,
    U32,
    U64,
    Bool,
    LongBytes,
    Name,
    RestView,
    ShortText,
    Text,
    block,
    counted,
    to_the_end,
    u32,
    unsaid,
)
from penstock.iggy.wire.message import Message
from penstock.iggy.wire.options import SizedOptions
from penstock.session import Buffers

_POLLED: Final = struct.Struct("<IQI")
_CONFIRMATION: Final = struct.Struct("<IIIQ")


class LoggedIn(Message):
    """LOGIN_REGISTER."""

    user_id: U32
    session: U64
    protocol_version: U32
    server_version: ShortText


class ClusterNode(Message):
    """One server and its ports; 0 where it does not listen."""

    name: Text
    address: Text
    tcp_port: U16
    quic_port: U16
    http_port: U16
    websocket_port: U16
    role: U8
    """0 leader, 1 follower."""
    status: U8
    """0 healthy."""


class ClusterMetadata(Message):
    """GET_CLUSTER_METADATA."""

    name: Text
    nodes: Annotated[list[ClusterNode], counted(block(ClusterNode))]


class OptionDescription(Message):
    """One option that a kind of resource knows."""

    key: ShortText
    kind: U8
    default: LongBytes
    description: Text


class OptionDescriptions(Message):
    """DESCRIBE_OPTIONS."""

    options: Annotated[list[OptionDescription], counted(block(OptionDescription))]


class Stats(Message):
    """GET_STATS. Times are microseconds, `run_time` included; sizes are bytes."""

    process_id: U32
    cpu_usage: F32
    total_cpu_usage: F32
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
    server_version: Text
    server_semver: U32
    cache_metrics_count: U32
    """Always 0: the page cache is the operating system's."""
    threads_count: U32
    free_disk_space: U64
    total_disk_space: U64


class GroupMembership(Message):
    """A group that a client is a member of."""

    stream_id: U32
    topic_id: U32
    group_id: U32


class ClientInfo(Message):
    """One connection, as GET_CLIENTS lists it."""

    client_id: U32
    user_id: U32
    """2**32 - 1 before login."""
    transport: U8
    """1 TCP."""
    address: Text
    groups_count: U32


class Clients(Message):
    """GET_CLIENTS."""

    clients: Annotated[list[ClientInfo], to_the_end(block(ClientInfo))]


class ClientDetails(Message):
    """GET_ME, GET_CLIENT."""

    client: ClientInfo
    groups: Annotated[list[GroupMembership], to_the_end(block(GroupMembership))]


class User(Message):
    """A user."""

    id: U32
    created_at: U64
    status: U8
    """1 active, 2 inactive."""
    username: Name
    options: SizedOptions


class Users(Message):
    """GET_USERS."""

    users: Annotated[list[User], to_the_end(block(User))]


class UserDetails(Message):
    """GET_USER, CREATE_USER."""

    user: User
    has_permissions: Bool
    permissions: LongBytes
    """Ten truth values, one a kind of thing that is allowed everywhere, then 0: none by stream."""


class Stream(Message):
    """A stream. `created_at` is microseconds since 1970."""

    id: U32
    created_at: U64
    topics_count: U32
    size: U64
    messages_count: U64
    name: Name
    options: SizedOptions


class Streams(Message):
    """GET_STREAMS."""

    streams: Annotated[list[Stream], to_the_end(block(Stream))]


class Topic(Message):
    """A topic."""

    id: U32
    created_at: U64
    partitions_count: U32
    message_expiry: U64
    """Microseconds; 2**64 - 1 is never."""
    compression: U8
    """1 none, 2 gzip: a label only."""
    max_size: U64
    size: U64
    messages_count: U64
    name: Name
    explicit_options: SizedOptions
    """What the client that created the topic asked for."""
    derived_options: SizedOptions
    """All other options with their defaults."""
    replication_factor: Annotated[int, unsaid(1)] = 1


class StreamDetails(Message):
    """GET_STREAM."""

    stream: Stream
    topics: Annotated[list[Topic], to_the_end(block(Topic))]


class Topics(Message):
    """GET_TOPICS."""

    topics: Annotated[list[Topic], counted(block(Topic))]


class Partition(Message):
    """A partition. `current_offset` is the last message's, 0 where there is none."""

    id: U32
    created_at: U64
    segments_count: U32
    current_offset: U64
    size: U64
    messages_count: U64


class TopicDetails(Message):
    """CREATE_TOPIC, GET_TOPIC."""

    topic: Topic
    partitions: Annotated[list[Partition], to_the_end(block(Partition))]


class ConsumerGroup(Message):
    """A consumer group."""

    id: U32
    partitions_count: U32
    members_count: U32
    name: Name


class ConsumerGroups(Message):
    """GET_CONSUMER_GROUPS."""

    groups: Annotated[list[ConsumerGroup], to_the_end(block(ConsumerGroup))]


class ConsumerGroupMember(Message):
    """A member and the partitions that it reads."""

    id: U32
    partitions: Annotated[list[int], counted(u32)]
    client_id: Annotated[int, unsaid(0)] = 0


class ConsumerGroupDetails(Message):
    """CREATE_CONSUMER_GROUP, GET_CONSUMER_GROUP."""

    group: ConsumerGroup
    members: Annotated[list[ConsumerGroupMember], to_the_end(block(ConsumerGroupMember))]


class Assignment(Message):
    """SYNC_CONSUMER_GROUP of a member; others are answered with nothing."""

    generation: U64
    partitions: Annotated[list[int], counted(u32)]


class ConsumerOffset(Message):
    """GET_CONSUMER_OFFSET where an offset is stored."""

    partition_id: U32
    current_offset: U64
    stored_offset: U64


class NoConsumerOffset(Message):
    """GET_CONSUMER_OFFSET where none is stored."""

    partition_id: Annotated[int, unsaid(0)]
    current_offset: Annotated[int, unsaid(0)]
    stored_offset: Annotated[int, unsaid(0)] = 0


class Snapshot(Message):
    """A ZIP archive."""

    archive: RestView


class Confirmation(Message):
    """Where a batch went."""

    stream_id: U32
    topic_id: U32
    partition_id: U32
    base_offset: U64

    def write(self, out: bytearray) -> None:
        """Append the fields at once: there is one for each batch that is sent."""
        place = (self.stream_id, self.topic_id, self.partition_id)
        out += _CONFIRMATION.pack(*place, self.base_offset)


class Confirmations(Message):
    """SEND_MESSAGES."""

    confirmations: Annotated[list[Confirmation], counted(block(Confirmation))]


NO_PARTITION: Final = (1 << 32) - 1
"""Where none of a group's partitions is the member's, or the one that it named is not."""


class Polled(Message):
    """The head of POLL_MESSAGES, up to the batches that follow."""

    partition_id: U32
    current_offset: U64
    messages_count: U32

    def __init__(self, partition_id: int, current_offset: int, messages_count: int) -> None:
        self.__dict__.update(
            partition_id=partition_id, current_offset=current_offset, messages_count=messages_count
        )

    def packed(self) -> bytes:
        """Return the fields at once: no reply is sent as often as this one."""
        return _POLLED.pack(self.partition_id, self.current_offset, self.messages_count)


class PolledMessages(NamedTuple):
    """POLL_MESSAGES: its head, and batches as parts of the log that are never copied."""

    head: Polled
    batches: Buffers


Reply: TypeAlias = Message | PolledMessages | None
"""What a handler answers with; None where the command has nothing to say but that it is done."""
