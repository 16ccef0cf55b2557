"""Which of Pulsar's error codes says what went wrong.

Codes are chosen for what clients do with them. The C++ client, and with it Python's and Node's,
retries most codes until its timeout and hangs on a SUBSCRIBE that is answered with one of those, so
that a request that can never succeed is answered with NotAllowedError, which reaches the caller.
"""

from __future__ import annotations

from typing import Final

from penstock.broker.errors import (
    BrokerError,
    ConcurrentTransactionsError,
    ConsumerBusyError,
    IncompatibleSchemaError,
    InvalidTransactionStateError,
    KeyRangesError,
    ProducerFencedError,
    StorageError,
    SubscriptionBusyError,
    ThrottledError,
    TooManyProducersError,
    TooManyTransactionsError,
    TopicTerminatedError,
    TransactionConflictError,
    UnknownSchemaError,
    UnknownTopicError,
    UnknownTransactionError,
)
from penstock.log.errors import LogError
from penstock.memory import MemoryShortError
from penstock.metadata.errors import MetadataError
from penstock.pulsar.wire.pulsar_api_pb2 import ServerError
from penstock.records import MalformedBatchError
from penstock.requests.error_codes import ErrorCodes, Refused


class RefusedError(Exception):
    """A request is answered with an error of Pulsar's; `code` is a ServerError."""

    def __init__(self, code: ServerError.ValueType, message: str) -> None:
        super().__init__(message)
        self.code = code


_CODES: Final[ErrorCodes[ServerError.ValueType]] = ErrorCodes(
    {
        UnknownTopicError: ServerError.TopicNotFound,
        UnknownSchemaError: ServerError.TopicNotFound,
        IncompatibleSchemaError: ServerError.IncompatibleSchema,
        ConsumerBusyError: ServerError.ConsumerBusy,
        KeyRangesError: ServerError.ConsumerAssignError,
        SubscriptionBusyError: ServerError.MetadataError,
        TopicTerminatedError: ServerError.TopicTerminatedError,
        # Clients send the message again.
        TooManyProducersError: ServerError.TooManyRequests,
        ThrottledError: ServerError.TooManyRequests,
        MemoryShortError: ServerError.TooManyRequests,
        StorageError: ServerError.PersistenceError,
        UnknownTransactionError: ServerError.TransactionNotFound,
        InvalidTransactionStateError: ServerError.InvalidTxnStatus,
        # Its time was over, and it is being aborted.
        ProducerFencedError: ServerError.InvalidTxnStatus,
        ConcurrentTransactionsError: ServerError.ServiceNotReady,
        TooManyTransactionsError: ServerError.TooManyRequests,
        TransactionConflictError: ServerError.TransactionConflict,
        BrokerError: ServerError.NotAllowedError,
        LogError: ServerError.PersistenceError,
        OSError: ServerError.PersistenceError,
        MetadataError: ServerError.MetadataError,
        MalformedBatchError: ServerError.UnknownError,
    }
)

RETRIED_SUBSCRIBE: Final = frozenset(
    {
        ServerError.UnknownError,
        ServerError.MetadataError,
        ServerError.PersistenceError,
        ServerError.ServiceNotReady,
    }
)
"""Codes on which the C++ client waits for ever instead of subscribing again."""


def refused(error: Exception) -> Refused[ServerError.ValueType] | None:
    """Return what the client hears; None for a bug, which closes the connection."""
    if isinstance(error, RefusedError):
        return Refused(error.code, str(error))
    return _CODES.refused(error)
