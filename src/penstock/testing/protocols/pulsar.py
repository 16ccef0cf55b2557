"""Faults in Pulsar's protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn, cast

from penstock.broker.errors import InvalidTopicNameError
from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers import HANDLERS
from penstock.pulsar.topics import parse_topic
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError
from penstock.testing.protocols.dialect import by_plain_name, number

if TYPE_CHECKING:
    from penstock.pulsar.session import PulsarRequest

_ERRORS: Final[dict[str, int]] = dict(ServerError.items())


class PulsarDialect:
    """A `penstock.testing.protocols.dialect.Dialect`."""

    requests = by_plain_name(BaseCommand.Type.Name(kind) for kind in HANDLERS)

    def error(self, request: str, name: str | int) -> int:
        if HANDLERS[BaseCommand.Type.Value(request)].refuse is None:
            raise ValueError(f"{request} has no answer that could fail; delay it or disconnect")
        return number(name, _ERRORS)

    def name(self, request: PulsarRequest) -> str:
        # The protocol numbers a command's field as it numbers its kind.
        field = BaseCommand.DESCRIPTOR.fields_by_name[request.handler.field]
        return BaseCommand.Type.Name(cast("BaseCommand.Type.ValueType", field.number))

    def topics(self, request: PulsarRequest) -> set[str]:
        message, client = request.message, request.client
        if hasattr(message, "topic"):
            try:
                return {parse_topic(message.topic).name.kafka}
            except (InvalidTopicNameError, RefusedError):
                return set()
        producer = client.producers.get(getattr(message, "producer_id", -1))
        consumer = client.consumers.get(getattr(message, "consumer_id", -1))
        return {each.partition.topic.name.kafka for each in (producer, consumer) if each}

    def fail(self, request: PulsarRequest, error: int) -> NoReturn:
        del request
        raise RefusedError(cast("ServerError.ValueType", error), "a test asked for it")
