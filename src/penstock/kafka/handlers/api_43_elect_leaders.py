"""ElectLeaders: open logs anew that a failed flush has closed for writing (KIP-460).

Versions 0-2. Each election is a new leadership with an epoch of its own: the log is read from the
disk again, so that no one builds on what a failed flush left in memory only. A partition that is
well answers ELECTION_NOT_NEEDED. Without partitions, all that failed are meant. An election of
another kind than preferred (0) and unclean (1) is INVALID_REQUEST.

Deviations: there is one replica, so preferred and unclean elections are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ElectLeadersRequest, ElectLeadersResponse

ELECTION_TYPES: Final = (0, 1)


@handles(api("ElectLeaders"), 0, 2)
async def elect_leaders(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    response = api("ElectLeaders").response
    if request.election_type not in ELECTION_TYPES:
        return response(error_code=ErrorCode.INVALID_REQUEST)
    pace = Pace()

    async def elected(
        asked: ElectLeadersRequest.TopicPartitions,
    ) -> ElectLeadersResponse.ReplicaElectionResult:
        found = await pace.each_awaited(
            asked.partitions, lambda index: _elect(asked.topic, index, call)
        )
        return response.ReplicaElectionResult(topic=asked.topic, partition_result=found)

    asked = request.topic_partitions
    if asked is None:
        asked = await _failed(call, pace)
    return response(replica_election_results=await pace.each_awaited(asked, elected))


async def _failed(call: Call, pace: Pace) -> list[ElectLeadersRequest.TopicPartitions]:
    asked_type = api("ElectLeaders").request.TopicPartitions
    asked = []
    for topic in call.broker.topics.all():
        failed = await pace.each(
            (each for each in topic.partitions if each.has_failed), lambda each: each.index
        )
        if failed:
            asked.append(asked_type(topic=topic.name.kafka, partitions=failed))
        if pace.is_over():
            await pace.others()
    return asked


async def _elect(topic: str, index: int, call: Call) -> ElectLeadersResponse.PartitionResult:
    result = api("ElectLeaders").response.PartitionResult(partition_id=index)
    try:
        partition = topic_by_name(call.broker, topic).partition(index)
        if not await call.broker.reopen(partition):
            result.error_code = ErrorCode.ELECTION_NOT_NEEDED
    except Exception as error:
        result.error_code, result.error_message = refusal(error)
    return result
