"""Puts answers that are found side by side into the order of their requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from penstock.session import Buffers


class Slot:
    """The place of one request's answer in the order."""

    __slots__ = ("done", "parts", "request_bytes")

    def __init__(self, request_bytes: int) -> None:
        self.request_bytes = request_bytes
        self.parts: Buffers = ()
        self.done = False


class Answers:
    """The answers that one connection still owes."""

    __slots__ = ("_slots", "_write", "request_bytes")

    def __init__(self, write: Callable[[Buffers], None]) -> None:
        self._slots: deque[Slot] = deque()
        self._write = write
        self.request_bytes = 0

    def __len__(self) -> int:
        return len(self._slots)

    def reserve(self, request_bytes: int) -> Slot:
        """Keep a place for an answer to come."""
        slot = Slot(request_bytes)
        self._slots.append(slot)
        self.request_bytes += request_bytes
        return slot

    def settle(self, slot: Slot, parts: Buffers | None) -> None:
        """Give the answer for a place, and write all that are next in order."""
        slot.done = True
        if parts is not None:
            slot.parts = parts
        self._write_in_order()

    def add(self, parts: Buffers) -> None:
        """Give an answer that needed no waiting."""
        if not self._slots:
            self._write(parts)
            return
        slot = self.reserve(0)
        slot.parts = parts
        slot.done = True

    def _write_in_order(self) -> None:
        ready: list[bytes | bytearray | memoryview] = []
        while self._slots and self._slots[0].done:
            slot = self._slots.popleft()
            self.request_bytes -= slot.request_bytes
            ready.extend(slot.parts)
        if ready:
            self._write(ready)
