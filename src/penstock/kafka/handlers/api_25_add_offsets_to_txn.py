"""AddOffsetsToTxn: have a group's offsets take part in a transaction, which may begin by it.

Versions 0-4. What is then committed with TxnOffsetCommit takes effect with the transaction. Clients
of KIP-890's second part leave it out: the offsets take part when they are committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.transactions.states import Producer
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.transactions import GROUP_PREFIX, check_name, refusal_in
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FIRST_VERSION_WITH_FENCED: Final = 2


@handles(api("AddOffsetsToTxn"), 0, 4)
async def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, call: Call
) -> AddOffsetsToTxnResponse:
    response = api("AddOffsetsToTxn").response
    try:
        check_name(request.transactional_id)
        await call.broker.transactions.add_name(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            GROUP_PREFIX + request.group_id,
            address=call.client.address,
        )
    except Exception as error:
        return response(error_code=refusal_in(error, call.version, FIRST_VERSION_WITH_FENCED).code)
    return response()
