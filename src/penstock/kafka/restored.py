"""What a batch has to fulfil that is written to a log anew, at offsets that it had before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock import records
from penstock.kafka.batches import ZSTD, check_frame, inflated_bytes
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_LOG_APPEND_TIME,
    NO_PRODUCER_ID,
)
from penstock.records.errors import OverLimitError

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

__all__ = ["check_restored", "inflated_bytes"]

_KNOWN: Final = ATTRIBUTE_COMPRESSION | ATTRIBUTE_LOG_APPEND_TIME


def check_restored(batch: Buffer) -> BatchHeader:
    """Return the header of one whole sound batch of no producer, whose offsets ascend.

    All of its records are decoded. Raises RequestError.
    """
    header = check_frame(batch)
    if header.attributes & ~_KNOWN or header.producer_id != NO_PRODUCER_ID:
        raise RequestError(
            ErrorCode.INVALID_RECORD, "the batch is of a producer or of a transaction"
        )
    if header.attributes & ATTRIBUTE_COMPRESSION > ZSTD:
        codec = header.attributes & ATTRIBUTE_COMPRESSION
        raise RequestError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression {codec}")
    try:
        columns = records.decode(batch)
    except OverLimitError as error:
        raise RequestError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except records.MalformedBatchError as error:
        raise RequestError(ErrorCode.INVALID_RECORD, str(error)) from error
    offsets = columns.offsets
    if not len(offsets) or (offsets[1:] <= offsets[:-1]).any():
        raise RequestError(ErrorCode.INVALID_RECORD, "there is no record, or offsets descend")
    if offsets[0] < header.base_offset or offsets[-1] > header.last_offset:
        raise RequestError(ErrorCode.INVALID_RECORD, "a record's offset lies outside of the batch")
    if int(columns.timestamps.max()) // 1000 != header.max_timestamp:
        raise RequestError(ErrorCode.INVALID_TIMESTAMP, "the latest time is not that of a record")
    return header
