"""DeleteRecords: give up the messages below an offset (KIP-107).

Versions 0-2. -1 stands for the high watermark; the answer is the partition's start offset from now
on. An offset above the high watermark is 1. A topic that is compacted and nothing else keeps what
it has: 44. What is given up is gone for readers of all protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.topics.settings import COMPACT
from penstock.broker.topics.settling import settled
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import asked_for, topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.log.errors import OffsetOutOfRangeError
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.broker.topics.topic import Topic
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

HIGH_WATERMARK: Final = -1
NO_LOW_WATERMARK: Final = -1


@handles(api("DeleteRecords"), 0, 2)
async def delete_records(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    response = api("DeleteRecords").response
    pace = Pace()
    _, partitions = await asked_for(request.topics, call.broker, pace)
    await settled(partitions)

    async def of_topic(
        asked: DeleteRecordsRequest.DeleteRecordsTopic,
    ) -> DeleteRecordsResponse.DeleteRecordsTopicResult:
        partitions = await pace.each_awaited(
            asked.partitions, lambda each: _delete(asked.name, each, call)
        )
        return response.DeleteRecordsTopicResult(name=asked.name, partitions=partitions)

    return response(topics=await pace.each_awaited(request.topics, of_topic))


async def _delete(
    name: str, asked: DeleteRecordsRequest.DeleteRecordsPartition, call: Call
) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
    result = api("DeleteRecords").response.DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK
    )
    try:
        topic = topic_by_name(call.broker, name)
        partition = topic.partition(asked.partition_index)
        _check_policy(topic)
        await partition.opened()
        await partition.trim(_offset(asked.offset, partition))
        result.low_watermark = partition.start_offset
    except Exception as error:
        result.error_code = refusal(error).code
    return result


def _offset(asked: int, partition: Partition) -> int:
    end = partition.safe_offset
    if asked == HIGH_WATERMARK:
        return end
    if asked < 0:
        raise OffsetOutOfRangeError(asked, partition.start_offset, end)
    return asked


def _check_policy(topic: Topic) -> None:
    if topic.config.value("cleanup_policy") == COMPACT:
        raise RequestError(ErrorCode.POLICY_VIOLATION, "a compacted topic keeps its records")
