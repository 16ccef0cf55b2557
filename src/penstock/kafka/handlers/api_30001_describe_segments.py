"""DescribeSegments: in which pieces logs are stored, the oldest first; retention goes by them.

Version 0, for Penstock's own commands: what a trim gives back to the disk is known to nobody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DescribeSegmentsRequest, DescribeSegmentsResponse


@handles(api("DescribeSegments"), 0, 0)
async def describe_segments(
    request: DescribeSegmentsRequest, call: Call
) -> DescribeSegmentsResponse:
    response = api("DescribeSegments").response
    pace = Pace()

    async def of_topic(
        asked: DescribeSegmentsRequest.TopicRequest,
    ) -> DescribeSegmentsResponse.TopicSegments:
        partitions = await pace.each_awaited(
            asked.partition_indexes, lambda index: _of_partition(asked.name, index, call, pace)
        )
        return response.TopicSegments(name=asked.name, partitions=partitions)

    return response(topics=await pace.each_awaited(request.topics, of_topic))


async def _of_partition(
    name: str, index: int, call: Call, pace: Pace
) -> DescribeSegmentsResponse.PartitionSegments:
    response = api("DescribeSegments").response
    result = response.PartitionSegments(partition_index=index, start_offset=-1, end_offset=-1)
    try:
        partition = topic_by_name(call.broker, name).partition(index)
        await partition.opened()
        result.start_offset = partition.start_offset
        result.end_offset = partition.readable_end()
        result.segments = await pace.each(
            partition.segment_extents, lambda each: response.StoredSegment(**each._asdict())
        )
    except Exception as error:
        result.error_code = refusal(error).code
    return result
