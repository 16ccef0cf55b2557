"""What stands in front of a Pulsar payload: the entry's metadata, and that of each message.

The messages are compiled from `pulsar_metadata.proto` (`make protos`); a person reads that file.
"""

from __future__ import annotations

from enum import IntEnum

from penstock.records.pulsar.pulsar_metadata_pb2 import (
    BrokerEntryMetadata,
    EncryptionKeys,
    KeyValue,
    MessageMetadata,
    SingleMessageMetadata,
)

__all__ = [
    "BrokerEntryMetadata",
    "CompressionType",
    "EncryptionKeys",
    "KeyValue",
    "MessageMetadata",
    "SingleMessageMetadata",
]


class CompressionType(IntEnum):
    """The codecs of Pulsar's protocol."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4
