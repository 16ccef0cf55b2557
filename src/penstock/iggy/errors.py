"""Which error number a client hears for what went wrong below."""

from __future__ import annotations

from typing import Final

from penstock.broker import errors as broker_errors
from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.log.errors import (
    CorruptBatchError,
    LogError,
    LogFailedError,
    LogWriteError,
    OffsetOutOfRangeError,
)
from penstock.memory import MemoryShortError
from penstock.metadata.errors import MetadataError
from penstock.records.errors import MalformedBatchError
from penstock.requests.error_codes import ErrorCodes

_CODES: Final = ErrorCodes(
    {
        broker_errors.StorageError: ErrorCode.CANNOT_CREATE_TOPIC_DIRECTORY,
        broker_errors.TopicNumberTakenError: ErrorCode.TOPIC_ID_ALREADY_EXISTS,
        broker_errors.NamespaceNumberTakenError: ErrorCode.STREAM_ID_ALREADY_EXISTS,
        broker_errors.GroupNumberTakenError: ErrorCode.CONSUMER_GROUP_ID_ALREADY_EXISTS,
        broker_errors.TopicExistsError: ErrorCode.TOPIC_NAME_ALREADY_EXISTS,
        broker_errors.UnknownTopicError: ErrorCode.TOPIC_ID_NOT_FOUND,
        broker_errors.UnknownPartitionError: ErrorCode.PARTITION_NOT_FOUND,
        broker_errors.InvalidTopicNameError: ErrorCode.INVALID_TOPIC_NAME,
        broker_errors.InvalidPartitionCountError: ErrorCode.TOO_MANY_PARTITIONS,
        broker_errors.TopicsThrottledError: ErrorCode.TOO_MANY_TOPICS,
        broker_errors.NamespacesThrottledError: ErrorCode.TOO_MANY_STREAMS,
        broker_errors.GroupsThrottledError: ErrorCode.CANNOT_CREATE_CONSUMER_GROUP_INFO,
        broker_errors.InvalidSettingError: ErrorCode.INVALID_OPTION_VALUE,
        broker_errors.MessageTooLargeError: ErrorCode.TOO_BIG_MESSAGE_PAYLOAD,
        broker_errors.TimestampTooFarAheadError: ErrorCode.TIMESTAMP_OUT_OF_RANGE,
        broker_errors.TopicTerminatedError: ErrorCode.CANNOT_APPEND_MESSAGE,
        broker_errors.NamespaceExistsError: ErrorCode.STREAM_NAME_ALREADY_EXISTS,
        broker_errors.UnknownNamespaceError: ErrorCode.STREAM_ID_NOT_FOUND,
        broker_errors.GroupExistsError: ErrorCode.CONSUMER_GROUP_NAME_ALREADY_EXISTS,
        broker_errors.TooManyOffsetsError: ErrorCode.TOO_MANY_CONSUMER_OFFSETS,
        broker_errors.GroupFullError: ErrorCode.CANNOT_CREATE_CONSUMER_GROUP_INFO,
        broker_errors.UnknownGroupError: ErrorCode.CONSUMER_GROUP_ID_NOT_FOUND,
        broker_errors.UnknownMemberError: ErrorCode.CONSUMER_GROUP_MEMBER_NOT_FOUND,
        LogWriteError: ErrorCode.CANNOT_APPEND_MESSAGE,
        LogFailedError: ErrorCode.CANNOT_APPEND_MESSAGE,
        OffsetOutOfRangeError: ErrorCode.INVALID_OFFSET,
        CorruptBatchError: ErrorCode.CANNOT_READ_MESSAGE,
        MemoryShortError: ErrorCode.CANNOT_READ_MESSAGE,
        LogError: ErrorCode.CANNOT_READ_MESSAGE,  # The disk gave nothing, or the log is closing.
        OSError: ErrorCode.IO_ERROR,
        MalformedBatchError: ErrorCode.CANNOT_READ_MESSAGE,
        MetadataError: ErrorCode.CANNOT_SERIALIZE_RESOURCE,
    }
)


def as_iggy_error(error: Exception) -> IggyError | None:
    """Return what the client hears of an error; None for a bug, of which it hears nothing."""
    if isinstance(error, IggyError):
        return error
    refused = _CODES.refused(error)
    return None if refused is None else IggyError(*refused)
