"""CLOSE_CONSUMER: always granted, even to a consumer that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import success
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandCloseConsumer

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.CLOSE_CONSUMER)
def handle(request: CommandCloseConsumer, call: Call) -> BaseCommand:
    call.client.opening_consumers.pop(request.consumer_id, None)
    call.client.close_consumer(request.consumer_id)
    return success(request.request_id)
