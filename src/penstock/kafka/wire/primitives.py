"""What the generated encoders and decoders call: varints, tagged fields and the one error."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any
from uuid import UUID

from penstock.session import Buffer, PeerError

NO_UUID = UUID(int=0)
"""The protocol's "no id": all zeros."""


class MalformedMessageError(PeerError):
    """These bytes are no message of Kafka's protocol. The only error that decoding raises."""


class TooManyElementsError(MalformedMessageError):
    """All arrays have more elements together than the decoder was to build."""


def bad_length(field: str, length: int, left: int) -> MalformedMessageError:
    """The error for a length or count of `field` that is negative or more than is left."""
    return MalformedMessageError(f"{field}: length {length} with {left} bytes left")


def too_many(field: str, count: int) -> TooManyElementsError:
    """The error for an array that makes the message larger than a decoder builds."""
    return TooManyElementsError(f"{field}: with {count} more there are too many elements")


def bad_tag_size(tag: int, size: int) -> MalformedMessageError:
    """The error for a tagged field whose contents do not fill the size it was given."""
    return MalformedMessageError(f"tagged field {tag} does not fill its {size} bytes")


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """The UUID of 16 bytes; cached, for the same few topic ids come with every fetch."""
    return UUID(bytes=raw) if any(raw) else NO_UUID


def encode_unsigned_varint(value: int) -> bytes:
    """`value` in base 128, little end first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


UNSIGNED_VARINTS = [encode_unsigned_varint(value) for value in range(1024)]


def unsigned_varint(value: int) -> bytes:
    """`value` in base 128, little end first, from a table where it is small."""
    return UNSIGNED_VARINTS[value] if value < 1024 else encode_unsigned_varint(value)


def long_varint(data: Buffer, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose `first` byte says that more follow.

    Returns the value and the position after it. Raises IndexError at the end of `data` and
    MalformedMessageError where the value is wider than 32 bits.
    """
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise MalformedMessageError("a variable-length integer is wider than 32 bits")


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The unsigned varint at `position`, and the position after it. Raises as `long_varint`."""
    first = data[position]
    if first < 128:
        return first, position + 1
    return long_varint(data, position + 1, first)


def skip_tagged_fields(data: Buffer, position: int, count: int) -> int:
    """Pass over tagged fields, none of which is known; `count` is the first byte of their count.

    Returns the position after them. Raises as `long_varint`.
    """
    if count > 127:
        count, position = long_varint(data, position, count)
    end = len(data)
    for _ in range(count):
        tag, position = read_varint(data, position)
        size, position = read_varint(data, position)
        if size > end - position:
            raise bad_length(f"tagged field {tag}", size, end - position)
        position += size
    return position


class ArrayStructs(dict[int, Callable[..., Any]]):
    """Packers or unpackers of `n` numbers of one type, by `n`; the small ones are kept."""

    def __init__(self, code: str, method: str) -> None:
        super().__init__()
        self._code = code
        self._method = method

    def __missing__(self, count: int) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(Struct(f">{count}{self._code}"), self._method)
        if count <= 256:
            self[count] = function
        return function


class Rows:
    """Elements of an array of structs of numbers only, as versions with tagged fields have them:
    all are as long, and each ends with its tagged fields, which are none.
    """

    __slots__ = ("_content", "_row_bytes")

    def __init__(self, content: Buffer, row_bytes: int) -> None:
        self._content = content
        self._row_bytes = row_bytes

    def __len__(self) -> int:
        return len(self._content) // self._row_bytes

    def packed(self, *, tagged: bool) -> Buffer:
        """Return all elements; `tagged` says whether they keep their tagged fields."""
        if tagged:
            return self._content
        without = Struct(f"{self._row_bytes - 1}sx").iter_unpack(self._content)
        return b"".join([row for (row,) in without])
