"""InitProducerId: a new identity for an idempotent producer, or the next one of a transactional.

Versions 0-5; version 6, with which a producer takes part in others' transactions, is not released.

* Without a transactional id the answer is always a new producer id with epoch 0, also for a
  producer that has one already. An empty transactional id is INVALID_REQUEST.
* With one the epoch goes up, so that the instance before is fenced; what that one had open is
  aborted before the answer, where Kafka answers CONCURRENT_TRANSACTIONS and aborts it meanwhile.
* A producer that says who it was goes on from there, or is PRODUCER_FENCED (KIP-360).
* A time-out of 0 or less, or more than `transaction.max.timeout.ms`, is
  INVALID_TRANSACTION_TIMEOUT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.transactions.states import Producer
from penstock.kafka.errors import RequestError
from penstock.kafka.handlers.registry import handles
from penstock.kafka.handlers.transactions import check_name, refusal_in
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import InitProducerIdRequest, InitProducerIdResponse

FIRST_VERSION_WITH_FENCED: Final = 4


@handles(api("InitProducerId"), 0, 5)
async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    response = api("InitProducerId").response
    try:
        producer = await _producer(request, call)
    except Exception as error:
        code, _ = refusal_in(error, call.version, FIRST_VERSION_WITH_FENCED)
        return response(error_code=code, producer_epoch=-1)
    return response(producer_id=producer.id, producer_epoch=producer.epoch)


async def _producer(request: InitProducerIdRequest, call: Call) -> Producer:
    if request.transactional_id is not None:
        check_name(request.transactional_id)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise RequestError(ErrorCode.INVALID_REQUEST, "producer id and epoch come together")
    if request.transactional_id is None:
        return Producer(await call.broker.producer_ids.take(), 0)
    return await call.broker.transactions.initialise(
        request.transactional_id,
        request.transaction_timeout_ms,
        Producer(request.producer_id, request.producer_epoch) if request.producer_id >= 0 else None,
    )
