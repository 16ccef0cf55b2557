"""TxnOffsetCommit: commit a group's offsets within a transaction.

Versions 0-5. They are pending until the transaction ends, and take effect with it: OffsetFetch of
who wants what is stable is refused meanwhile.

* A member, where one is named, has to be of the current generation, as with OffsetCommit.
* Each partition is judged by itself: an unknown one, or one with metadata of more than 4096 bytes,
  does not keep the others from being committed.
* The group has a part already by AddOffsetsToTxn; from version 5 on it gets it by this. What is no
  part is INVALID_TXN_STATE, and in version 4 TRANSACTION_ABORTABLE.
* A group without a name is INVALID_GROUP_ID, which OffsetCommit still takes from old clients.
* A fenced producer is INVALID_PRODUCER_EPOCH, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import NotInTransactionError
from penstock.broker.transactions.states import Producer
from penstock.kafka.errors import ACCEPTED, refusal
from penstock.kafka.handlers.group_offsets import committed_offset, offset_owner
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.handlers.transactions import GROUP_PREFIX, check_name, refusal_in
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.broker.groups.offsets import CommittedOffset
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
    from penstock.metadata.store import Change

FIRST_VERSION_WITH_ABORTABLE: Final = 4
FIRST_VERSION_THAT_BEGINS: Final = 5
NEVER: Final = 1 << 15


@handles(api("TxnOffsetCommit"), 0, 5)
async def txn_offset_commit(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    response = api("TxnOffsetCommit").response
    pace = Pace()
    failure = _check_member(request, call)
    committed_at_ms = call.broker.offsets.next_time_ms()
    offsets: dict[int, CommittedOffset] = {}
    accepted: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = []

    def of_partition(
        topic: str, part: TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    ) -> TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition:
        result = response.TxnOffsetCommitResponsePartition(
            partition_index=part.partition_index, error_code=failure
        )
        if failure == ErrorCode.NONE:
            try:
                partition = topic_by_name(call.broker, topic).partition(part.partition_index)
                offsets[partition.id] = committed_offset(part, committed_at_ms)
            except Exception as error:
                result.error_code = refusal(error).code
            else:
                accepted.append(result)
        return result

    async def of_topic(
        topic: TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic,
    ) -> TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic:
        partitions = await pace.each(topic.partitions, lambda part: of_partition(topic.name, part))
        return response.TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)

    topics = await pace.each_awaited(request.topics, of_topic)
    if offsets:
        code = await _commit(request, offsets, call)
        for result in accepted:
            result.error_code = code
            if pace.is_over():
                await pace.others()
    return response(topics=topics)


async def _commit(
    request: TxnOffsetCommitRequest, offsets: dict[int, CommittedOffset], call: Call
) -> ErrorCode:
    pending = call.broker.pending_offsets
    owner = offset_owner(request.group_id)

    def rows() -> Sequence[Change]:
        return pending.rows(request.producer_id, owner, offsets)

    try:
        check_name(request.transactional_id)
        await call.broker.transactions.add_name(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            GROUP_PREFIX + request.group_id,
            rows,
            lambda: pending.put(request.producer_id, owner, offsets),
            begins=call.version >= FIRST_VERSION_THAT_BEGINS,
            address=call.client.address,
        )
    except NotInTransactionError as error:
        if call.version >= FIRST_VERSION_WITH_ABORTABLE:
            return ErrorCode.TRANSACTION_ABORTABLE
        return refusal(error).code
    except Exception as error:
        return refusal_in(error, call.version, NEVER).code
    return ACCEPTED.code


def _check_member(request: TxnOffsetCommitRequest, call: Call) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    generation = request.generation_id_or_member_epoch
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return ACCEPTED.code  # A producer that does not say for which member.
    try:
        call.broker.groups.check_commit(
            request.group_id, request.member_id, request.group_instance_id, generation
        )
    except Exception as error:
        return refusal(error).code
    return ACCEPTED.code
