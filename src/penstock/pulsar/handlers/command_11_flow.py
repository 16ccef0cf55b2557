"""FLOW: a consumer has room for more messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandFlow

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.FLOW)
def handle(request: CommandFlow, call: Call) -> None:
    call.client.newcomers.known(request.consumer_id)
    consumer = call.client.consumers.get(request.consumer_id)
    if consumer is not None:
        consumer.subscription.add_permits(consumer.member, request.messagePermits)
        return
    transient = call.client.transient_consumers.get(request.consumer_id)
    if transient is not None:
        transient.permits += request.messagePermits
