"""Which consumer a key belongs to: what `KeyRing` and `KeyRanges` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.session import Buffer


class KeyConsumer(Protocol):
    """What is asked of a consumer."""

    @property
    def name(self) -> str: ...

    @property
    def key_ranges(self) -> Sequence[tuple[int, int]]: ...


ConsumerT = TypeVar("ConsumerT", bound=KeyConsumer)


class KeyOwners(ABC, Generic[ConsumerT]):
    """Slots of keys, and the consumers that they belong to. The first of them takes a tenth of a
    second, unless `penstock.records.prepare` was awaited.
    """

    def __init__(self) -> None:
        from penstock.records.pulsar.sticky_key import sticky_hash  # noqa: PLC0415 (loads numpy)

        self._hash = sticky_hash

    def slot(self, entry: Buffer) -> int:
        """Return the slot of the key of a Pulsar entry."""
        return self._slot(self._hash(entry))

    @abstractmethod
    def _slot(self, hashed: int) -> int:
        """Return the slot of a key's hash, which is not NO_SLOT."""

    @abstractmethod
    def owner(self, slot: int) -> ConsumerT | None:
        """Return whom a slot belongs to."""

    @abstractmethod
    def check(self, consumer: ConsumerT) -> None:
        """Raise KeyRangesError where a consumer can't come."""

    @abstractmethod
    def add(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        """A consumer came; return the slots that are its own now, as ranges, ends excluded."""

    @abstractmethod
    def remove(self, consumer: ConsumerT) -> Sequence[tuple[int, int]]:
        """A consumer left; return the slots that may have another owner now, in the same way."""
