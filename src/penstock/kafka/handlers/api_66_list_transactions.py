"""ListTransactions: the transactional ids that there are, or those of some kind (KIP-664).

Versions 0-2. Filters are for states, of which those are named in the answer that do not exist, for
producer ids, from version 1 on for transactions that have been open for more than so many
milliseconds, and from version 2 on for ids of which the whole matches a pattern of RE2 (KIP-1152).
One that is none is INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import wall_clock
from penstock.broker.transactions.states import TransactionState
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.pace import Pace
from penstock.requests.patterns import InvalidPatternError, matching

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import ListTransactionsRequest, ListTransactionsResponse
    from penstock.metadata.transactions import TransactionRow


@handles(api("ListTransactions"), 0, 2)
async def list_transactions(
    request: ListTransactionsRequest, call: Call
) -> ListTransactionsResponse:
    response = api("ListTransactions").response
    pace = Pace()
    await call.broker.transactions.loaded()
    states = set(request.state_filters)
    producers = set(request.producer_id_filters)
    now_ms = wall_clock.steady_ms()

    def is_wanted(row: TransactionRow) -> bool:
        return (
            (not states or row.state in states)
            and (not producers or row.producer_id in producers)
            and (request.duration_filter < 0 or _duration(row, now_ms) > request.duration_filter)
        )

    rows: dict[str, TransactionRow] = {}
    for row in tuple(call.broker.transactions.all().values()):
        if is_wanted(row):
            rows[row.transactional_id] = row
        if pace.is_over():
            await pace.others()
    names: Iterable[str] = rows
    if request.transactional_id_pattern:
        try:
            names = await matching(call.client, request.transactional_id_pattern, rows)
        except InvalidPatternError:
            return response(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return response(
        unknown_state_filters=sorted(states - {each.value for each in TransactionState}),
        transaction_states=await pace.each(names, lambda name: _listed(rows[name])),
    )


def _listed(row: TransactionRow) -> ListTransactionsResponse.TransactionState:
    return api("ListTransactions").response.TransactionState(
        transactional_id=row.transactional_id,
        producer_id=row.producer_id,
        transaction_state=row.state,
    )


def _duration(row: TransactionRow, now_ms: int) -> int:
    """Return for how many milliseconds a transaction has been open, -1 where none is."""
    return now_ms - row.started_at_ms if row.started_at_ms >= 0 else -1
