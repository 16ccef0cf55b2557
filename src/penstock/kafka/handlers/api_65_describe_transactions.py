"""DescribeTransactions: what is known of transactional ids (KIP-664).

Version 0. One that nobody has is TRANSACTIONAL_ID_NOT_FOUND; one that is empty, and one that is
asked for twice, INVALID_REQUEST. Topics are those of the transaction that is open; groups are not
listed, which are partitions of an internal topic in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.topics import check_asked_once
from penstock.kafka.handlers.transactions import partition_names
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import (
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
    )


@handles(api("DescribeTransactions"), 0, 0)
async def describe_transactions(
    request: DescribeTransactionsRequest, call: Call
) -> DescribeTransactionsResponse:
    response = api("DescribeTransactions").response
    pace = Pace()
    await call.broker.transactions.loaded()
    times = await pace.counted(request.transactional_ids)
    states = await pace.each(
        request.transactional_ids, lambda each: _describe(each, times[each], call)
    )
    return response(transaction_states=states)


def _describe(
    transactional_id: str, times: int, call: Call
) -> DescribeTransactionsResponse.TransactionState:
    response = api("DescribeTransactions").response
    state = response.TransactionState(transactional_id=transactional_id)
    if not transactional_id:
        state.error_code = ErrorCode.INVALID_REQUEST
        return state
    found = call.broker.transactions.describe(transactional_id)
    if found is None:
        state.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return state
    try:
        check_asked_once(times)
    except RequestError as error:
        state.error_code = error.code
        return state
    row = found.row
    state.transaction_state = row.state
    state.transaction_timeout_ms = row.timeout_ms
    state.transaction_start_time_ms = row.started_at_ms
    state.producer_id, state.producer_epoch = row.producer_id, row.epoch
    state.topics = [
        response.TopicData(topic=topic, partitions=sorted(partitions))
        for topic, partitions in partition_names(call.broker, found.partition_ids).items()
    ]
    return state
