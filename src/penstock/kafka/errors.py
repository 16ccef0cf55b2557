"""Which of Kafka's error codes each refusal gets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker import errors as broker
from penstock.kafka.wire import ErrorCode
from penstock.log.errors import (
    CorruptBatchError,
    InvalidBatchError,
    LogError,
    OffsetOutOfRangeError,
)
from penstock.memory import MemoryShortError
from penstock.metadata.errors import MetadataError
from penstock.records import MalformedBatchError
from penstock.requests.error_codes import ErrorCodes

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)

CODES: Final[ErrorCodes[ErrorCode]] = ErrorCodes(
    {
        broker.TopicExistsError: ErrorCode.TOPIC_ALREADY_EXISTS,
        broker.UnknownTopicError: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        broker.UnknownPartitionError: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        broker.InvalidTopicNameError: ErrorCode.INVALID_TOPIC_EXCEPTION,
        broker.InvalidPartitionCountError: ErrorCode.INVALID_PARTITIONS,
        broker.TopicsThrottledError: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        broker.InvalidSettingError: ErrorCode.INVALID_CONFIG,
        broker.MessageTooLargeError: ErrorCode.MESSAGE_TOO_LARGE,
        broker.TimestampTooFarAheadError: ErrorCode.INVALID_TIMESTAMP,
        # Clients give the batch up, and say what was the matter.
        broker.TopicTerminatedError: ErrorCode.POLICY_VIOLATION,
        broker.OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        broker.InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
        broker.UnknownTransactionError: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        broker.ProducerFencedError: ErrorCode.PRODUCER_FENCED,
        broker.InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
        broker.ConcurrentTransactionsError: ErrorCode.CONCURRENT_TRANSACTIONS,
        broker.InvalidTransactionTimeoutError: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        broker.InvalidWriterError: ErrorCode.INVALID_REQUEST,
        broker.InvalidEpochError: ErrorCode.INVALID_TXN_STATE,
        # Clients try again after a while.
        broker.TooManyTransactionsError: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        broker.InvalidGroupIdError: ErrorCode.INVALID_GROUP_ID,
        broker.UnknownGroupError: ErrorCode.GROUP_ID_NOT_FOUND,
        broker.NonEmptyGroupError: ErrorCode.NON_EMPTY_GROUP,
        broker.TooManyQuotasError: ErrorCode.POLICY_VIOLATION,
        broker.TooManyOffsetsError: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        broker.GroupFullError: ErrorCode.GROUP_MAX_SIZE_REACHED,
        # Clients try again after a while.
        broker.GroupsThrottledError: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        broker.NoMemoryError: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        broker.UnknownMemberError: ErrorCode.UNKNOWN_MEMBER_ID,
        broker.MemberIdRequiredError: ErrorCode.MEMBER_ID_REQUIRED,
        broker.FencedInstanceError: ErrorCode.FENCED_INSTANCE_ID,
        broker.IllegalGenerationError: ErrorCode.ILLEGAL_GENERATION,
        broker.RebalanceInProgressError: ErrorCode.REBALANCE_IN_PROGRESS,
        broker.InconsistentGroupProtocolError: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        broker.InvalidSessionTimeoutError: ErrorCode.INVALID_SESSION_TIMEOUT,
        OffsetOutOfRangeError: ErrorCode.OFFSET_OUT_OF_RANGE,
        CorruptBatchError: ErrorCode.CORRUPT_MESSAGE,
        MalformedBatchError: ErrorCode.CORRUPT_MESSAGE,
        InvalidBatchError: ErrorCode.INVALID_RECORD,
        # Clients send a batch again that is refused so.
        broker.TooManyProducersError: ErrorCode.KAFKA_STORAGE_ERROR,
        MemoryShortError: ErrorCode.KAFKA_STORAGE_ERROR,
        LogError: ErrorCode.KAFKA_STORAGE_ERROR,
        broker.StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
        OSError: ErrorCode.KAFKA_STORAGE_ERROR,
        # Nothing was stored, and a client that tries again may have more luck.
        MetadataError: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)


class RequestError(Exception):
    """A refusal that only Kafka's protocol knows, with its code."""

    def __init__(self, code: ErrorCode, message: str = "", records: Sequence[int] = ()) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.records = records
        """The indexes in their batch of the records that are at fault, where some are."""


class Refusal(NamedTuple):
    """An error as responses carry it."""

    code: ErrorCode
    message: str | None


ACCEPTED: Final = Refusal(ErrorCode.NONE, None)


def refusal(error: BaseException) -> Refusal:
    """Return what to tell the client; what is a bug of the broker is logged with its traceback."""
    if isinstance(error, RequestError):
        return Refusal(error.code, str(error))
    refused = CODES.refused(error)
    if refused is not None:
        return Refusal(*refused)
    logger.error("a Kafka request failed", exc_info=error)
    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "a bug in the broker; its log says more")
