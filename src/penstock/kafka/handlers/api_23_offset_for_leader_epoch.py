"""OffsetForLeaderEpoch: where a leadership's messages end.

Versions 2-4. There is one leadership, epoch 0, which ends at the end of the log; an earlier one has
no offset (-1, -1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_leader_epoch, topic_by_name
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.handlers.registry import Call
    from penstock.kafka.wire.messages import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
    )


@handles(api("OffsetForLeaderEpoch"), 2, 4)
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    response = api("OffsetForLeaderEpoch").response
    topics = [
        response.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[_find(topic.topic, part, call) for part in topic.partitions],
        )
        for topic in request.topics
    ]
    return response(topics=topics)


def _find(
    topic_name: str, asked: OffsetForLeaderEpochRequest.OffsetForLeaderPartition, call: Call
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    result = api("OffsetForLeaderEpoch").response.EpochEndOffset(partition=asked.partition)
    try:
        partition = topic_by_name(call.broker, topic_name).partition(asked.partition)
        check_leader_epoch(call.broker, partition, asked.current_leader_epoch)
    except Exception as error:
        result.error_code = refusal(error).code
        return result
    current = call.broker.cluster.leader_of(partition).epoch
    if asked.leader_epoch >= current:
        result.leader_epoch, result.end_offset = current, partition.end_offset
    return result
