"""How the broker's objects look to an Iggy client.

Whoever describes topics has their logs opened before, as `opened` does. A log that can't be opened
counts as an empty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from penstock.iggy.offsets import current_offset
from penstock.iggy.topic_options import compression_code, derived, explicit, option_value
from penstock.iggy.wire import replies
from penstock.requests.call import ANONYMOUS
from penstock.requests.opening import once_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.broker.broker import Broker
    from penstock.broker.groups.topic_groups import TopicGroup
    from penstock.broker.topics.namespaces import Namespace
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.server import Client
    from penstock.session import Answer

ReplyT = TypeVar("ReplyT")

ROOT_USER_ID: Final = 0
_NO_USER: Final = (1 << 32) - 1
_TCP: Final = 1
_ACTIVE: Final = 1
_ALL_PERMISSIONS: Final = bytes([1] * 10 + [0])
"""Everything everywhere, and nothing that is particular to a stream."""


def opened(topics: Iterable[Topic], answer: Callable[[], ReplyT]) -> Answer[ReplyT]:
    """Return `answer()` once all the topics' logs are open."""
    return once_open([partition for topic in topics for partition in topic.partitions], answer)


def message_count(topic: Topic) -> int:
    """Return how many messages a topic holds."""
    return sum(p.readable_end() - p.start_offset for p in topic.partitions if p.is_open)


def size(topic: Topic) -> int:
    """Return the bytes that a topic's messages take."""
    return sum(partition.size_bytes for partition in topic.partitions if partition.is_open)


def segment_count(topic: Topic) -> int:
    """Return in how many files a topic's messages lie."""
    return sum(partition.segment_count for partition in topic.partitions if partition.is_open)


def describe_stream(broker: Broker, stream: Namespace) -> replies.Stream:
    """Describe a stream without its topics."""
    topics = broker.topics.in_namespace(stream.name)
    return replies.Stream(
        id=stream.stream_id,
        created_at=stream.created_at_us,
        topics_count=len(topics),
        size=sum(map(size, topics)),
        messages_count=sum(map(message_count, topics)),
        name=stream.name.iggy,
        options={},
    )


def describe_stream_fully(broker: Broker, stream: Namespace) -> replies.StreamDetails:
    """Describe a stream and its topics."""
    topics = sorted(broker.topics.in_namespace(stream.name), key=lambda topic: topic.iggy_topic_id)
    return replies.StreamDetails(describe_stream(broker, stream), list(map(describe_topic, topics)))


def describe_topic(topic: Topic) -> replies.Topic:
    """Describe a topic without its partitions."""
    return replies.Topic(
        id=topic.iggy_topic_id,
        created_at=topic.created_at_us,
        partitions_count=len(topic.partitions),
        message_expiry=int(option_value(topic.config, "message_expiry")),
        compression=compression_code(topic.config),
        max_size=int(option_value(topic.config, "max_topic_size")),
        size=size(topic),
        messages_count=message_count(topic),
        name=topic.name.topic,
        explicit_options=explicit(topic.config),
        derived_options=derived(topic.config),
    )


def describe_topic_fully(topic: Topic) -> replies.TopicDetails:
    """Describe a topic and its partitions."""
    return replies.TopicDetails(
        describe_topic(topic), [_describe_partition(partition) for partition in topic.partitions]
    )


def _describe_partition(partition: Partition) -> replies.Partition:
    if not partition.is_open:
        return replies.Partition(partition.index, partition.topic.created_at_us, 0, 0, 0, 0)
    return replies.Partition(
        id=partition.index,
        created_at=partition.topic.created_at_us,
        # Clients count the segment that the first message will begin.
        segments_count=max(1, partition.segment_count),
        current_offset=current_offset(partition),
        size=partition.size_bytes,
        messages_count=partition.readable_end() - partition.start_offset,
    )


def describe_group(group: TopicGroup) -> replies.ConsumerGroup:
    """Describe a group without its members."""
    return replies.ConsumerGroup(
        group.group_id, len(group.topic.partitions), group.members_count, group.name
    )


def describe_group_fully(group: TopicGroup) -> replies.ConsumerGroupDetails:
    """Describe a group and who reads what."""
    members = [replies.ConsumerGroupMember(*member) for member in group.members.items()]
    return replies.ConsumerGroupDetails(describe_group(group), members)


def describe_client(broker: Broker, client: Client) -> replies.ClientInfo:
    """Describe a connection without its groups."""
    return replies.ClientInfo(
        client_id=client.id,
        user_id=_NO_USER if client.principal is ANONYMOUS else ROOT_USER_ID,
        transport=_TCP,
        address=client.transport.peer,
        groups_count=len(broker.topic_groups.of_member(client)),
    )


def describe_client_fully(broker: Broker, client: Client) -> replies.ClientDetails:
    """Describe a connection and the groups that it is in."""
    return replies.ClientDetails(
        describe_client(broker, client),
        [_describe_membership(broker, group) for group in broker.topic_groups.of_member(client)],
    )


def _describe_membership(broker: Broker, group: TopicGroup) -> replies.GroupMembership:
    stream = broker.namespaces.get(group.topic.name.in_namespace)
    assert stream is not None, "a topic's namespace lasts as long as the topic"
    return replies.GroupMembership(stream.stream_id, group.topic.iggy_topic_id, group.group_id)


def describe_root(broker: Broker, created_at_us: int) -> replies.User:
    """Describe the one user that there is."""
    return replies.User(ROOT_USER_ID, created_at_us, _ACTIVE, broker.settings.iggy_user, {})


def describe_root_fully(broker: Broker, created_at_us: int) -> replies.UserDetails:
    """Describe the one user and what it may do."""
    root = describe_root(broker, created_at_us)
    return replies.UserDetails(root, True, _ALL_PERMISSIONS)
