"""UNSUBSCRIBE: the only consumer of a subscription deletes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import consumer_of, refusal, success
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandUnsubscribe

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.UNSUBSCRIBE, refuse=refusal)
async def handle(request: CommandUnsubscribe, call: Call) -> BaseCommand:
    if request.consumer_id in call.client.transient_consumers:
        call.client.close_consumer(request.consumer_id)
        return success(request.request_id)
    consumer = consumer_of(call, request.consumer_id)
    await call.broker.subscriptions.unsubscribe(
        consumer.subscription, consumer.member, force=request.force
    )
    if call.client.consumers.get(request.consumer_id) is consumer:
        call.client.forget_consumer(consumer)
    return success(request.request_id)
