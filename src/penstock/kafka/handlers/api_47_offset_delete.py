"""OffsetDelete: forget what a group has committed for some partitions (KIP-496).

Version 0. For the whole request: 24 for a group without a name, 69 for one that is not there, 68
for one with members that are no consumers. For a partition: 3 where it is not there, 86 while a
member subscribes to its topic; a member whose subscription can't be read subscribes to everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.group_offsets import CONSUMER, has_offsets, offset_owner
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import ErrorCode, MalformedMessageError, api, consumer_protocol
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import OffsetDeleteRequest, OffsetDeleteResponse


@handles(api("OffsetDelete"), 0, 0)
async def offset_delete(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    response = api("OffsetDelete").response
    owner = offset_owner(request.group_id)
    pace = Pace()
    deleted: dict[int, None] = {}
    try:
        subscription = await _subscription(request.group_id, call, pace)
        committed = call.broker.offsets.of_owner(owner)

        def look_up(topic: str, index: int) -> OffsetDeleteResponse.OffsetDeleteResponsePartition:
            result = response.OffsetDeleteResponsePartition(partition_index=index)
            try:
                partition = _partition(topic, index, subscription, call)
            except Exception as error:
                result.error_code = refusal(error).code
            else:
                if partition.id in committed:
                    deleted[partition.id] = None
            return result

        async def of_topic(
            asked: OffsetDeleteRequest.OffsetDeleteRequestTopic,
        ) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
            partitions = await pace.each(
                asked.partitions, lambda each: look_up(asked.name, each.partition_index)
            )
            return response.OffsetDeleteResponseTopic(name=asked.name, partitions=partitions)

        topics = await pace.each_awaited(request.topics, of_topic)
        await call.broker.offsets.delete(owner, deleted)
    except Exception as error:
        return response(error_code=refusal(error).code, topics=[])
    return response(topics=topics)


async def _subscription(group_id: str, call: Call, pace: Pace) -> set[str] | None:
    """Return the names of the topics that the group's members subscribe to; None: of all."""
    if not group_id:
        raise RequestError(ErrorCode.INVALID_GROUP_ID, "the group has no name")
    topics: set[str] = set()
    group = call.broker.groups.get(group_id)
    if group is None:
        if not has_offsets(call.broker, group_id):
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group is named {group_id}")
        return topics
    members = [group.metadata(member) for member in group.members]
    if members and group.protocol_type != CONSUMER:
        raise RequestError(ErrorCode.NON_EMPTY_GROUP, "its members are no consumers")
    for metadata in members:
        try:
            subscribed = await consumer_protocol.subscribed_topics(metadata)
        except MalformedMessageError:
            return None
        await pace.each(subscribed, topics.add)
    return topics


def _partition(topic: str, index: int, subscription: set[str] | None, call: Call) -> Partition:
    partition = topic_by_name(call.broker, topic).partition(index)
    if subscription is None or topic in subscription:
        raise RequestError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, f"a member subscribes to {topic}")
    return partition
