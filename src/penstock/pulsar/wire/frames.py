"""Frames: a command, and with SEND and MESSAGE an entry behind it that is never copied here.

    simple    u32 total size | u32 command size | BaseCommand
    payload   the same, then the entry: [0e01 u32 crc32c] u32 metadata size | metadata | payload
              to clients that asked for it: 0e02 u32 size | BrokerEntryMetadata before the entry

Sizes are big-endian, and the total counts what comes after itself. What is called one frame here
may be a run of them (`penstock.pulsar.wire.ack_runs`).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from penstock.limits import PULSAR_COMMAND_BYTES, PULSAR_COMMAND_PARTS
from penstock.pulsar.wire import ack_runs
from penstock.pulsar.wire.pulsar_api_pb2 import BaseCommand
from penstock.records.pulsar.metadata_pb2 import BrokerEntryMetadata
from penstock.session import PeerError

FRAME_PADDING: Final = 10 * 1024
"""Bytes that a frame may have beyond the largest message, for its command and metadata."""

_WITHOUT_TEXT: Final = frozenset(
    {
        BaseCommand.SEND,
        BaseCommand.FLOW,
        BaseCommand.PING,
        BaseCommand.ACK,
        BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    }
)
"""Commands that need no look at their text, for they have none that is read: the frequent ones, and
lists of message ids."""

_TOTAL: Final = struct.Struct(">I")
_SIZES: Final = struct.Struct(">II")
_ENTRY_METADATA: Final = struct.Struct(">HI")
_ENTRY_METADATA_MAGIC: Final = 0x0E02


class Frame(NamedTuple):
    """One frame's command and what follows it: a view of the frame, empty for simple commands."""

    command: BaseCommand
    entry: memoryview


def frame_size(head: memoryview, message_size_max: int) -> int | None:
    """Return the size of the frame or run that `head` begins with, or None while it is not known.

    Raises PeerError when the frame is over `message_size_max` plus padding, before it is read.
    """
    if len(head) < _TOTAL.size:
        return None
    (total,) = _TOTAL.unpack_from(head)
    limit = message_size_max + FRAME_PADDING
    if not _SIZES.size - _TOTAL.size <= total <= limit:
        raise PeerError(f"a Pulsar frame says it has {total} bytes and {limit} are allowed")
    size = _TOTAL.size + int(total)
    return max(size, ack_runs.run_size(head)) if size < len(head) else size


def parse_frame(frame: memoryview, *, is_answer: bool = False) -> Frame:
    """Split a whole frame or run; raises PeerError where it holds no command, or a large one.

    An answer may be as large as a frame: who asked keeps nobody else waiting, and a broker lists
    all topics of a namespace in one.
    """
    if len(frame) < _SIZES.size:
        raise PeerError("a Pulsar frame is too short for a command")
    total, command_size = _SIZES.unpack_from(frame)
    if _TOTAL.size + total < len(frame):
        return Frame(_parse(ack_runs.joined(frame), PULSAR_COMMAND_PARTS), frame[len(frame) :])
    end = _SIZES.size + command_size
    if command_size > PULSAR_COMMAND_BYTES and not is_answer:
        raise PeerError(
            f"a Pulsar command has {command_size} bytes and {PULSAR_COMMAND_BYTES} are allowed"
        )
    if end > len(frame):
        raise PeerError(f"a Pulsar command of {command_size} bytes is cut off by its frame")
    parts_max = command_size if is_answer else PULSAR_COMMAND_PARTS
    return Frame(_parse(frame[_SIZES.size : end], parts_max), frame[end:])


def _parse(encoded: bytes | memoryview, parts_max: int) -> BaseCommand:
    try:
        command = BaseCommand.FromString(encoded)  # type: ignore[arg-type]
    except DecodeError as error:
        raise PeerError(f"a Pulsar command can't be parsed: {error}") from error
    if command.type not in _WITHOUT_TEXT:
        _check_text(command, parts_max)
    return command


def _check_text(command: BaseCommand, parts_max: int) -> None:
    # Messages of proto2 are parsed without a look at their text; what is no UTF-8 comes as bytes.
    parts: list[Message] = [command]
    for message in parts:  # Those that are found in one come after it.
        for field, value in message.ListFields():
            is_text = field.type == FieldDescriptor.TYPE_STRING
            if field.message_type is None and not is_text:
                continue
            values = value if field.is_repeated else (value,)
            if field.is_repeated and len(parts) + len(values) > parts_max:
                raise PeerError(f"a Pulsar command has over {parts_max} parts")
            if not is_text:
                parts.extend(values)
            elif not all(isinstance(text, str) for text in values):
                raise PeerError(f"{field.full_name} in a Pulsar command is not UTF-8")


def encode_command(command: BaseCommand) -> bytes:
    """Return a simple command's frame."""
    return encode_payload_command(command, 0)


def encode_entry_metadata(index: int, broker_timestamp: int | None) -> bytes:
    """Return broker entry metadata: the index of an entry's last message, and when it was stored
    where that is known (PIP-70).

    It stands between the command and the entry.
    """
    metadata = BrokerEntryMetadata(index=index, broker_timestamp=broker_timestamp)
    encoded = metadata.SerializeToString()
    return _ENTRY_METADATA.pack(_ENTRY_METADATA_MAGIC, len(encoded)) + encoded


def encode_payload_command(command: BaseCommand, entry_size: int) -> bytes:
    """Return what stands in front of an entry of `entry_size` bytes; the entry follows as it is."""
    encoded = command.SerializeToString()
    size = len(encoded)
    return _SIZES.pack(_TOTAL.size + size + entry_size, size) + encoded
