"""Commands of features that are not there: refused, so that clients don't wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.pulsar.errors import RefusedError
from penstock.pulsar.handlers.answers import error as refuse
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand, ServerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.pulsar.session import PulsarSession

__all__ = ["FIELDS", "handle", "refuse"]

FIELDS: Final[Mapping[BaseCommand.Type.ValueType, str]] = {
    BaseCommand.NEW_TXN: "newTxn",
    BaseCommand.ADD_PARTITION_TO_TXN: "addPartitionToTxn",
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN: "addSubscriptionToTxn",
    BaseCommand.END_TXN: "endTxn",
    BaseCommand.END_TXN_ON_PARTITION: "endTxnOnPartition",
    BaseCommand.END_TXN_ON_SUBSCRIPTION: "endTxnOnSubscription",
    BaseCommand.TC_CLIENT_CONNECT_REQUEST: "tcClientConnectRequest",
    BaseCommand.WATCH_TOPIC_LIST: "watchTopicList",
    BaseCommand.WATCH_TOPIC_LIST_CLOSE: "watchTopicListClose",
    BaseCommand.SCALABLE_TOPIC_SUBSCRIBE: "scalableTopicSubscribe",
}
"""Those that carry a request id. Others of their kind are never sent to a broker that does not
announce the feature, and are ignored."""


def handle(_session: PulsarSession, request: Any, _entry: memoryview) -> BaseCommand:
    raise RefusedError(
        ServerError.NotAllowedError, f"{type(request).__name__} is not supported by this broker"
    )
