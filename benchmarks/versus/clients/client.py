"""What each load generator can do. A client runs one order and then ends with its process."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from versus.order import Done, Order

Begin = Callable[[], float]
"""Tells the measuring process that the load begins; returns the time in seconds."""

STAMP: Final = struct.Struct("<q")
"""When a message was due, at the beginning of its value."""

DEADLINE_SECONDS: Final = 60


class LoadError(Exception):
    """The load can't be carried out; the message says what went wrong."""


class Client(ABC):
    """All methods but `first` prepare, call `begin` once, then do what is measured."""

    def __init__(self, order: Order) -> None:
        self.order = order
        # Not compressible and not constant: no broker may gain by looking at it.
        self.value = bytes(number * 167 % 251 for number in range(order.value_bytes))

    def stamped(self, due_ns: int) -> bytes:
        """A value that says when it was due."""
        return STAMP.pack(due_ns) + self.value[STAMP.size :]

    @abstractmethod
    def first(self) -> None:
        """Connect to a broker that may still be starting and have one message acknowledged."""

    @abstractmethod
    def produce(self, begin: Begin) -> Done:
        """Write to one partition as fast as it goes; all messages are acknowledged at the end."""

    @abstractmethod
    def consume(self, begin: Begin) -> Done:
        """Read one partition from its beginning."""

    @abstractmethod
    def requests(self, begin: Begin) -> Done:
        """Write one message a request with `window` requests under way."""

    @abstractmethod
    def publish(self, begin: Begin) -> Done:
        """Write one message a request by a schedule."""

    @abstractmethod
    def end_to_end(self, begin: Begin) -> Done:
        """Write by a schedule and read at the same time."""

    def transactions(self, begin: Begin) -> Done:  # noqa: ARG002  # most clients have none
        """Commit one transaction after another over a few partitions; times are of each whole."""
        raise LoadError(f"{self.order.protocol} clients have no transactions")

    @abstractmethod
    def many(self, begin: Begin) -> Done:
        """Write to many partitions; `extra["creation_seconds"]` says what making them took."""
