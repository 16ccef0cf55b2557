"""Every command that a client may send, and what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from penstock.pulsar.handlers import (
    command_02_connect,
    command_04_subscribe,
    command_05_producer,
    command_06_send,
    command_10_ack,
    command_11_flow,
    command_12_unsubscribe,
    command_15_close_producer,
    command_16_close_consumer,
    command_18_ping,
    command_19_pong,
    command_20_redeliver,
    command_21_partitioned_metadata,
    command_23_lookup,
    command_25_consumer_stats,
    command_28_seek,
    command_29_get_last_message_id,
    command_32_get_topics_of_namespace,
    command_34_get_schema,
    command_37_auth_response,
    command_39_get_or_create_schema,
    unsupported,
)
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

Answer: TypeAlias = Awaitable[BaseCommand | None] | BaseCommand | None


class Handler(NamedTuple):
    """How one command is carried out.

    `field` is the part of BaseCommand that holds the request. `handle` takes the session, the
    request and the entry behind the command. `refuse` makes an answer from the request, an error
    code and a message: every request type has its own form of it, and two requests of different
    types may have the same id. Without it an error is not told.
    """

    field: str
    handle: Callable[[Any, Any, memoryview], Answer]
    refuse: Callable[[Any, Any, str], BaseCommand] | None = None


def _answered(field: str, module: Any) -> Handler:
    return Handler(field, module.handle, module.refuse)


HANDLERS: Final[Mapping[BaseCommand.Type.ValueType, Handler]] = {
    BaseCommand.CONNECT: Handler("connect", command_02_connect.handle),
    BaseCommand.SUBSCRIBE: _answered("subscribe", command_04_subscribe),
    BaseCommand.PRODUCER: _answered("producer", command_05_producer),
    BaseCommand.SEND: _answered("send", command_06_send),
    BaseCommand.ACK: _answered("ack", command_10_ack),
    BaseCommand.FLOW: Handler("flow", command_11_flow.handle),
    BaseCommand.UNSUBSCRIBE: _answered("unsubscribe", command_12_unsubscribe),
    BaseCommand.CLOSE_PRODUCER: Handler("close_producer", command_15_close_producer.handle),
    BaseCommand.CLOSE_CONSUMER: Handler("close_consumer", command_16_close_consumer.handle),
    BaseCommand.PING: Handler("ping", command_18_ping.handle),
    BaseCommand.PONG: Handler("pong", command_19_pong.handle),
    BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES: Handler(
        "redeliverUnacknowledgedMessages", command_20_redeliver.handle
    ),
    BaseCommand.PARTITIONED_METADATA: _answered(
        "partitionMetadata", command_21_partitioned_metadata
    ),
    BaseCommand.LOOKUP: _answered("lookupTopic", command_23_lookup),
    BaseCommand.CONSUMER_STATS: _answered("consumerStats", command_25_consumer_stats),
    BaseCommand.SEEK: _answered("seek", command_28_seek),
    BaseCommand.GET_LAST_MESSAGE_ID: _answered("getLastMessageId", command_29_get_last_message_id),
    BaseCommand.GET_TOPICS_OF_NAMESPACE: _answered(
        "getTopicsOfNamespace", command_32_get_topics_of_namespace
    ),
    BaseCommand.GET_SCHEMA: _answered("getSchema", command_34_get_schema),
    BaseCommand.AUTH_RESPONSE: Handler("authResponse", command_37_auth_response.handle),
    BaseCommand.GET_OR_CREATE_SCHEMA: _answered(
        "getOrCreateSchema", command_39_get_or_create_schema
    ),
    **{kind: _answered(field, unsupported) for kind, field in unsupported.FIELDS.items()},
}
