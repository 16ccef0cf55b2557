"""How many bytes a compressed body holds at most, from what its frame says, without inflating it.

Codecs write their data in blocks, each of which has a size of its own and a largest one inflated.
Whoever inflates holds the body to this bound, so that it may be reserved before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.log.header import ATTRIBUTE_COMPRESSION, HEADER_SIZE, Magic, read_header
from penstock.records.message_sets import layout
from penstock.records.pulsar.entry import MalformedEntryError, parse_entry

if TYPE_CHECKING:
    from penstock.session import Buffer

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER_SIZE: Final = 16

_BLOCKS_WALKED: Final = 1 << 16
"""Who writes smaller blocks than two KiB gets the largest bound."""

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_BLOCK_BYTES: Final = 128 << 10
_ZSTD_DICTIONARY_ID_SIZES: Final = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZES: Final = (0, 2, 4, 8)
_ZSTD_RAW, _ZSTD_RUN = 0, 1

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_RATIO: Final = 255
_LZ4_STORED: Final = 1 << 31


def inflated_bytes(batch: Buffer) -> int:
    """Return how many bytes the body of a stored batch has at most once it is inflated."""
    header = read_header(batch)
    body = memoryview(batch)[HEADER_SIZE : header.size]
    if header.magic == Magic.KAFKA:
        return kafka_bound(header.attributes & ATTRIBUTE_COMPRESSION, body)
    if header.magic == Magic.PULSAR:
        try:
            metadata = parse_entry(body).metadata
        except MalformedEntryError:
            return len(body)
        if metadata.compression:
            return min(metadata.uncompressed_size, INFLATED_BATCH_BYTES)
    return len(body)


def kafka_bound(codec: int, body: memoryview) -> int:
    """Return how many bytes `body` inflates to at most; `codec` is as in Kafka's attributes."""
    bound = _KAFKA.get(codec)
    return len(body) if bound is None else bound(body)


def message_set_bytes(message_set: Buffer) -> int:
    """Return how many bytes the messages of a set are at most once they are inflated."""
    view = memoryview(message_set)
    codec = view[layout.ATTRIBUTES_AT] & layout.COMPRESSION if len(view) >= layout.SMALLEST else 0
    if not codec:
        return len(view)
    key_at = layout.TIMESTAMP_AT + (layout.TIMESTAMP_SIZE if view[layout.MAGIC_AT] else 0)
    key_size = int.from_bytes(view[key_at : key_at + 4], "big", signed=True)
    return kafka_bound(codec, view[key_at + 8 + max(key_size, 0) :])


def zstd_bound(frame: memoryview) -> int:
    """Return how many bytes zstd inflates to at most (RFC 8878); frames may follow one another."""
    return _bounded(_zstd_bound, frame)


def lz4_bound(frame: memoryview) -> int:
    """Return how many bytes a frame of lz4 inflates to at most."""
    return _bounded(_lz4_bound, frame)


def gzip_bound(member: memoryview) -> int:
    """Return how many bytes gzip inflates to: its last field says it (RFC 1952)."""
    return _bounded(lambda data: int.from_bytes(data[-4:], "little"), member)


def snappy_bound(data: memoryview) -> int:
    """Return how many bytes snappy inflates to, raw or in the framing of Java's library."""
    return _bounded(_snappy_bound, data)


def _bounded(bound: Callable[[memoryview], int], data: memoryview) -> int:
    try:
        return min(bound(data), INFLATED_BATCH_BYTES)
    except (struct.error, IndexError, ValueError):
        return INFLATED_BATCH_BYTES


def _zstd_bound(data: memoryview) -> int:
    position = total = 0
    for _ in range(_BLOCKS_WALKED):
        if position >= len(data):
            return total
        (magic,) = struct.unpack_from("<I", data, position)
        if magic != _ZSTD_MAGIC:
            raise ValueError("no frame that is known")
        size, position = _zstd_frame(data, position + 4)
        total += size
    raise ValueError("too many frames")


def _zstd_frame(data: memoryview, position: int) -> tuple[int, int]:
    """Return what a frame inflates to at most, and the position behind it."""
    descriptor = data[position]
    is_single = descriptor >> 5 & 1
    content_size = _ZSTD_CONTENT_SIZES[descriptor >> 6] or is_single
    position += 1 + (not is_single) + _ZSTD_DICTIONARY_ID_SIZES[descriptor & 3]
    stated = int.from_bytes(data[position : position + content_size], "little")
    stated += 256 if content_size == 2 else 0
    position += content_size
    blocks = 0
    for _ in range(_BLOCKS_WALKED):
        header = int.from_bytes(data[position : position + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        blocks += size if kind in (_ZSTD_RAW, _ZSTD_RUN) else _ZSTD_BLOCK_BYTES
        position += 3 + (1 if kind == _ZSTD_RUN else size)
        if position > len(data):
            raise ValueError("a block ends outside of the frame")
        if last:
            has_checksum = descriptor >> 2 & 1
            return min(blocks, stated) if content_size else blocks, position + 4 * has_checksum
    raise ValueError("too many blocks")


def _lz4_bound(data: memoryview) -> int:
    magic, flags, descriptor = struct.unpack_from("<IBB", data)
    if magic != _LZ4_MAGIC:
        raise ValueError("no frame that is known")
    largest = 1 << (8 + 2 * (descriptor >> 4 & 7))
    position = 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    total = 0
    for _ in range(_BLOCKS_WALKED):
        (size,) = struct.unpack_from("<I", data, position)
        if not size:
            return total
        stored = size & ~_LZ4_STORED
        total += stored if size & _LZ4_STORED else min(largest, _LZ4_RATIO * stored)
        position += 4 + stored + 4 * (flags >> 4 & 1)
    raise ValueError("too many blocks")


def _snappy_bound(data: memoryview) -> int:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _varint(data)
    position, total = XERIAL_HEADER_SIZE, 0
    for _ in range(_BLOCKS_WALKED):
        if position >= len(data):
            return total
        size = int.from_bytes(data[position : position + 4], "big")
        total += _varint(data[position + 4 :])
        position += 4 + size
    raise ValueError("too many blocks")


def _varint(data: memoryview) -> int:
    value = 0
    for number in range(5):
        byte = data[number]
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value
    raise ValueError("a size of more than 32 bits")


_KAFKA: Final[dict[int, Callable[[memoryview], int]]] = {
    1: gzip_bound,
    2: snappy_bound,
    3: lz4_bound,
    4: zstd_bound,
}
