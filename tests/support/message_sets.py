"""Kafka's message sets of magic 0 and 1, written and read field by field (KIP-31, KIP-32)."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import cramjam
import xxhash
from aiokafka.codec import snappy_encode

NO_TIME: Final = -1
GZIP, SNAPPY, LZ4 = 1, 2, 3


class Message(NamedTuple):
    """One message; the time is milliseconds since 1970, and is there from magic 1 on."""

    value: bytes | None
    key: bytes | None = None
    time: int = NO_TIME
    offset: int = 0
    attributes: int = 0


def nullable(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data


def write(magic: int, message: Message) -> bytes:
    """One message of a set, its offset in front."""
    time = struct.pack(">q", message.time) if magic else b""
    body = struct.pack(">bb", magic, message.attributes) + time
    body += nullable(message.key) + nullable(message.value)
    return framed(message.offset, body)


def framed(offset: int, body: bytes) -> bytes:
    """What follows a message's checksum, with all that comes before."""
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def message_set(magic: int, messages: Sequence[Message]) -> bytes:
    return b"".join(write(magic, message) for message in messages)


def lz4(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress(data))


def lz4_of_old_clients(data: bytes) -> bytes:
    """Their header's checksum covers the four bytes in front of it too (KAFKA-3160)."""
    frame = bytearray(lz4(data))
    frame[6] = xxhash.xxh32_intdigest(bytes(frame[:6])) >> 8 & 0xFF
    return bytes(frame)


class Squeeze(NamedTuple):
    """A way to compress a set, with its codec's number."""

    codec: int
    compress: Callable[[bytes], bytes]


SQUEEZES: Final = {
    "gzip": Squeeze(GZIP, gzip.compress),
    "snappy": Squeeze(SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "xerial": Squeeze(SNAPPY, lambda data: snappy_encode(data, xerial_compatible=True)),
    "lz4": Squeeze(LZ4, lz4),
}
OLD_SQUEEZES: Final = SQUEEZES | {"old lz4": Squeeze(LZ4, lz4_of_old_clients)}
"""Those of messages of magic 0."""


def wrapped(magic: int, messages: Sequence[Message], squeeze: Squeeze) -> bytes:
    """A message whose value is a compressed set; its offset is that of the last one in it."""
    value = squeeze.compress(message_set(magic, messages))
    time = max(message.time for message in messages)
    return write(magic, Message(value, None, time, messages[-1].offset, squeeze.codec))


def read(data: bytes) -> list[tuple[int, Message]]:
    """Each message of a set with its magic; what is cut off at the end is left out."""
    found = []
    position = 0
    while position + 12 <= len(data):
        offset, size = struct.unpack_from(">qi", data, position)
        message = data[position + 12 : position + 12 + size]
        position += 12 + size
        if position > len(data):
            break
        crc, magic, attributes = struct.unpack_from(">IBB", message)
        assert crc == zlib.crc32(message[4:]), f"the checksum of the message at {offset}"
        at = 6
        time = NO_TIME
        if magic == 1:
            (time,) = struct.unpack_from(">q", message, at)
            at += 8
        fields = []
        for _ in range(2):
            (length,) = struct.unpack_from(">i", message, at)
            at += 4
            fields.append(None if length < 0 else message[at : at + length])
            at += max(length, 0)
        assert at == len(message)
        found.append((magic, Message(fields[1], fields[0], time, offset, attributes)))
    return found
