"""How single values are read and written: little-endian, every length checked before it is used.

A message (see `message`) has annotations that come from this module, so that its declaration
reads like the protocol's own table and serves both directions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
)

from penstock.iggy.wire.errors import ErrorCode, IggyError

if TYPE_CHECKING:
    from penstock.session import Buffer

Kind = TypeVar("Kind", bound=IntEnum)

NAME_SIZE_MAX: Final = 255
_U32_MAX: Final = (1 << 32) - 1

_U8: Final = struct.Struct("<B")
_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_F32: Final = struct.Struct("<f")
_OPTIONAL_U32: Final = struct.Struct("<BI")


class Reader:
    """A cursor over one message; what is too short, or not UTF-8, raises IggyError."""

    def __init__(self, buffer: Buffer) -> None:
        self._view = memoryview(buffer)
        self._position = 0

    @property
    def remaining(self) -> int:
        return len(self._view) - self._position

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes, not copied."""
        end = self._position + size
        if end > len(self._view):
            raise IggyError(ErrorCode.INVALID_COMMAND, f"{size} bytes where {self.remaining} are")
        taken = self._view[self._position : end]
        self._position = end
        return taken

    def rest(self) -> memoryview:
        """Return all that is left, not copied."""
        return self.take(self.remaining)

    def ahead(self) -> memoryview:
        """Return the same without taking it."""
        return self._view[self._position :]

    def number(self, layout: struct.Struct) -> int:
        """Return one number."""
        value: int = layout.unpack(self.take(layout.size))[0]
        return value

    def text(self, size: int) -> str:
        """Return `size` bytes of UTF-8."""
        return as_text(self.take(size))


def as_text(data: memoryview) -> str:
    """Return what these bytes of UTF-8 say; raises IggyError."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise IggyError(ErrorCode.INVALID_UTF8, str(error)) from error


class Field(NamedTuple):
    """How one kind of value is read and written; of a list, besides, how its items are.

    A list begins with what `head` makes of its length.
    """

    read: Callable[[Reader], Any]
    write: Callable[[bytearray, Any], None]
    item: Field | None = None
    head: Callable[[int], bytes] = lambda _: b""


class Block(Protocol):
    """A building block of several values that reads and writes itself."""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one."""

    def write(self, out: bytearray) -> None:
        """Append this one."""


def _number(layout: struct.Struct) -> Field:
    return Field(
        lambda reader: reader.number(layout), lambda out, value: out.extend(layout.pack(value))
    )


def _sized_text(length: struct.Struct) -> Field:
    def write(out: bytearray, value: str) -> None:
        encoded = value.encode()
        out += length.pack(len(encoded)) + encoded

    return Field(lambda reader: reader.text(reader.number(length)), write)


def _read_name(reader: Reader) -> str:
    size = reader.number(_U8)
    if size == 0:
        raise IggyError(ErrorCode.INVALID_FORMAT, "an empty name")
    return reader.text(size)


def _write_bytes(out: bytearray, value: Buffer) -> None:
    out += _U32.pack(len(value)) + value


def _read_optional_u32(reader: Reader) -> int | None:
    present, value = _OPTIONAL_U32.unpack(reader.take(_OPTIONAL_U32.size))
    return int(value) if present == 1 else None


def _write_optional_u32(out: bytearray, value: int | None) -> None:
    out += _OPTIONAL_U32.pack(value is not None, value or 0)


U8: TypeAlias = Annotated[int, _number(_U8)]
U16: TypeAlias = Annotated[int, _number(_U16)]
u32: Final = _number(_U32)
U32: TypeAlias = Annotated[int, u32]
U64: TypeAlias = Annotated[int, _number(_U64)]
F32: TypeAlias = Annotated[float, _number(_F32)]
Bool: TypeAlias = Annotated[
    bool, Field(lambda reader: reader.number(_U8) == 1, lambda out, value: out.append(value))
]
OptionalU32: TypeAlias = Annotated[int | None, Field(_read_optional_u32, _write_optional_u32)]
"""A flag byte, then the number, which is 0 where the flag says that there is none."""
Name: TypeAlias = Annotated[str, Field(_read_name, _sized_text(_U8).write)]
"""1 to 255 bytes behind one length byte."""
ShortText: TypeAlias = Annotated[str, _sized_text(_U8)]
Text: TypeAlias = Annotated[str, _sized_text(_U32)]
LongBytes: TypeAlias = Annotated[
    bytes, Field(lambda reader: bytes(reader.take(reader.number(_U32))), _write_bytes)
]
ShortBytes: TypeAlias = Annotated[
    bytes,
    Field(
        lambda reader: bytes(reader.take(reader.number(_U8))),
        lambda out, value: out.extend(_U8.pack(len(value)) + value),
    ),
]
RestView: TypeAlias = Annotated[
    memoryview, Field(lambda reader: reader.rest(), lambda out, value: out.extend(value))
]
"""All the rest of the message, not copied."""


def unsaid(value: object) -> Field:
    """What this dialect has no words for: nothing is written, and `value` is read."""
    return Field(lambda _: value, lambda *_: None)


u32_from_one: Final = Field(
    lambda reader: reader.number(_U32) - 1,
    lambda out, value: out.extend(_U32.pack((value + 1) & _U32_MAX)),
)
U32FromOne: TypeAlias = Annotated[int, u32_from_one]
"""The number of something that this dialect counts from 1, and the broker from 0.

What 0 stands for on the wire is -1, or 2**32 - 1 where it was written.
"""


def read_kind(reader: Reader, kinds: type[Kind]) -> Kind:
    """Read one byte that says which of `kinds` follows."""
    (number,) = reader.take(1)
    try:
        return kinds(number)
    except ValueError as error:
        raise IggyError(ErrorCode.INVALID_COMMAND, str(error)) from error


def counted(item: Field) -> Field:
    """A u32 count and that many items."""

    def read(reader: Reader) -> list[Any]:
        # An item takes a byte at least, so a count that lies fails before its list grows.
        count = reader.number(_U32)
        if count > reader.remaining:
            raise IggyError(ErrorCode.INVALID_COMMAND, f"{count} items in {reader.remaining} bytes")
        return [item.read(reader) for _ in range(count)]

    def write(out: bytearray, values: list[Any]) -> None:
        out += _U32.pack(len(values))
        for value in values:
            item.write(out, value)

    return Field(read, write, item, _U32.pack)


def to_the_end(item: Field) -> Field:
    """Items one after another until the message ends."""

    def read(reader: Reader) -> list[Any]:
        items = []
        while reader.remaining:
            items.append(item.read(reader))
        return items

    def write(out: bytearray, values: list[Any]) -> None:
        for value in values:
            item.write(out, value)

    return Field(read, write, item)


def block(kind: type[Block]) -> Field:
    """The field of a building block."""
    return Field(kind.read, lambda out, value: value.write(out))
