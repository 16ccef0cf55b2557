"""Finds the partition that a Pulsar topic name means, and creates topics that may be created."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.errors import InvalidTopicNameError
from penstock.broker.topics.names import TopicName
from penstock.broker.topics.settings import KEEP
from penstock.limits import PULSAR_TOPIC_NAME
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.transient import SCHEME
from penstock.pulsar.wire.pulsar_api_pb2 import ServerError

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.pulsar.client import Client


_KEPT: Final = {"retention_unacknowledged": KEEP}
"""Of topics that Pulsar clients make: what a subscription has not acknowledged stays."""
_PART: Final = re.compile(r"[-=:.\w]+")
"""What Pulsar allows in a tenant's or a namespace's name."""
_PARTITION: Final = re.compile(r"(.+)-partition-(0|[1-9][0-9]{0,8})", re.DOTALL)


class TopicAddress(NamedTuple):
    """A topic's name, and the number of one of its partitions where the name ended in one."""

    name: TopicName
    partition: int | None


def parse_topic(text: str) -> TopicAddress:
    """Read a topic name of any form. Raises InvalidTopicNameError and RefusedError."""
    if is_transient(text):
        raise RefusedError(ServerError.NotAllowedError, f"{text} is not persistent")
    if len(text) > PULSAR_TOPIC_NAME:
        raise InvalidTopicNameError(f"a topic's name has at most {PULSAR_TOPIC_NAME} characters")
    match = _PARTITION.fullmatch(text)
    if match is None:
        return TopicAddress(_topic_name(text), None)
    return TopicAddress(_topic_name(match[1]), int(match[2]))


def is_transient(text: str) -> bool:
    """Whether it is the name of a topic whose messages are not kept."""
    return text.startswith(SCHEME)


def check_transient(text: str) -> None:
    """Check the name of a non-persistent topic. Raises InvalidTopicNameError."""
    parse_topic(f"persistent://{text.removeprefix(SCHEME)}")


def find_topic(client: Client, text: str) -> Topic:
    """Return the topic that a name, or that of one of its partitions, means. Raises RefusedError
    and BrokerError.
    """
    name, _ = parse_topic(text)
    topic = client.broker.topics.get(name)
    if topic is None:
        raise RefusedError(ServerError.TopicNotFound, f"there is no topic {name.pulsar}")
    return topic


async def open_partition(client: Client, text: str, *, may_create: bool = True) -> Partition:
    """Return the partition that producers and consumers of `text` mean, once its log is open.

    A topic that is missing is created without partitions where that is allowed. Raises
    RefusedError, BrokerError and LogNotOpenError.
    """
    partition = await find_partition(client, text, may_create=may_create)
    await partition.opened()
    return partition


async def find_partition(client: Client, text: str, *, may_create: bool) -> Partition:
    """Do as `open_partition`, but for its log, which may be closed."""
    name, number = parse_topic(text)
    topic = client.broker.topics.get(name)
    if number is not None:
        if topic is None or not topic.partitioned:
            raise RefusedError(
                ServerError.NotAllowedError, f"{name.pulsar} is no topic with partitions"
            )
        return topic.partition(number)
    if topic is None:
        topic = await create_topic(client, name, may_create=may_create, partitions=1)
    if not topic.partitions:
        raise without_partitions(topic)
    if topic.partitioned:
        raise RefusedError(
            ServerError.NotAllowedError, f"{name.pulsar} has partitions: name one of them"
        )
    return topic.partition(0)


def without_partitions(topic: Topic) -> RefusedError:
    """Return what a client hears of a topic that an Iggy client gave no partition yet.

    Pulsar has no such topic: zero partitions would mean that the topic is its own only one.
    """
    return RefusedError(ServerError.TopicNotFound, f"{topic.name.pulsar} has no partitions yet")


async def create_topic(
    client: Client, name: TopicName, *, may_create: bool, partitions: int
) -> Topic:
    """Create a topic that a client asked for. Raises RefusedError and BrokerError."""
    broker = client.broker
    if not (may_create and broker.settings.auto_create_topics):
        raise RefusedError(ServerError.TopicNotFound, f"there is no topic {name.pulsar}")
    return await broker.topics.get_or_create(
        name,
        partitions,
        partitioned=partitions > 1,
        config=_KEPT,
        address=client.address,
    )


def _topic_name(text: str) -> TopicName:
    name = TopicName.from_pulsar(text)
    parts = (name.tenant, *name.namespace.split("/"))
    if "/" in name.topic or not all(map(_PART.fullmatch, parts)):
        raise InvalidTopicNameError(
            f"{text!r}: write persistent://tenant/namespace/topic or just topic"
        )
    return name


def pulsar_names(topic: Topic) -> list[str]:
    """The names under which Pulsar clients find a topic: one a partition where it has any."""
    if not topic.partitioned:
        return [topic.name.pulsar]
    return [f"{topic.name.pulsar}-partition-{p.index}" for p in topic.partitions]
