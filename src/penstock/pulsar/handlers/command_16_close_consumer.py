"""CLOSE_CONSUMER: always granted, even to a consumer that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import success
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandCloseConsumer

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(
    session: PulsarSession, request: CommandCloseConsumer, _entry: memoryview
) -> BaseCommand:
    session.opening_consumers.pop(request.consumer_id, None)
    consumer = session.consumers.pop(request.consumer_id, None)
    if consumer is not None:
        session.broker.subscriptions.leave(consumer.subscription, consumer.member)
    return success(request.request_id)
