"""CLOSE_PRODUCER: always granted, even to a producer that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import success
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandCloseProducer

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(
    session: PulsarSession, request: CommandCloseProducer, _entry: memoryview
) -> BaseCommand:
    session.opening_producers.pop(request.producer_id, None)
    producer = session.producers.pop(request.producer_id, None)
    if producer is not None:
        session.closed_producers.append(producer.id)
        session.node.remove_producer(producer)
    return success(request.request_id)
