"""CONSUMER_STATS: what the broker knows about one consumer. Rates are a second's."""

from __future__ import annotations

import time
from datetime import UTC, datetime
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
    traffic, now = member.traffic, time.monotonic()
    response = CommandConsumerStatsResponse(
        request_id=request.request_id,
        msgRateOut=traffic.sent.a_second(now),
        msgThroughputOut=traffic.bytes_sent.a_second(now),
        msgRateRedeliver=traffic.redelivered.a_second(now),
        consumerName=member.name,
        availablePermits=max(member.permits, 0),
        unackedMessages=member.unacknowledged,
        blockedConsumerOnUnackedMsgs=member.blocked,
        address=call.client.transport.peer,
        connectedSince=_written(consumer.since_ms),
        type=subscription.kind.name.title(),
        msgRateExpired=subscription.expired.a_second(now),
        msgBacklog=subscription.backlog,
        messageAckRate=traffic.acknowledged.a_second(now),
    )
    return BaseCommand(type=BaseCommand.CONSUMER_STATS_RESPONSE, consumerStatsResponse=response)


def _written(time_ms: int) -> str:
    """Return a time as Pulsar's broker writes it."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
