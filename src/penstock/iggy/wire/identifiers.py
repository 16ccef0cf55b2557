"""Who and what a command means: identifiers, consumers, partitioning, polling strategies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Self

from penstock.iggy.wire.errors import ErrorCode, IggyError
from penstock.iggy.wire.fields import as_text, read_kind
from penstock.xxh32 import xxh32

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.iggy.wire.fields import Reader

_NUMERIC: Final = 1
_STRING: Final = 2


@dataclass(frozen=True, slots=True)
class Identifier:
    """A stream, topic, group, consumer or user, by number or by name."""

    value: int | str

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read kind, length and value; raises IggyError."""
        kind, size = reader.take(2)
        if kind not in (_NUMERIC, _STRING):
            raise IggyError(ErrorCode.INVALID_COMMAND, f"an identifier of kind {kind}")
        value = reader.take(size)
        if kind == _NUMERIC and size == 4:
            return cls(int.from_bytes(value, "little"))
        if kind == _STRING and size > 0:
            return cls(as_text(value))
        raise IggyError(ErrorCode.INVALID_FORMAT, f"an identifier of {size} bytes")

    def write(self, out: bytearray) -> None:
        """Append kind, length and value."""
        if isinstance(self.value, int):
            out += bytes((_NUMERIC, 4)) + self.value.to_bytes(4, "little")
        else:
            encoded = self.value.encode()
            out += bytes((_STRING, len(encoded))) + encoded


class ConsumerKind(IntEnum):
    """Whether an offset belongs to one consumer or to a group."""

    CONSUMER = 1
    GROUP = 2


@dataclass(frozen=True, slots=True)
class Consumer:
    """Whose offset is meant."""

    kind: ConsumerKind
    id: Identifier

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read kind and identifier; raises IggyError."""
        return cls(read_kind(reader, ConsumerKind), Identifier.read(reader))

    def write(self, out: bytearray) -> None:
        """Append kind and identifier."""
        out.append(self.kind)
        self.id.write(out)


class PartitioningKind(IntEnum):
    """How the partition of a send is chosen."""

    BALANCED = 1
    PARTITION_ID = 2
    MESSAGES_KEY = 3


_PARTITIONING_SIZES: Final = {
    PartitioningKind.BALANCED: range(1),
    PartitioningKind.PARTITION_ID: range(4, 5),
    PartitioningKind.MESSAGES_KEY: range(1, 256),
}


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partition of a send: any, the one of this number, or the one of this key."""

    kind: PartitioningKind
    value: bytes = b""
    hash: Callable[[bytes], int] = xxh32
    """What makes a number of a key; its remainder by the number of partitions is the partition."""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read kind, length and value; raises IggyError."""
        kind = read_kind(reader, PartitioningKind)
        (size,) = reader.take(1)
        if size not in _PARTITIONING_SIZES[kind]:
            raise IggyError(ErrorCode.INVALID_KEY_VALUE_LENGTH, f"{kind.name} of {size} bytes")
        return cls(kind, bytes(reader.take(size)))

    def write(self, out: bytearray) -> None:
        """Append kind, length and value."""
        out += bytes((self.kind, len(self.value))) + self.value

    @classmethod
    def partition(cls, partition_id: int) -> Self:
        """The partition of this number."""
        return cls(PartitioningKind.PARTITION_ID, partition_id.to_bytes(4, "little"))

    @property
    def partition_id(self) -> int:
        """The number, where the kind says that it is one."""
        assert self.kind is PartitioningKind.PARTITION_ID
        return int.from_bytes(self.value, "little")


class PollingKind(IntEnum):
    """Where a poll begins."""

    OFFSET = 1
    TIMESTAMP = 2
    FIRST = 3
    LAST = 4
    NEXT = 5


@dataclass(frozen=True, slots=True)
class PollingStrategy:
    """Where a poll begins: `value` is an offset, or microseconds since 1970, or unused."""

    kind: PollingKind
    value: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read kind and value; raises IggyError."""
        kind = read_kind(reader, PollingKind)
        return cls(kind, int.from_bytes(reader.take(8), "little"))

    def write(self, out: bytearray) -> None:
        """Append kind and value."""
        out.append(self.kind)
        out += self.value.to_bytes(8, "little")
