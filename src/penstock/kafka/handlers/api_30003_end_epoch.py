"""EndEpoch: commit the transactions of a writer's tasks together, as its next epoch, or abort them.

For Penstock's own pipelines. All named transactions are committed, and the epoch is
remembered, in one step, or none is; what else the writer has open is aborted. An epoch that was
committed before is answered without an error, `written` false, and what is named now is aborted.
Since version 1 it is remembered with the fingerprint of what it is made from, and the answer has
that of what was committed, empty where the writer gave none, so that the writer can tell its own
epoch from another one of that number. Without `committed` all that the writer has open is aborted,
whatever is named.

* An epoch before the last one, more producers than an epoch may have, or a longer fingerprint than
  is kept, is INVALID_TXN_STATE.
* A writer's name that can't be one, or a transactional id that is not a task's of it, is
  INVALID_REQUEST.
* Where one of the transactions is gone, has ended or is another producer's, the errors are those
  of EndTxn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.transactions.epochs import Decided
from penstock.broker.transactions.states import Producer
from penstock.kafka.errors import Refusal, RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api
from penstock.log.errors import LogError
from penstock.pace import Pace

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import EndEpochRequest, EndEpochResponse


@handles(api("EndEpoch"), 0, 1)
async def end_epoch(request: EndEpochRequest, call: Call) -> EndEpochResponse:
    response = api("EndEpoch").response
    try:
        return response(**(await _end(request, call))._asdict())
    except LogError as error:
        refused = Refusal(ErrorCode.TRANSACTION_ABORTABLE, str(error))
    except Exception as error:
        refused = refusal(error)
    return response(error_code=refused.code, error_message=refused.message)


async def _end(request: EndEpochRequest, call: Call) -> Decided:
    epochs = call.broker.epochs
    if not request.committed:
        await epochs.abort(request.writer)
        return Decided(written=False, fingerprint="")
    pairs = await Pace().each(
        request.producers,
        lambda each: (each.transactional_id, Producer(each.producer_id, each.producer_epoch)),
    )
    producers = dict(pairs)
    if len(producers) < len(pairs):
        raise RequestError(ErrorCode.INVALID_REQUEST, "a transactional id is named twice")
    return await epochs.commit(request.writer, request.epoch, producers, request.fingerprint)
