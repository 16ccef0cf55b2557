"""FLOW: a consumer has room for more messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.wire.pulsar_api_pb2 import CommandFlow

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession


def handle(session: PulsarSession, request: CommandFlow, _entry: memoryview) -> None:
    consumer = session.consumers.get(request.consumer_id)
    if consumer is not None:
        consumer.subscription.add_permits(consumer.member, request.messagePermits)
