"""From a request's identifiers to the broker's own objects; IggyError where there is none."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.identifiers import ConsumerKind
from penstock.limits import IGGY_KNOWN_PLACES, IGGY_REQUEST_PARTITIONS

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.topics.namespaces import Namespace
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.server import Call
    from penstock.iggy.wire.identifiers import Consumer, Identifier


def stream_name(name: str) -> NamespaceName:
    """Return the namespace that a new stream stands for.

    `public.shop` is refused: its namespace is the one that is called `shop`.
    """
    namespace = NamespaceName.from_iggy(name)
    if namespace.iggy != name:
        raise IggyError(ErrorCode.INVALID_STREAM_NAME, name)
    return namespace


def find_stream(broker: Broker, stream: Identifier) -> Namespace:
    """Return the stream of this number or name."""
    if isinstance(stream.value, int):
        found = broker.namespaces.by_stream_id(stream.value)
    else:
        found = broker.namespaces.get(NamespaceName.from_iggy(stream.value))
    if found is None:
        raise _not_found(stream, ErrorCode.STREAM_ID_NOT_FOUND, ErrorCode.STREAM_NAME_NOT_FOUND)
    return found


def find_topic(broker: Broker, stream: Identifier, topic: Identifier) -> Topic:
    """Return the topic of this number or name."""
    if isinstance(stream.value, str) and isinstance(topic.value, str):
        named = broker.topics.get(_topic_name(stream.value, topic.value))
        if named is not None:
            return named
    namespace = find_stream(broker, stream).name
    if isinstance(topic.value, int):
        found = broker.topics.by_iggy_id(namespace, topic.value)
    else:
        found = broker.topics.get(TopicName(*namespace, topic.value))
    if found is None:
        raise _not_found(topic, ErrorCode.TOPIC_ID_NOT_FOUND, ErrorCode.TOPIC_NAME_NOT_FOUND)
    return found


@lru_cache(IGGY_KNOWN_PLACES)
def _topic_name(stream: str, topic: str) -> TopicName:
    return TopicName(*NamespaceName.from_iggy(stream), topic)


def _not_found(sought: Identifier, by_number: ErrorCode, by_name: ErrorCode) -> IggyError:
    code = by_number if isinstance(sought.value, int) else by_name
    return IggyError(code, str(sought.value))


def find_partition(topic: Topic, partition_id: int | None) -> Partition:
    """Return the partition of this number; one that is not named is the first."""
    return topic.partition(partition_id or 0)


def find_partition_of(
    call: Call, topic: Topic, consumer: Consumer, partition_id: int | None
) -> Partition:
    """Return the partition of this number; where a member names none, the one it has polled last.

    Raises UnknownGroupError, UnknownMemberError and UnknownPartitionError.
    """
    if partition_id is not None or consumer.kind is not ConsumerKind.GROUP:
        return find_partition(topic, partition_id)
    group = call.broker.topic_groups.get(topic, consumer.id.value)
    return topic.partition(group.last_polled(call.client))


def check_partitions(count: int, at_least: int) -> None:
    """Raise IggyError where a request makes too few partitions, or too many."""
    if not at_least <= count <= IGGY_REQUEST_PARTITIONS:
        raise IggyError(ErrorCode.TOO_MANY_PARTITIONS, str(count))
