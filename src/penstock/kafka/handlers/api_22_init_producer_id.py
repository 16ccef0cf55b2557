"""InitProducerId: a new identity for an idempotent producer.

Versions 0-5. Without a transactional id the answer is always a new producer id with epoch 0, also
for a producer that has one already.

Deviation: transactions are not served yet. A transactional id is answered with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the one refusal that every client takes for final (librdkafka
tries for ever after UNSUPPORTED_VERSION), and an empty one with INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.errors import RequestError, refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import ErrorCode, api

if TYPE_CHECKING:
    from penstock.kafka.handlers.registry import Call
    from penstock.kafka.wire.messages import InitProducerIdRequest, InitProducerIdResponse


@handles(api("InitProducerId"), 0, 5)
async def init_producer_id(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    response = api("InitProducerId").response
    try:
        _check(request)
        producer_id = await call.broker.producer_ids.take()
    except Exception as error:
        return response(error_code=refusal(error).code, producer_epoch=-1)
    return response(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise RequestError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    if request.transactional_id is not None:
        raise RequestError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not served yet"
        )
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise RequestError(ErrorCode.INVALID_REQUEST, "producer id and epoch come together")
