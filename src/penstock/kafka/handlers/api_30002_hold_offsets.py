"""HoldOffsets: keep what lies from an offset on while somebody reads the files themselves.

Version 0, for Penstock's own pipelines. A holder has one offset in a partition, and the last one
counts; 0 seconds give all of its offsets back. The answer says for how many seconds they are held,
which may be fewer. Where too much is held, POLICY_VIOLATION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.retention.leases import TooManyLeasesError
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.wire import ErrorCode, api
from penstock.limits import RANGE_HOLDER_CHARACTERS, RANGE_LEASE_SECONDS
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import HoldOffsetsRequest, HoldOffsetsResponse


@handles(api("HoldOffsets"), 0, 0)
async def hold_offsets(request: HoldOffsetsRequest, call: Call) -> HoldOffsetsResponse:
    response = api("HoldOffsets").response
    pace = Pace()
    seconds = max(0, min(request.seconds, RANGE_LEASE_SECONDS))
    if not seconds:
        call.broker.retention.leases.release(request.holder)

    def hold(
        name: str, asked: HoldOffsetsRequest.PartitionOffset
    ) -> HoldOffsetsResponse.HeldPartition:
        held = response.HeldPartition(partition_index=asked.partition_index)
        try:
            if seconds:
                _hold(call, request.holder, name, asked, seconds)
        except Exception as error:
            held.error_code = refusal(error).code
        return held

    async def of_topic(
        asked: HoldOffsetsRequest.TopicOffsets,
    ) -> HoldOffsetsResponse.HeldTopic:
        partitions = await pace.each(asked.partitions, lambda each: hold(asked.name, each))
        return response.HeldTopic(name=asked.name, partitions=partitions)

    return response(seconds=seconds, topics=await pace.each_awaited(request.topics, of_topic))


def _hold(
    call: Call,
    holder: str,
    name: str,
    asked: HoldOffsetsRequest.PartitionOffset,
    seconds: int,
) -> None:
    if len(holder) > RANGE_HOLDER_CHARACTERS:
        raise RequestError(ErrorCode.INVALID_REQUEST, "a holder's name is too long")
    partition = topic_by_name(call.broker, name).partition(asked.partition_index)
    try:
        call.broker.retention.leases.hold(holder, partition.id, max(0, asked.offset), seconds)
    except TooManyLeasesError as error:
        raise RequestError(ErrorCode.POLICY_VIOLATION, str(error)) from error
