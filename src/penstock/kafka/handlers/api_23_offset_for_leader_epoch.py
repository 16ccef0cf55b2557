"""OffsetForLeaderEpoch: where a leadership's messages end.

Versions 0-4. Each start of the broker is a leadership of its own (KIP-320). The answer for one that
wrote nothing is the one before it; for one that is yet to come it is (-1, -1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_leader_epoch, topic_by_name
from penstock.kafka.wire import api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
    )


@handles(api("OffsetForLeaderEpoch"), 0, 4)
async def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    response = api("OffsetForLeaderEpoch").response
    pace = Pace()

    async def of_topic(
        topic: OffsetForLeaderEpochRequest.OffsetForLeaderTopic,
    ) -> OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult:
        partitions = await pace.each_awaited(
            topic.partitions, lambda part: _find(topic.topic, part, call)
        )
        return response.OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)

    return response(topics=await pace.each_awaited(request.topics, of_topic))


async def _find(
    topic_name: str, asked: OffsetForLeaderEpochRequest.OffsetForLeaderPartition, call: Call
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    result = api("OffsetForLeaderEpoch").response.EpochEndOffset(partition=asked.partition)
    try:
        partition = topic_by_name(call.broker, topic_name).partition(asked.partition)
        check_leader_epoch(call.broker, partition, asked.current_leader_epoch)
        await partition.opened()
    except Exception as error:
        result.error_code = refusal(error).code
        return result
    result.leader_epoch, result.end_offset = partition.epoch_end(asked.leader_epoch)
    return result
