"""DescribeTopicPartitions: topics and their partitions, a page at a time (KIP-966).

Version 0. Topics come in the order of their names, all of them where none is named. A page ends at
2,000 partitions or where the request says, and tells where the next one begins: a topic and, inside
it, a partition. Where that partition is below 0, each topic is INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import ALL_TOPIC_OPERATIONS, topic_by_legal_name
from penstock.kafka.wire import ErrorCode, api
from penstock.limits import KAFKA_PARTITIONS_DESCRIBED
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
    )


@handles(api("DescribeTopicPartitions"), 0, 0)
async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, call: Call
) -> DescribeTopicPartitionsResponse:
    pace = Pace()
    cursor = request.cursor or api("DescribeTopicPartitions").request.Cursor()
    page = _Page(max(1, min(request.response_partition_limit, KAFKA_PARTITIONS_DESCRIBED)), call)
    for name in await _names(request, cursor.topic_name, call, pace):
        first = cursor.partition_index if name == cursor.topic_name else 0
        if page.next_cursor is not None:
            break
        await page.add(name, first, pace)
        if pace.is_over():
            await pace.others()
    return api("DescribeTopicPartitions").response(topics=page.topics, next_cursor=page.next_cursor)


async def _names(
    request: DescribeTopicPartitionsRequest, first: str, call: Call, pace: Pace
) -> list[str]:
    """Return the names of the topics that the answer is about, from `first` on, in order."""
    if request.topics:
        names = [*await pace.counted(each.name for each in request.topics)]
    else:
        names = await pace.each(tuple(call.broker.topics.all()), lambda topic: topic.name.kafka)
    return await pace.sorted(name for name in names if name >= first)


class _Page:
    """The topics of one answer, with `left` more partitions at most."""

    def __init__(self, left: int, call: Call) -> None:
        self.topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = []
        self.next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None
        self._left = left
        self._call = call

    async def add(self, name: str, first: int, pace: Pace) -> None:
        """Add a topic from its partition `first` on, or say that the next page begins there."""
        response = api("DescribeTopicPartitions").response
        if not self._left:
            self.next_cursor = response.Cursor(topic_name=name, partition_index=first)
            return
        described = response.DescribeTopicPartitionsResponseTopic(
            name=name, partitions=[], topic_authorized_operations=ALL_TOPIC_OPERATIONS
        )
        self.topics.append(described)
        try:
            topic = self._topic(name, first)
        except Exception as error:
            described.error_code = refusal(error).code
            return
        partitions = topic.partitions[first : first + self._left]
        described.topic_id = topic.id
        described.partitions = await pace.each(partitions, self._partition)
        self._left -= len(partitions)
        following = first + len(partitions)
        if partitions and following < len(topic.partitions):
            self.next_cursor = response.Cursor(topic_name=name, partition_index=following)

    def _topic(self, name: str, first: int) -> Topic:
        if first < 0:
            raise RequestError(ErrorCode.INVALID_REQUEST, "the cursor's partition is below 0")
        return topic_by_legal_name(self._call.broker, name)

    def _partition(
        self, partition: Partition
    ) -> DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
        leader = self._call.broker.cluster.leader_of(partition)
        response = api("DescribeTopicPartitions").response
        return response.DescribeTopicPartitionsResponsePartition(
            partition_index=partition.index,
            leader_id=leader.node_id,
            leader_epoch=leader.epoch,
            replica_nodes=[leader.node_id],
            isr_nodes=[leader.node_id],
            # The Java client can't read that there are none as null.
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
