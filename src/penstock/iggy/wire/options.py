"""Typed key-value entries: the options of a resource, and the user headers of a message."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeAlias

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import Field, Reader, read_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.session import Buffer

ENTRIES_MAX: Final = 1024
BLOCK_SIZE_MAX: Final = 100_000
_ITEM_SIZE_MAX: Final = 255
_LENGTH: Final = struct.Struct("<I")


class ValueKind(IntEnum):
    """What an entry's key or value is; numbers are little-endian."""

    RAW = 1
    STRING = 2
    BOOL = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    INT128 = 8
    UINT8 = 9
    UINT16 = 10
    UINT32 = 11
    UINT64 = 12
    UINT128 = 13
    FLOAT32 = 14
    FLOAT64 = 15


class Typed(NamedTuple):
    """A key or a value: 1 to 255 bytes and what they mean."""

    kind: ValueKind
    data: bytes

    @classmethod
    def text(cls, value: str) -> Typed:
        """A string."""
        return cls(ValueKind.STRING, value.encode())

    @classmethod
    def u64(cls, value: int) -> Typed:
        """A 64-bit number."""
        return cls(ValueKind.UINT64, value.to_bytes(8, "little"))

    @classmethod
    def u32(cls, value: int) -> Typed:
        """A 32-bit number."""
        return cls(ValueKind.UINT32, value.to_bytes(4, "little"))

    @classmethod
    def boolean(cls, value: bool) -> Typed:  # the value itself, not a switch
        """A truth value."""
        return cls(ValueKind.BOOL, bytes((value,)))

    def as_text(self) -> str:
        """The string; raises IggyError where it is none."""
        if self.kind is not ValueKind.STRING:
            raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{self.kind.name}, not a string")
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            raise IggyError(ErrorCode.INVALID_UTF8, str(error)) from error


class Entry(NamedTuple):
    """One key and its value."""

    key: Typed
    value: Typed


def read_entries(reader: Reader) -> list[Entry]:
    """Read entries until the block ends; raises IggyError."""
    entries = []
    while reader.remaining:
        entries.append(
            Entry(
                _read_typed(reader, ErrorCode.INVALID_HEADER_KEY),
                _read_typed(reader, ErrorCode.INVALID_HEADER_VALUE),
            )
        )
    return entries


def encode_entries(entries: Iterable[Entry]) -> bytearray:
    """Return the bytes of a block of entries."""
    out = bytearray()
    for entry in entries:
        for item in entry:
            out.append(item.kind)
            out += _LENGTH.pack(len(item.data)) + item.data
    return out


def decode_options(block: Buffer) -> dict[str, Typed]:
    """Read a block of options, whose keys are strings and differ; raises IggyError."""
    if len(block) > BLOCK_SIZE_MAX:
        raise IggyError(ErrorCode.OPTIONS_BLOCK_TOO_LARGE, f"{len(block)} bytes")
    options: dict[str, Typed] = {}
    for key, value in read_entries(Reader(block)):
        name = key.as_text()
        if name in options or len(options) == ENTRIES_MAX:
            raise IggyError(ErrorCode.INVALID_OPTION_VALUE, f"{name!r} is one too many")
        options[name] = value
    return options


def encode_options(options: dict[str, Typed]) -> bytearray:
    """Return the bytes of a block of options."""
    return encode_entries(Entry(Typed.text(name), value) for name, value in options.items())


Options: TypeAlias = Annotated[
    dict[str, Typed],
    Field(
        lambda reader: decode_options(reader.rest()),
        lambda out, options: out.extend(encode_options(options)),
    ),
]
"""Options that fill the rest of a message."""

SizedOptions: TypeAlias = Annotated[
    dict[str, Typed],
    Field(
        lambda reader: decode_options(reader.take(reader.number(_LENGTH))),
        lambda out, options: _write_sized(out, encode_options(options)),
    ),
]
"""Options behind the length of their block."""


def _read_typed(reader: Reader, error: ErrorCode) -> Typed:
    kind = read_kind(reader, ValueKind)
    size = reader.number(_LENGTH)
    if not 1 <= size <= _ITEM_SIZE_MAX:
        raise IggyError(error, f"{size} bytes")
    return Typed(kind, bytes(reader.take(size)))


def _write_sized(out: bytearray, data: bytearray) -> None:
    out += _LENGTH.pack(len(data)) + data
