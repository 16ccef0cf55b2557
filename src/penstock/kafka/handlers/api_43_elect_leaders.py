"""ElectLeaders: open logs anew that a failed flush has closed for writing (KIP-460).

Versions 0-2. Each election is a new leadership with an epoch of its own: the log is read from the
disk again, so that no one builds on what a failed flush left in memory only. A partition that is
well answers ELECTION_NOT_NEEDED. Without partitions, all that failed are meant.

Deviations: there is one replica, so preferred and unclean elections are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ElectLeadersRequest, ElectLeadersResponse


@handles(api("ElectLeaders"), 0, 2)
async def elect_leaders(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    response = api("ElectLeaders").response
    results = []
    for topic, partitions in _asked(request, call):
        found = [await _elect(topic, index, call) for index in partitions]
        results.append(response.ReplicaElectionResult(topic=topic, partition_result=found))
    return response(replica_election_results=results)


def _asked(request: ElectLeadersRequest, call: Call) -> Iterable[tuple[str, list[int]]]:
    if request.topic_partitions is not None:
        return [(asked.topic, asked.partitions) for asked in request.topic_partitions]
    failed = {
        topic.name.kafka: [each.index for each in topic.partitions if each.has_failed]
        for topic in call.broker.topics.all()
    }
    return [(name, partitions) for name, partitions in failed.items() if partitions]


async def _elect(topic: str, index: int, call: Call) -> ElectLeadersResponse.PartitionResult:
    result = api("ElectLeaders").response.PartitionResult(partition_id=index)
    try:
        partition = topic_by_name(call.broker, topic).partition(index)
        if not await call.broker.reopen(partition):
            result.error_code = ErrorCode.ELECTION_NOT_NEEDED
    except Exception as error:
        result.error_code, result.error_message = refusal(error)
    return result
