"""ListOffsets: the ends of partitions, and the first record at or after a time.

Versions 0-11.

* Version 0 answers with a list: where the segments of the log begin whose messages are all of the
  time that is asked for or before, the newest first, and in front of them the end of the log, for
  -1 and for a time that is yet to come. Kafka went by the times of the files instead.

* -1 latest, -2 earliest, -3 (v7) the record with the largest timestamp, -4 (v8) the earliest local
  offset, which is the earliest one, -5 (v9) and -6 (v11) of tiered storage: there is none, so -1.
* A time answers with the first record whose timestamp is not smaller, and with its timestamp: the
  time index finds the batch, and a walk over its records' beginnings the record.
* Who reads what is committed is told of nothing at or behind the last stable offset; the others,
  and version 0, of all that is safe. What ends a transaction is a record too, as in Kafka.
* Other negative times, and those that a version does not know yet, are UNSUPPORTED_VERSION.
* What was sent with acks 0 or 1 and is not safe yet is waited for: clients look for the end behind
  what they wrote.
* A partition that is asked for twice is refused as INVALID_REQUEST both times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import wall_clock
from penstock.broker.reading.conversion import looked_into
from penstock.broker.topics.settling import settled
from penstock.broker.transactions.isolation import Isolation
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import (
    asked_for,
    check_asked_once,
    check_leader_epoch,
    isolation_of,
    topic_by_name,
)
from penstock.kafka.record_times import RecordTime, first_not_before
from penstock.kafka.wire import ErrorCode, api
from penstock.log.header import Magic, read_header
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ListOffsetsRequest, ListOffsetsResponse

LATEST: Final = -1
EARLIEST: Final = -2
LARGEST_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

FIRST_VERSIONS: Final = {
    LATEST: 1,
    EARLIEST: 1,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_ONE_OFFSET: Final = 1
TIMESTAMP_BITS: Final = 63


NOTHING: Final = RecordTime(-1, -1)
"""No such record."""


@handles(api("ListOffsets"), 0, 11)
async def list_offsets(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    response = api("ListOffsets").response
    pace = Pace()
    asked, partitions = await asked_for(request.topics, call.broker, pace)
    await settled(partitions)
    isolation = isolation_of(request.isolation_level)
    topics = []
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = response.ListOffsetsPartitionResponse(partition_index=part.partition_index)
            results.append(result)
            try:
                _check_timestamp(part.timestamp, call.version)
                check_asked_once(asked[topic.name, part.partition_index])
                partition = topic_by_name(call.broker, topic.name).partition(part.partition_index)
                check_leader_epoch(call.broker, partition, part.current_leader_epoch)
                await partition.opened()
                await _answer(partition, part, isolation, call.version, result)
            except Exception as error:
                result.error_code = refusal(error).code
            if pace.is_over():
                await pace.others()
        topics.append(response.ListOffsetsTopicResponse(name=topic.name, partitions=results))
        if pace.is_over():
            await pace.others()
    return response(topics=topics)


def _check_timestamp(timestamp: int, version: int) -> None:
    is_known = timestamp >= 0 or version >= FIRST_VERSIONS.get(timestamp, version + 1)
    if version >= FIRST_VERSION_WITH_ONE_OFFSET and not is_known:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")


async def _answer(
    partition: Partition,
    asked: ListOffsetsRequest.ListOffsetsPartition,
    isolation: Isolation,
    version: int,
    result: ListOffsetsResponse.ListOffsetsPartitionResponse,
) -> None:
    if version < FIRST_VERSION_WITH_ONE_OFFSET:
        offsets = await find_segments(partition, asked.timestamp)
        result.old_style_offsets = offsets[: max(0, asked.max_num_offsets)]
        return
    found = await _find(partition, asked.timestamp, isolation)
    result.timestamp, result.offset = found
    if found.offset >= 0:
        result.leader_epoch = partition.epoch_at(found.offset)


async def _find(partition: Partition, timestamp: int, isolation: Isolation) -> RecordTime:
    if timestamp >= 0:
        return await find_time(partition, timestamp, isolation)
    if timestamp == LATEST:
        return RecordTime(-1, partition.readable_end(isolation))
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return RecordTime(-1, partition.start_offset)
    if timestamp == LARGEST_TIMESTAMP:
        return await find_largest_timestamp(partition, isolation)
    return NOTHING


async def find_segments(partition: Partition, timestamp: int) -> list[int]:
    """Return where segments begin all of whose messages are of this time in ms or before it.

    The newest comes first. In front of it is the end of the log, where that is so for all there
    will be until now.
    """
    starts, end = partition.segment_starts, partition.safe_offset
    if timestamp == EARLIEST:
        return starts[:1]
    if timestamp == LATEST:
        before, is_yet_to_come = end, True
    elif timestamp < 0:
        return []
    else:
        later = await partition.at_time(timestamp + 1, isolation=Isolation.READ_UNCOMMITTED)
        before = end if later is None else later
        is_yet_to_come = timestamp >= wall_clock.now_ms()
    following = [*starts[1:], end]
    found = [start for start, stop in zip(starts, following, strict=True) if stop <= before]
    if is_yet_to_come and end > starts[-1]:
        found.append(end)
    return found[::-1]


async def find_time(
    partition: Partition, timestamp: int, isolation: Isolation = Isolation.READ_COMMITTED
) -> RecordTime:
    """Return the first record whose time in ms is at least `timestamp`, or NOTHING."""
    offset = await partition.at_time(timestamp, isolation=isolation)
    while offset is not None:
        batch = b"".join(await partition.read(offset, 1, Magic.KAFKA, isolation))
        if not batch:
            return NOTHING
        # The batch may begin below the log's start: its first records were deleted.
        with partition.memory.reading() as held:
            found = await looked_into(batch, held, first_not_before, batch, timestamp, offset)
        if found is not None:
            return found
        # A header may promise a later time than its records have; the next batch may have it.
        following = read_header(batch).next_offset
        offset = await partition.at_time(timestamp, following, isolation)
    return NOTHING


async def find_largest_timestamp(
    partition: Partition, isolation: Isolation = Isolation.READ_COMMITTED
) -> RecordTime:
    """Return the record with the largest time: the last time for which the log finds anything."""
    largest = 0
    if await partition.at_time(largest, isolation=isolation) is None:
        return NOTHING
    for bit in reversed(range(TIMESTAMP_BITS)):
        if await partition.at_time(largest | 1 << bit, isolation=isolation) is not None:
            largest |= 1 << bit
    return await find_time(partition, largest, isolation)
