"""EndTxn: commit or abort a transaction.

Versions 0-5. The answer comes when it has ended for readers too, where Kafka's comes before that:
the next transaction begins without CONCURRENT_TRANSACTIONS. Where a partition can't be written to,
it comes before, and the next one has to wait.

* The same end asked for once more is answered as the first time; the other one, or one without a
  transaction, is INVALID_TXN_STATE.
* From version 5 on (KIP-890's second part) each end gives the producer the next epoch, and where
  there is none another id; the answer says which. Such a client may also abort what it never began.
* What was written and is not safe can't be committed: TRANSACTION_ABORTABLE, and before version 4,
  which does not know it, COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.transactions.states import Producer
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.transactions import check_name, refusal_in
from penstock.kafka.wire import ErrorCode, api
from penstock.log.errors import LogError

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import EndTxnRequest, EndTxnResponse

FIRST_VERSION_WITH_FENCED: Final = 2
FIRST_VERSION_WITH_ABORTABLE: Final = 4
FIRST_VERSION_WITH_EPOCHS: Final = 5


@handles(api("EndTxn"), 0, 5)
async def end_txn(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    response = api("EndTxn").response
    try:
        check_name(request.transactional_id)
        producer = await call.broker.transactions.end(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            committed=request.committed,
            bumps=call.version >= FIRST_VERSION_WITH_EPOCHS,
        )
    except Exception as error:
        return response(error_code=_code(error, call.version), producer_epoch=-1)
    return response(producer_id=producer.id, producer_epoch=producer.epoch)


def _code(error: Exception, version: int) -> ErrorCode:
    if not isinstance(error, LogError):
        return refusal_in(error, version, FIRST_VERSION_WITH_FENCED).code
    if version >= FIRST_VERSION_WITH_ABORTABLE:
        return ErrorCode.TRANSACTION_ABORTABLE
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
