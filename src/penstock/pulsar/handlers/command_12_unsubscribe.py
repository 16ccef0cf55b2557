"""UNSUBSCRIBE: the only consumer of a subscription deletes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.pulsar.handlers.answers import consumer_of, success
from penstock.pulsar.handlers.answers import error as refuse
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, CommandUnsubscribe

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarSession

__all__ = ["handle", "refuse"]


async def handle(
    session: PulsarSession, request: CommandUnsubscribe, _entry: memoryview
) -> BaseCommand:
    consumer = consumer_of(session, request.consumer_id)
    await session.broker.subscriptions.unsubscribe(
        consumer.subscription, consumer.member, force=request.force
    )
    session.consumers.pop(request.consumer_id, None)
    return success(request.request_id)
