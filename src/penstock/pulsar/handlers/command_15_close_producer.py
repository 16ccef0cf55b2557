"""CLOSE_PRODUCER: always granted, even to a producer that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import success
from penstock.pulsar.handlers.registry import handles
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandCloseProducer

if TYPE_CHECKING:
    from penstock.pulsar.client import Call


@handles(BaseCommand.CLOSE_PRODUCER)
def handle(request: CommandCloseProducer, call: Call) -> BaseCommand:
    call.client.opening_producers.pop(request.producer_id, None)
    producer = call.client.producers.get(request.producer_id)
    call.client.close_producer(request.producer_id)
    if producer is not None and producer.name_is_ours:
        producer.partition.producers.named.forget(producer.key)
    return success(request.request_id)
