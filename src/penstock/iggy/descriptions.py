"""How the broker's objects look to an Iggy client.

Whoever describes topics has their logs measured before, by `measure`. A log that can't be read
counts as an empty one. What there may be many of is described in steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from penstock.iggy.topic_options import compression_code, derived, explicit, option_value
from penstock.iggy.wire import replies
from penstock.pace import Pace
from penstock.requests.call import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.broker import Broker
    from penstock.broker.groups.topic_groups import Place, TopicGroup
    from penstock.broker.topics.namespaces import Namespace
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.server import Client

ROOT_USER_ID: Final = 0
_NO_USER: Final = (1 << 32) - 1
_TCP: Final = 1
_ACTIVE: Final = 1
_ALL_PERMISSIONS: Final = bytes([1] * 10 + [0])
"""Everything everywhere, and nothing that is particular to a stream."""


class Figures(NamedTuple):
    """What topics hold."""

    topics: int = 0
    partitions: int = 0
    segments: int = 0
    size: int = 0
    messages: int = 0


async def figures(topics: Iterable[Topic], pace: Pace) -> Figures:
    """Count what topics hold."""
    sums = [0] * len(Figures._fields)
    for topic in topics:
        sums[0] += 1
        for partition in topic.partitions:
            sums[1] += 1
            held = partition.summary
            if held is not None:
                sums[2] += _segments(held.segment_count)
                sums[3] += held.size_bytes
                sums[4] += held.end_offset - held.start_offset
            if pace.is_over():
                await pace.others()
    return Figures(*sums)


async def measure(broker: Broker, topics: Iterable[Topic]) -> None:
    """Return when it is known how much the topics hold."""
    every = (partition for topic in topics for partition in (*topic.partitions,))
    await broker.topics.measure(every)


async def describe_stream(broker: Broker, stream: Namespace, pace: Pace) -> replies.Stream:
    """Describe a stream without its topics."""
    held = await figures(broker.topics.in_namespace(stream.name), pace)
    return replies.Stream(
        id=stream.stream_id,
        created_at=stream.created_at_us,
        topics_count=held.topics,
        size=held.size,
        messages_count=held.messages,
        name=stream.name.iggy,
        options={},
    )


async def describe_topics(topics: Iterable[Topic], pace: Pace) -> list[replies.Topic]:
    """Describe topics without their partitions, in the order of their numbers."""
    in_order = sorted(topics, key=lambda topic: topic.iggy_topic_id)
    return await pace.each_awaited(in_order, lambda topic: describe_topic(topic, pace))


async def describe_topic(topic: Topic, pace: Pace) -> replies.Topic:
    """Describe a topic without its partitions."""
    held = await figures([topic], pace)
    return replies.Topic(
        id=topic.iggy_topic_id,
        created_at=topic.created_at_us,
        partitions_count=len(topic.partitions),
        message_expiry=int(option_value(topic.config, "message_expiry")),
        compression=compression_code(topic.config),
        max_size=int(option_value(topic.config, "max_topic_size")),
        size=held.size,
        messages_count=held.messages,
        name=topic.name.topic,
        explicit_options=explicit(topic.config),
        derived_options=derived(topic.config),
    )


async def describe_topic_fully(topic: Topic) -> replies.TopicDetails:
    """Describe a topic and its partitions."""
    pace = Pace()
    described = await describe_topic(topic, pace)
    partitions = await pace.each((*topic.partitions,), _describe_partition)
    return replies.TopicDetails(described, partitions)


def _segments(stored: int) -> int:
    """Count the segment that the first message will begin, as clients do."""
    return max(1, stored)


def _describe_partition(partition: Partition) -> replies.Partition:
    held = partition.summary
    if held is None:
        return replies.Partition(partition.index, partition.topic.created_at_us, 0, 0, 0, 0)
    return replies.Partition(
        id=partition.index,
        created_at=partition.topic.created_at_us,
        segments_count=_segments(held.segment_count),
        current_offset=max(0, held.end_offset - 1),
        size=held.size_bytes,
        messages_count=held.end_offset - held.start_offset,
    )


def describe_group(group: TopicGroup) -> replies.ConsumerGroup:
    """Describe a group without its members."""
    return replies.ConsumerGroup(
        group.group_id, len(group.topic.partitions), group.members_count, group.name
    )


async def describe_group_fully(group: TopicGroup) -> replies.ConsumerGroupDetails:
    """Describe a group and who reads what."""
    members = await Pace().each(group.places, _describe_member)
    return replies.ConsumerGroupDetails(describe_group(group), members)


def _describe_member(place: Place) -> replies.ConsumerGroupMember:
    client = cast("Client", place.member)
    return replies.ConsumerGroupMember(place.number, place.partitions, client.id)


def describe_client(broker: Broker, client: Client) -> replies.ClientInfo:
    """Describe a connection without its groups."""
    return replies.ClientInfo(
        client_id=client.id,
        user_id=_NO_USER if client.principal is ANONYMOUS else ROOT_USER_ID,
        transport=_TCP,
        address=client.transport.peer,
        groups_count=len(broker.topic_groups.of_member(client)),
    )


async def describe_client_fully(broker: Broker, client: Client) -> replies.ClientDetails:
    """Describe a connection and the groups that it is in."""
    memberships = await Pace().each(
        broker.topic_groups.of_member(client), lambda group: _describe_membership(broker, group)
    )
    return replies.ClientDetails(describe_client(broker, client), memberships)


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
