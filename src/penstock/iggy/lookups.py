"""From a request's identifiers to the broker's own objects; IggyError where there is none."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from penstock.broker.topics.names import NamespaceName, TopicName
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.limits import IGGY_POLLED_PLACES, IGGY_REQUEST_PARTITIONS

if TYPE_CHECKING:
    from penstock.broker.broker import Broker
    from penstock.broker.topics.namespaces import Namespace
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.iggy.wire.identifiers import Identifier


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
        raise IggyError(ErrorCode.STREAM_ID_NOT_FOUND, str(stream.value))
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
        raise IggyError(ErrorCode.TOPIC_ID_NOT_FOUND, str(topic.value))
    return found


@lru_cache(IGGY_POLLED_PLACES)
def _topic_name(stream: str, topic: str) -> TopicName:
    return TopicName(*NamespaceName.from_iggy(stream), topic)


def find_partition(topic: Topic, partition_id: int | None) -> Partition:
    """Return the partition of this number; one that is not named is the first."""
    return topic.partition(partition_id or 0)


def check_partitions(count: int, at_least: int) -> None:
    """Raise IggyError where a request makes too few partitions, or too many."""
    if not at_least <= count <= IGGY_REQUEST_PARTITIONS:
        raise IggyError(ErrorCode.TOO_MANY_PARTITIONS, str(count))
