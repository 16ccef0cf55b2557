"""What a batch from a Kafka producer has to fulfil before it is written (KIP-98).

Only the header is looked at, and every byte once for the checksum; the records are not parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    Magic,
    checksum_matches,
    read_header,
)

if TYPE_CHECKING:
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

ZSTD: Final = 4
FIRST_VERSION_WITH_ZSTD: Final = 7


def check_batch(records: Buffer, version: int) -> BatchHeader:
    """Return the header of the one batch that a partition's part of a Produce request is.

    Raises RequestError.
    """
    if not records:
        raise RequestError(ErrorCode.INVALID_RECORD, "there is no batch")
    if len(records) < HEADER_SIZE:
        raise RequestError(ErrorCode.CORRUPT_MESSAGE, f"{len(records)} bytes are no batch")
    header = read_header(records)
    _check_size(header, len(records))
    if header.magic != Magic.KAFKA:
        raise RequestError(ErrorCode.INVALID_RECORD, f"magic {header.magic}, not {Magic.KAFKA}")
    if not checksum_matches(records):
        raise RequestError(ErrorCode.CORRUPT_MESSAGE, "the checksum does not fit the batch")
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        raise RequestError(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records with a last offset of {header.last_offset_delta}",
        )
    _check_attributes(header, version)
    return header


def _check_size(header: BatchHeader, size: int) -> None:
    if HEADER_SIZE <= header.size < size:
        raise RequestError(ErrorCode.INVALID_RECORD, "there is more than one batch")
    if header.size != size:
        raise RequestError(
            ErrorCode.CORRUPT_MESSAGE, f"a batch of {header.size} bytes in {size} bytes"
        )


def _check_attributes(header: BatchHeader, version: int) -> None:
    codec = header.attributes & ATTRIBUTE_COMPRESSION
    if codec > ZSTD or (codec == ZSTD and version < FIRST_VERSION_WITH_ZSTD):
        raise RequestError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression {codec}")
    if header.attributes & ATTRIBUTE_CONTROL:
        raise RequestError(ErrorCode.INVALID_RECORD, "a client can't write control batches")
    if header.attributes & ATTRIBUTE_TRANSACTIONAL:
        raise RequestError(ErrorCode.INVALID_TXN_STATE, "transactions are not served yet")
    if header.attributes & ATTRIBUTE_LOG_APPEND_TIME:
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP, "a client can't give the time of the broker"
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise RequestError(ErrorCode.INVALID_RECORD, "a producer id without a sequence number")
