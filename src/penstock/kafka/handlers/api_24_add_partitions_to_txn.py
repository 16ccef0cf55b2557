"""AddPartitionsToTxn: have partitions take part in a transaction, which begins with the first.

Versions 0-5. Up to version 3 producers ask, each for its own; from version 4 on several producers'
are in one request, which brokers send one another, and which may only want to know whether
partitions have a part (KIP-890): those that have none are TRANSACTION_ABORTABLE then, before
version 5 INVALID_TXN_STATE.

All partitions of a producer are added, or none: where one is unknown, the others are
OPERATION_NOT_ATTEMPTED. A producer whose last transaction is about to end waits for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.errors import NotInTransactionError
from penstock.broker.transactions.states import Producer
from penstock.kafka.errors import ACCEPTED, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import topic_by_name
from penstock.kafka.handlers.transactions import check_name, refusal_in
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

FIRST_VERSION_WITH_FENCED: Final = 2
FIRST_VERSION_WITH_MANY: Final = 4
FIRST_VERSION_WITH_ABORTABLE: Final = 5


class _Asked(NamedTuple):
    """One producer's part of a request."""

    transactional_id: str
    producer: Producer
    verify_only: bool
    topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]


@handles(api("AddPartitionsToTxn"), 0, 5)
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, call: Call
) -> AddPartitionsToTxnResponse:
    response = api("AddPartitionsToTxn").response
    pace = Pace()
    if call.version < FIRST_VERSION_WITH_MANY:
        asked = _Asked(
            request.v3_and_below_transactional_id,
            Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
            verify_only=False,
            topics=request.v3_and_below_topics,
        )
        return response(results_by_topic_v3_and_below=await _add(asked, call, pace))

    async def of_transaction(
        each: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction,
    ) -> AddPartitionsToTxnResponse.AddPartitionsToTxnResult:
        asked = _Asked(
            each.transactional_id,
            Producer(each.producer_id, each.producer_epoch),
            each.verify_only,
            each.topics,
        )
        results = await _add(asked, call, pace)
        return response.AddPartitionsToTxnResult(
            transactional_id=each.transactional_id, topic_results=results
        )

    results = await pace.each_awaited(request.transactions, of_transaction)
    return response(results_by_transaction=results)


async def _add(
    asked: _Asked, call: Call, pace: Pace
) -> list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    response = api("AddPartitionsToTxn").response
    found: list[tuple[int, AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]] = []
    count = 0

    def of_partition(
        topic: str, index: int
    ) -> AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult:
        nonlocal count
        count += 1
        result = response.AddPartitionsToTxnPartitionResult(partition_index=index)
        try:
            found.append((topic_by_name(call.broker, topic).partition(index).id, result))
        except Exception as error:
            result.partition_error_code = refusal(error).code
        return result

    async def of_topic(
        topic: AddPartitionsToTxnRequest.AddPartitionsToTxnTopic,
    ) -> AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult:
        results = await pace.each(topic.partitions, lambda index: of_partition(topic.name, index))
        return response.AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)

    topics = await pace.each_awaited(asked.topics, of_topic)
    if len(found) < count:
        code = ErrorCode.OPERATION_NOT_ATTEMPTED
    else:
        code = await _outcome(asked, [partition_id for partition_id, _ in found], call)
    for _, result in found:
        result.partition_error_code = code
        if pace.is_over():
            await pace.others()
    return topics


async def _outcome(asked: _Asked, partition_ids: list[int], call: Call) -> ErrorCode:
    transactions = call.broker.transactions
    try:
        check_name(asked.transactional_id)
        await transactions.loaded()
        if asked.verify_only:
            transactions.check(asked.transactional_id, asked.producer, partition_ids)
        else:
            await transactions.add_partitions(
                asked.transactional_id, asked.producer, partition_ids, call.client.address
            )
    except NotInTransactionError as error:
        if call.version >= FIRST_VERSION_WITH_ABORTABLE:
            return ErrorCode.TRANSACTION_ABORTABLE
        return refusal(error).code
    except Exception as error:
        return refusal_in(error, call.version, FIRST_VERSION_WITH_FENCED).code
    return ACCEPTED.code
