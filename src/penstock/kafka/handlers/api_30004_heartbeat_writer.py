"""HeartbeatWriter: a writer is at work, so the time-outs of its open transactions begin anew.

Version 0, for Penstock's own pipelines. The answer says which epoch of it was committed last, -1
where none was. A name that can't be a writer's is INVALID_REQUEST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.transactions.epochs import NO_EPOCH
from penstock.kafka.errors import refusal
from penstock.kafka.handlers.registry import handles
from penstock.kafka.wire import api

if TYPE_CHECKING:
    from penstock.kafka.client import Call
    from penstock.kafka.wire.messages import HeartbeatWriterRequest, HeartbeatWriterResponse


@handles(api("HeartbeatWriter"), 0, 0)
async def heartbeat_writer(request: HeartbeatWriterRequest, call: Call) -> HeartbeatWriterResponse:
    response = api("HeartbeatWriter").response
    try:
        return response(epoch=await call.broker.epochs.seen(request.writer))
    except Exception as error:
        refused = refusal(error)
        return response(error_code=refused.code, error_message=refused.message, epoch=NO_EPOCH)
