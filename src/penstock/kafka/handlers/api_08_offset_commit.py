"""OffsetCommit: remember how far a group has read.

Versions 0-10.

* A member has to be of the current generation; with generation -1 and no member id anybody may
  commit to a group that has no members. The answer comes when the offsets are durable.
* A member that the group does not know is 25, in a group that is not there too.
* Each partition is judged by itself: an unknown one does not keep the others from being committed,
  and is told to who is no member too. Metadata of more than 4096 bytes is refused as 12.
* Version 0 knows no members. What it commits is kept where all offsets are, and fetched by every
  version; Kafka kept it apart, in ZooKeeper.
* Version 10 names topics by id.

Deviations: offsets are kept until their group or topic is deleted; the times of version 1 and the
retention time of versions 2-4 are ignored. A member of a group that is not there is 22 before
version 9 in Kafka and 69 from then on, which no client expects: at 25 all of them join anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import ACCEPTED, refusal
from penstock.kafka.handlers.group_offsets import committed_offset, offset_owner
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import find_topic
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.broker.groups.offsets import CommittedOffset
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import OffsetCommitRequest, OffsetCommitResponse

FIRST_VERSION_WITH_IDS: Final = 10


@handles(api("OffsetCommit"), 0, 10)
async def offset_commit(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    response = api("OffsetCommit").response
    failure = _check_member(request, call)
    offsets: dict[int, CommittedOffset] = {}
    accepted: list[tuple[int, OffsetCommitResponse.OffsetCommitResponsePartition]] = []
    pace = Pace()
    committed_at_ms = call.broker.offsets.next_time_ms()
    topics = []
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = response.OffsetCommitResponsePartition(partition_index=part.partition_index)
            results.append(result)
            try:
                partition_id = _partition_id(topic, part.partition_index, call)
                if failure == ErrorCode.NONE:
                    offsets[partition_id] = committed_offset(part, committed_at_ms)
                    accepted.append((partition_id, result))
                else:
                    result.error_code = failure
            except Exception as error:
                result.error_code = refusal(error).code
            if pace.is_over():
                await pace.others()
        topics.append(
            response.OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=results
            )
        )
        if pace.is_over():
            await pace.others()
    await _commit(request.group_id, offsets, accepted, call)
    return response(topics=topics)


async def _commit(
    group_id: str,
    offsets: dict[int, CommittedOffset],
    accepted: list[tuple[int, OffsetCommitResponse.OffsetCommitResponsePartition]],
    call: Call,
) -> None:
    """Store offsets, and put into the results, which have their partitions' ids, what fails."""
    try:
        gone = await call.broker.offsets.commit(offset_owner(group_id), offsets)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except Exception as error:
        gone = set(offsets)
        code = refusal(error).code
    for partition_id, result in accepted:
        if partition_id in gone:
            result.error_code = code


def _check_member(request: OffsetCommitRequest, call: Call) -> ErrorCode:
    try:
        call.broker.groups.check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
        )
    except Exception as error:
        return refusal(error).code
    return ACCEPTED.code


def _partition_id(
    topic: OffsetCommitRequest.OffsetCommitRequestTopic, index: int, call: Call
) -> int:
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    return find_topic(call.broker, topic.name, topic.topic_id, by_id=by_id).partition(index).id
