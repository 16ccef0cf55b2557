"""By which key an entry belongs to one consumer of a Key_Shared subscription, as a number.

Pulsar's `Commands.resolveStickyKey`: the ordering key of the entry's own metadata, else its
partition key, else who sent it with which number. Keys of messages inside a batch don't count.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.records.kernels.arguments import BytesIn, NumbersIn, TableOut
from penstock.records.kernels.declaring import kernel
from penstock.records.kernels.murmur3 import murmur3
from penstock.records.kernels.primitives import load_big
from penstock.records.pulsar.entry import CHECKSUM_MAGIC, CHECKSUM_SIZE
from penstock.records.pulsar.metadata import (
    FIELDS,
    KEY_IS_BASE64,
    OF_ENTRY,
    ORDERING_KEY,
    PARTITION_KEY,
    PRODUCER,
    SEQUENCE,
    read_fields,
)

if TYPE_CHECKING:
    from penstock.session import Buffer

NO_KEY: Final = b"NONE_KEY"
"""What Pulsar takes for the key of an entry that can't be read, or has nothing to go by."""

_IS_BASE64: Final = -1
_IS_SEQUENCE: Final = -2
_HAS_NONE: Final = -3
_SIZE_BYTES: Final = 4

_fields = np.empty((FIELDS, 2), np.int64)
"""Filled in by one look into an entry after the other."""


def murmur3_32(data: bytes) -> int:
    """Return the hash as an unsigned number of 32 bits."""
    return hash_bytes(np.frombuffer(data, np.uint8))


def sticky_hash(entry: Buffer) -> int:
    """Return the hash of an entry's key, without a sign: 31 bits, as Pulsar's `Murmur3_32Hash`."""
    found = find_sticky_key(np.frombuffer(entry, np.uint8), OF_ENTRY, _fields)
    if found < 0:
        found = murmur3_32(_written_key(memoryview(entry), found))
    return found & 0x7FFFFFFF


def _written_key(entry: memoryview, found: int) -> bytes:
    """Return the key where it does not stand in the entry as it is."""
    if found == _IS_BASE64:
        start, size = _fields[PARTITION_KEY].tolist()
        text = bytes(entry[start : start + size])
        try:
            # Java needs no padding at the end.
            return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
        except binascii.Error:
            return NO_KEY
    if found == _IS_SEQUENCE:
        start, size = _fields[PRODUCER].tolist()
        sequence = int(_fields[SEQUENCE, 0]) & 0xFFFFFFFFFFFFFFFF
        signed = sequence - (sequence >> 63 << 64)
        return b"%b-%d" % (bytes(entry[start : start + size]), signed)
    return NO_KEY


@kernel
def hash_bytes(data: BytesIn) -> int:
    """Return the hash of all of it."""
    return murmur3(data, 0, len(data))


@kernel
def find_sticky_key(data: BytesIn, numbers: NumbersIn, fields: TableOut) -> int:
    """Return the hash of an entry's key where the entry has its bytes; else a number below 0 that
    says where the key is to be taken from in `fields`.
    """
    position = 0
    if len(data) >= CHECKSUM_SIZE and load_big(data, 0, 2) == CHECKSUM_MAGIC:
        position = CHECKSUM_SIZE
    if len(data) - position < _SIZE_BYTES:
        return _HAS_NONE
    size = load_big(data, position, _SIZE_BYTES)
    position += _SIZE_BYTES
    if size > len(data) - position or not read_fields(
        data, position, position + size, numbers, fields
    ):
        return _HAS_NONE
    if fields[ORDERING_KEY, 1] >= 0:
        return murmur3(data, fields[ORDERING_KEY, 0], fields[ORDERING_KEY, 1])
    if fields[PARTITION_KEY, 1] >= 0:
        if fields[KEY_IS_BASE64, 0] != 0:
            return _IS_BASE64
        return murmur3(data, fields[PARTITION_KEY, 0], fields[PARTITION_KEY, 1])
    return _IS_SEQUENCE if fields[PRODUCER, 1] >= 0 else _HAS_NONE
