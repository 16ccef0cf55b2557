"""How many bytes a compressed body holds at most, from what its frame says, without inflating it.

Codecs write their data in blocks, each of which has a size of its own and a largest one inflated.
Whoever inflates holds the body to this bound, so that it may be reserved before. The blocks are
walked in compiled functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.limits import INFLATED_BATCH_BYTES
from penstock.log.header import ATTRIBUTE_COMPRESSION, HEADER_SIZE, Magic, read_header
from penstock.records.message_sets import layout
from penstock.records.pulsar.entry import MalformedEntryError, parse_entry

if TYPE_CHECKING:
    from penstock.records.columns import Bytes
    from penstock.session import Buffer

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER_SIZE: Final = 16


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
    from penstock.records.blocks import walk_zstd  # noqa: PLC0415  # compiled

    return _bounded(partial(_walked, walk_zstd), frame)


def lz4_bound(frame: memoryview) -> int:
    """Return how many bytes a frame of lz4 inflates to at most."""
    from penstock.records.blocks import walk_lz4  # noqa: PLC0415  # compiled

    return _bounded(partial(_walked, walk_lz4), frame)


def gzip_bound(member: memoryview) -> int:
    """Return how many bytes gzip inflates to: its last field says it (RFC 1952)."""
    return _bounded(lambda data: int.from_bytes(data[-4:], "little"), member)


def snappy_bound(data: memoryview) -> int:
    """Return how many bytes snappy inflates to, raw or in the framing of Java's library."""
    return _bounded(_snappy_bound, data)


def _bounded(bound: Callable[[memoryview], int], data: memoryview) -> int:
    try:
        return min(bound(data), INFLATED_BATCH_BYTES)
    except (IndexError, ValueError):
        return INFLATED_BATCH_BYTES


def _snappy_bound(data: memoryview) -> int:
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _varint(data)
    from penstock.records.blocks import walk_xerial  # noqa: PLC0415  # compiled

    return _walked(walk_xerial, data[XERIAL_HEADER_SIZE:])


def _walked(walk: Callable[[Bytes], int], data: memoryview) -> int:
    from penstock.records.columns import as_bytes  # noqa: PLC0415  # numpy

    bound = walk(as_bytes(data))
    if bound < 0:
        raise ValueError("no frame that is known, or too many blocks")
    return bound


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
