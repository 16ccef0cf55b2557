"""CONSUMER_STATS: what the broker knows about one consumer. Rates are not kept yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import (
    BaseCommand,
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    ServerError,
)

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


def refuse(request: CommandConsumerStats, code: ServerError.ValueType, message: str) -> BaseCommand:
    response = CommandConsumerStatsResponse(
        request_id=request.request_id, error_code=code, error_message=message
    )
    return BaseCommand(type=BaseCommand.CONSUMER_STATS_RESPONSE, consumerStatsResponse=response)


@handles(BaseCommand.CONSUMER_STATS, refuse=refuse)
def handle(request: CommandConsumerStats, call: Call) -> BaseCommand:
    consumer = call.client.consumers.get(request.consumer_id)
    if consumer is None:
        raise RefusedError(
            ServerError.ConsumerNotFound, f"consumer {request.consumer_id} not found"
        )
    member, subscription = consumer.member, consumer.subscription
    response = CommandConsumerStatsResponse(
        request_id=request.request_id,
        consumerName=member.name,
        availablePermits=max(member.permits, 0),
        unackedMessages=member.unacknowledged,
        blockedConsumerOnUnackedMsgs=member.blocked,
        address=call.client.transport.peer,
        type=subscription.kind.name.capitalize(),
        msgBacklog=subscription.backlog,
    )
    return BaseCommand(type=BaseCommand.CONSUMER_STATS_RESPONSE, consumerStatsResponse=response)
