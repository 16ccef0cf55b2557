"""Batches of producers put into the codec in which their topic keeps them (compression.type)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock import records
from penstock.kafka.errors import RequestError
from penstock.kafka.wire import ErrorCode
from penstock.log.header import ATTRIBUTE_COMPRESSION, HEADER_SIZE, read_header, rebuilt_header
from penstock.records.errors import OverLimitError

if TYPE_CHECKING:
    from penstock.broker.topics.config import Compression, TopicConfig
    from penstock.log.header import BatchHeader
    from penstock.session import Buffer

_ATTRIBUTES_AT: Final = 22
_COPIES: Final = 3
"""Of what is inflated: as it is read, compressed anew, and in a batch."""


class Sound(NamedTuple):
    """A batch as it is going to be stored, and its header."""

    batch: Buffer
    header: BatchHeader


def is_due(batch: Buffer, config: TopicConfig) -> bool:
    """Whether a batch, sound or not, is in another codec than its topic keeps."""
    compression = config.compression
    if compression is None or len(batch) <= HEADER_SIZE:
        return False
    return batch[_ATTRIBUTES_AT] & ATTRIBUTE_COMPRESSION != compression.codec


def bytes_taken(batch: Buffer, config: TopicConfig) -> int:
    """Return how many bytes it takes at most to put a batch into the codec of its topic."""
    if not is_due(batch, config):
        return 0
    return _COPIES * max(len(batch), records.inflated_bytes(batch))


def in_codec(batch: Buffer, header: BatchHeader, config: TopicConfig) -> Sound:
    """Return a sound batch in the codec of its topic; all else of it stays as it was sent.

    As in Kafka, both have to be of a size that the topic takes. Raises RequestError, and what
    TopicConfig.check_batch raises.
    """
    if config.compression is None or not is_due(batch, config):
        return Sound(batch, header)
    config.check_batch(header)
    try:
        return _recompressed(batch, header, config.compression)
    except OverLimitError as error:
        raise RequestError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except records.MalformedBatchError as error:
        raise RequestError(ErrorCode.INVALID_RECORD, str(error)) from error


def _recompressed(batch: Buffer, header: BatchHeader, compression: Compression) -> Sound:
    from penstock.records.kafka.compression import (  # noqa: PLC0415  # numpy
        compress_kafka,
        inflate_kafka,
    )

    body, codec = memoryview(batch)[HEADER_SIZE:], header.attributes & ATTRIBUTE_COMPRESSION
    plain = inflate_kafka(codec, body).data if codec else body
    anew = compress_kafka(compression.codec, plain, compression.level)
    attributes = header.attributes & ~ATTRIBUTE_COMPRESSION | compression.codec
    made = rebuilt_header(header._replace(attributes=attributes), anew)
    made += anew
    return Sound(made, read_header(made))
