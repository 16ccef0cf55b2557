"""AppendAt: put one batch at an offset of its own, behind the end of a partition.

Version 0, for `penstock import`, which writes a log anew as it was: offsets have gaps where records
were compacted away, were aborted or were markers, and times are those of long ago.

* The topic has to be set to `penstock.importing`, else it is POLICY_VIOLATION: who may produce to a
  topic may not move its end at will, which costs nothing and leaves readers with empty offsets.
* The batch gets `base_offset`. What lies between the end and it is bridged by a batch without
  records, as after compaction; both are appended together. Without `records` only that is.
* `end_offset` is where the sender knows the partition to end. Where it ends elsewhere, nothing is
  written, and it is OFFSET_OUT_OF_RANGE with the end: the request was answered before, or somebody
  else writes. So no batch is written twice, and the sender goes on at the end.
* The batch's records may leave offsets out, and may have the broker's time (KIP-32), which it keeps
  whatever the topic says. It has no producer and is of no transaction.
* Limits of the topic on sizes and times of batches do not hold: what was stored once was fit.
* The answer comes when all is as durable as the topic asks for.
* At most LONGEST_GAP offsets are bridged at once; a longer gap takes several requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import TopicTerminatedError
from penstock.broker.quotas import Quota
from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.quotas import throttled_ms
from penstock.kafka.restored import check_restored, inflated_bytes
from penstock.kafka.wire import ErrorCode, api
from penstock.requests.validation import in_thread

if TYPE_CHECKING:
    from penstock.broker.topics.partition import Partition
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import AppendAtRequest, AppendAtResponse
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

LONGEST_GAP: Final = (1 << 31) - 1
"""What one batch can span."""

_HIGHEST_OFFSET: Final = (1 << 62) - 1
_RESPONSE: Final = api("AppendAt").response


@handles(api("AppendAt"), 0, 0)
async def append_at(request: AppendAtRequest, call: Call) -> AppendAtResponse:
    answer = _RESPONSE()
    try:
        partition = topic_by_name(call.broker, request.topic).partition(request.partition_index)
        await partition.opened()
        batch = request.records or b""
        header = await _checked(batch, call) if batch else None
        answer.end_offset = partition.end_offset
        _check_place(request, partition)
        partition.append_at(request.base_offset, batch, header)
        if partition.end_offset > request.end_offset:
            durable = partition.durable(partition.end_offset - 1)
            answer.end_offset = partition.end_offset
            await durable
    except Exception as error:
        answer.error_code, answer.error_message = refusal(error)
    if call.broker.quotas:
        size = len(request.records or b"")
        quota = Quota.PRODUCED_BYTES
        answer.throttle_time_ms = throttled_ms(call.client, quota, call.client_id, size)
    return answer


async def _checked(batch: Buffer, call: Call) -> BatchHeader:
    return await in_thread(
        call.client, len(batch), lambda: inflated_bytes(batch), lambda: check_restored(batch)
    )


def _check_place(request: AppendAtRequest, partition: Partition) -> None:
    if not partition.topic.config.importing:
        raise RequestError(
            ErrorCode.POLICY_VIOLATION, "penstock.importing is not set for the topic"
        )
    if partition.topic.config.terminated:
        raise TopicTerminatedError("the topic was terminated, and takes no more messages")
    if request.end_offset != partition.end_offset:
        raise RequestError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the partition ends at {partition.end_offset}, not at {request.end_offset}",
        )
    gap = request.base_offset - request.end_offset
    if not 0 <= gap <= LONGEST_GAP or request.base_offset > _HIGHEST_OFFSET:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"offset {request.base_offset} is not one of the {LONGEST_GAP} from "
            f"{request.end_offset} on",
        )
