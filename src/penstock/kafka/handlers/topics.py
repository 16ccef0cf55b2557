"""What several handlers do with topics: find them, and check what is said of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from penstock.broker.topics.names import TopicName
from penstock.broker.transactions.isolation import Isolation
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from penstock.broker.broker import Broker
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.wire.messages import (
        CreatePartitionsRequest,
        CreateTopicsRequest,
        DeleteRecordsRequest,
        ListOffsetsRequest,
    )
    from penstock.pace import Pace

    Assignment = (
        CreateTopicsRequest.CreatableReplicaAssignment
        | CreatePartitionsRequest.CreatePartitionsAssignment
    )
    Asked = ListOffsetsRequest.ListOffsetsTopic | DeleteRecordsRequest.DeleteRecordsTopic

ALL_TOPIC_OPERATIONS: Final = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe and alter configs: nobody is refused."""
ALL_GROUP_OPERATIONS: Final = sum(1 << bit for bit in (3, 6, 8, 10, 11))
ALL_CLUSTER_OPERATIONS: Final = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
OPERATIONS_NOT_ASKED: Final = -(1 << 31)


def find_topic(broker: Broker, name: str, topic_id: UUID, *, by_id: bool) -> Topic:
    """Return the topic that a request names, in newer versions by its id.

    Raises RequestError with UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION.
    """
    if by_id:
        return topic_by_id(broker, topic_id)
    return topic_by_name(broker, name)


def topic_by_name(broker: Broker, name: str) -> Topic:
    topic = broker.topics.by_kafka_name(name)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic is named {name}")
    return topic


def topic_by_legal_name(broker: Broker, name: str) -> Topic:
    """As `topic_by_name`; a name that no topic may have has another error than one that none has.

    Raises InvalidTopicNameError besides.
    """
    if broker.topics.by_kafka_name(name) is None:
        TopicName.from_kafka(name)
    return topic_by_name(broker, name)


def topic_by_id(broker: Broker, topic_id: UUID) -> Topic:
    topic = broker.topics.by_id(topic_id)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_id}")
    return topic


async def asked_for(
    topics: Sequence[Asked], broker: Broker, pace: Pace
) -> tuple[Counter[tuple[str, int]], Collection[Partition]]:
    """Return how often each partition is asked for, and those that are there."""
    times = Counter[tuple[str, int]]()
    partitions: dict[Partition, None] = {}
    for topic in topics:
        found = broker.topics.by_kafka_name(topic.name)
        for part in topic.partitions:
            times[topic.name, part.partition_index] += 1
            if found is not None and 0 <= part.partition_index < len(found.partitions):
                partitions[found.partitions[part.partition_index]] = None
            if pace.is_over():
                await pace.others()
        if pace.is_over():
            await pace.others()
    return times, partitions


async def check_assignments(assignments: Sequence[Assignment], broker: Broker, pace: Pace) -> None:
    """Refuse what places a partition on anything but one node, which is there (KIP-195)."""
    for each in assignments:
        if pace.is_over():
            await pace.others()
        check_replicas(each.broker_ids, broker)


def check_replicas(node_ids: Sequence[int], broker: Broker) -> None:
    """Refuse to have a partition on anything but one node, which is there."""
    nodes = broker.cluster.node_ids
    if len(node_ids) != 1 or node_ids[0] not in nodes:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"a partition is on one of the nodes {nodes}"
        )


def check_node(name: str, broker: Broker) -> None:
    """Refuse a node that is not this one; a name that is empty stands for all nodes."""
    if name not in ("", str(broker.cluster.this_node.node_id)):
        raise RequestError(ErrorCode.INVALID_REQUEST, f"there is no node {name}")


def isolation_of(level: int) -> Isolation:
    """Return what a request's isolation level stands for: 0 uncommitted, else committed."""
    return Isolation.READ_COMMITTED if level else Isolation.READ_UNCOMMITTED


def check_asked_once(times: int) -> None:
    """Refuse what a request asks for more than once."""
    if times > 1:
        raise RequestError(ErrorCode.INVALID_REQUEST, "it occurs more than once in the request")


def check_leader_epoch(broker: Broker, partition: Partition, epoch: int) -> None:
    """Refuse a client that believes in another leadership; -1 does not ask (KIP-320)."""
    current = broker.cluster.leader_of(partition).epoch
    if epoch > current:
        raise RequestError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"epoch {epoch} has not begun")
    if epoch not in (-1, current):
        raise RequestError(ErrorCode.FENCED_LEADER_EPOCH, f"epoch {epoch} is over")
