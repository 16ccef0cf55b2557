"""AlterPartitionReassignments: have partitions on other nodes, or end that they move (KIP-455).

Versions 0-1. There is one replica on one node: who asks for that has it already, anything else is
39. Without replicas a move is to be given up, of which there is none: 85. What is not there is 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_replicas, topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )


@handles(api("AlterPartitionReassignments"), 0, 1)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, call: Call
) -> AlterPartitionReassignmentsResponse:
    response = api("AlterPartitionReassignments").response
    pace = Pace()

    async def answered(
        asked: AlterPartitionReassignmentsRequest.ReassignableTopic,
    ) -> AlterPartitionReassignmentsResponse.ReassignableTopicResponse:
        partitions = await pace.each(asked.partitions, lambda each: _place(asked.name, each, call))
        return response.ReassignableTopicResponse(name=asked.name, partitions=partitions)

    return response(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=await pace.each_awaited(request.topics, answered),
    )


def _place(
    topic: str, asked: AlterPartitionReassignmentsRequest.ReassignablePartition, call: Call
) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
    result = api("AlterPartitionReassignments").response.ReassignablePartitionResponse(
        partition_index=asked.partition_index, error_message=None
    )
    try:
        topic_by_name(call.broker, topic).partition(asked.partition_index)
        _check(asked.replicas, call)
    except Exception as error:
        result.error_code, result.error_message = refusal(error)
    return result


def _check(node_ids: Sequence[int] | None, call: Call) -> None:
    if node_ids is None:
        raise RequestError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "the partition does not move")
    check_replicas(node_ids, call.broker)
