"""Which of Pulsar's error codes says what went wrong.

Codes are chosen for what clients do with them. The C++ client, and with it Python's and Node's,
retries most codes until its timeout and hangs on a SUBSCRIBE that is answered with one of those, so
that a request that can never succeed is answered with NotAllowedError, which reaches the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.errors import (
    BrokerError,
    ConsumerBusyError,
    SubscriptionBusyError,
    UnknownTopicError,
)
from penstock.log.errors import LogError
from penstock.metadata.errors import MetadataError
from penstock.pulsar.wire.pulsar_api_pb2 import ServerError
from penstock.records import MalformedBatchError

if TYPE_CHECKING:
    from collections.abc import Mapping


class RefusedError(Exception):
    """A request is answered with an error of Pulsar's; `code` is a ServerError."""

    def __init__(self, code: ServerError.ValueType, message: str) -> None:
        super().__init__(message)
        self.code = code


ANSWERED: Final = (RefusedError, BrokerError, LogError, MetadataError, MalformedBatchError)
"""What is told to the client; anything else is a bug of ours and closes the connection."""

_CODES: Final[Mapping[type[Exception], ServerError.ValueType]] = {
    UnknownTopicError: ServerError.TopicNotFound,
    ConsumerBusyError: ServerError.ConsumerBusy,
    SubscriptionBusyError: ServerError.MetadataError,
    BrokerError: ServerError.NotAllowedError,
    LogError: ServerError.PersistenceError,
    MetadataError: ServerError.MetadataError,
    MalformedBatchError: ServerError.UnknownError,
}

RETRIED_SUBSCRIBE: Final = frozenset(
    {
        ServerError.UnknownError,
        ServerError.MetadataError,
        ServerError.PersistenceError,
        ServerError.ServiceNotReady,
    }
)
"""Codes on which the C++ client waits for ever instead of subscribing again."""


def error_code(error: Exception) -> ServerError.ValueType:
    """Return the code for one of the `ANSWERED` errors."""
    if isinstance(error, RefusedError):
        return error.code
    return next(_CODES[kind] for kind in type(error).__mro__ if kind in _CODES)
