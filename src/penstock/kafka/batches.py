"""What a batch from a Kafka producer has to fulfil before it is written (KIP-98).

The header and the checksum say most of it. The records are looked at too, in their compiled
functions, which are loaded by the first call.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from penstock import records
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.letting_go import let_go
from penstock.limits import (
    COMPRESSED_AT_ONCE_BYTES,
    DECODED_ROWS,
    INFLATED_AT_ONCE_BYTES,
    VALIDATED_AT_ONCE_BYTES,
)
from penstock.log.header import (
    ATTRIBUTE_COMPRESSION,
    ATTRIBUTE_CONTROL,
    ATTRIBUTE_LOG_APPEND_TIME,
    ATTRIBUTE_TRANSACTIONAL,
    HEADER_SIZE,
    Magic,
    checksum_matches,
    read_header,
    set_max_timestamp,
)
from penstock.records.errors import OverLimitError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from penstock.broker.topics.config import TopicConfig
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 22
"""The lower byte of them, in which all that Kafka has defined lies."""
_ROW_BYTES: Final = 100
"""Of the table of records, for each."""
ZSTD: Final = 4
FIRST_VERSION_WITH_ZSTD: Final = 7


def check_batch(records: Buffer, version: int) -> BatchHeader:
    """Return the header of the one batch that a partition's part of a Produce request is.

    Raises RequestError.
    """
    header = check_frame(records)
    if header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        raise RequestError(
            ErrorCode.INVALID_RECORD,
            f"{header.record_count} records with a last offset of {header.last_offset_delta}",
        )
    _check_attributes(header, version)
    return header


def check_frame(records: Buffer) -> BatchHeader:
    """Return the header of one whole batch of Kafka's whose checksum fits. Raises RequestError."""
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
    return header


def check_records(batch: Buffer, header: BatchHeader, config: TopicConfig) -> BatchHeader:
    """Look at the records of a batch whose header is sound; return its header as it is now.

    As in Kafka, a latest time that is not that of the records is put right. Raises RequestError,
    which names all records that are at fault.
    """
    if not config.validates_records:
        return header
    validation = _validation()
    try:
        latest = validation.validate_kafka(batch, header, keyed=config.compaction.is_on)
    except validation.KafkaRecordError as error:
        from penstock.kafka.records_at_fault import invalid  # noqa: PLC0415  # numpy

        let_go(error)  # It has what was inflated, which is done once more.
        raise invalid(batch, error) from error
    except OverLimitError as error:
        raise RequestError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except records.MalformedBatchError as error:
        raise RequestError(ErrorCode.INVALID_RECORD, str(error)) from error
    if latest != header.max_timestamp:
        set_max_timestamp(batch, latest)
        header = read_header(batch)
    latest_time = config.latest_time(header.magic)
    if header.max_timestamp > latest_time:
        from penstock.kafka.records_at_fault import too_late  # noqa: PLC0415  # numpy

        raise too_late(batch, latest_time)
    return header


@cache
def _validation() -> ModuleType:
    """Return what looks at records; an import for each batch would cost as much as one record."""
    from penstock.records.kafka import validation  # noqa: PLC0415  # numpy

    return validation


def is_transactional(batch: Buffer) -> bool:
    """Whether a batch, sound or not, says that it is part of a transaction."""
    return (
        len(batch) >= HEADER_SIZE
        and batch[_MAGIC_AT] == Magic.KAFKA
        and bool(batch[_ATTRIBUTES_AT] & ATTRIBUTE_TRANSACTIONAL)
    )


def are_quick(batches: Iterable[Buffer]) -> bool:
    """Whether all of these batches of one request, sound or not, can be checked on the loop."""
    plain = compressed = inflated = 0
    for batch in batches:
        size = len(batch)
        if size > HEADER_SIZE and batch[_ATTRIBUTES_AT] & ATTRIBUTE_COMPRESSION:
            compressed += size
            if compressed > COMPRESSED_AT_ONCE_BYTES:
                return False
            inflated += inflated_bytes(batch)
        else:
            plain += size
    return plain <= VALIDATED_AT_ONCE_BYTES and inflated <= INFLATED_AT_ONCE_BYTES


def inflated_bytes(batch: Buffer) -> int:
    """Return how many bytes a batch, sound or not, inflates to at most; 0 where it need not be."""
    if len(batch) < HEADER_SIZE or batch[_MAGIC_AT] != Magic.KAFKA:
        return 0
    if not batch[_ATTRIBUTES_AT] & ATTRIBUTE_COMPRESSION:
        return 0
    return records.inflated_bytes(batch)


def naming_bytes(batch: Buffer) -> int:
    """Return how many bytes it takes at most, beside those, to name records that are at fault."""
    if len(batch) < HEADER_SIZE:
        return 0
    return _ROW_BYTES * max(0, min(read_header(batch).record_count, DECODED_ROWS))


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
    if header.attributes & ATTRIBUTE_LOG_APPEND_TIME:
        raise RequestError(
            ErrorCode.INVALID_TIMESTAMP, "a client can't give the time of the broker"
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise RequestError(ErrorCode.INVALID_RECORD, "a producer id without a sequence number")
