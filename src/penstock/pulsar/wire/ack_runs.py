"""Runs of plain ACK frames, which are taken as one command.

Consumers acknowledge message by message, so this is the frame that comes most often. Where encoded
messages of protobuf stand one behind another, they are one message that has the items of all in its
repeated fields: the commands of a run together are one ACK of all its message ids, in their order.

    u32 n - 4 | u32 n - 8 | type = ACK | ack: n - 12 bytes (consumer_id | ack_type | message_id)

A plain ACK frame of n bytes has nothing else, in this order, so that those of one consumer and one
size differ in nothing but the message id. An ACK that wants an answer is none: its request id
follows.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from penstock.limits import PULSAR_ACK_RUN_BYTES

_CONSUMER_AT: Final = 12
_ONE_BYTE_LENGTH_MAX: Final = 127
_NO_HEAD: Final = b"\xff"
"""No frame begins like this: it would be over its limit."""

_FIRST: Final = re.compile(
    rb"\0\0\0.\0\0\0.\x08\x0a\x52.(\x08[\x80-\xff]{0,9}[\0-\x7f]\x10[\0\1]\x1a)", re.DOTALL
)
_SIZES: Final = struct.Struct(">II")


def run_size(head: memoryview) -> int:
    """Return the size of the whole plain ACK frames of one consumer and one kind that `head` begins
    with, as many as are taken together; 0 where it begins with none.
    """
    first = _FIRST.match(head)
    if first is None:
        return 0
    consumer: bytes = first[1]
    data = bytes(head[:PULSAR_ACK_RUN_BYTES])
    heads: dict[int, bytes] = {}
    end = 0
    while end + _SIZES.size < len(data):
        size = 4 + data[end + 3]
        if size not in heads:
            heads[size] = _head(size, consumer)
        if end + size > len(data) or not data.startswith(heads[size], end):
            break
        end += size
    return end


def joined(run: memoryview) -> bytes:
    """Return the commands of a run as one encoded command."""
    data = bytes(run)
    commands: list[bytes] = []
    end = 0
    while end + _SIZES.size < len(data):
        start, end = end + _SIZES.size, end + 4 + data[end + 3]
        commands.append(data[start:end])
    return b"".join(commands)


def _head(size: int, consumer: bytes) -> bytes:
    """Return what stands before the message id in a plain ACK frame of `size` bytes."""
    ack_size = size - _CONSUMER_AT
    id_size = ack_size - len(consumer) - 1
    if ack_size > _ONE_BYTE_LENGTH_MAX or id_size < 0:
        return _NO_HEAD
    command = bytes((0x08, 0x0A, 0x52, ack_size, *consumer, id_size))
    return _SIZES.pack(size - 4, size - 8) + command
