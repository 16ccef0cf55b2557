"""Puts answers that are found side by side into the order of their requests.

What a request and its answer hold until then is counted in the node's memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from penstock import limits
from penstock.memory import Memory
from penstock.session import Buffers, Part, in_memory


class Slot:
    """The place of one request's answer in the order."""

    __slots__ = ("answer_bytes", "done", "parts", "request_bytes")

    def __init__(self, request_bytes: int) -> None:
        self.request_bytes = request_bytes
        self.answer_bytes = 0
        """What is counted of `parts`: an answer that is next in order leaves at once."""
        self.parts: Buffers = ()
        self.done = False


class Answers:
    """The answers that one connection still owes."""

    __slots__ = (
        "_answered_bytes",
        "_memory",
        "_ready",
        "_slots",
        "_write",
        "request_bytes",
        "waiting_bytes",
    )

    def __init__(self, write: Callable[[Buffers], None], memory: Memory) -> None:
        self._slots: deque[Slot] = deque()
        self._write = write
        self._memory = memory
        self.request_bytes = 0
        """Of requests that are not answered."""
        self.waiting_bytes = 0
        """Of answers that wait for others before them."""
        self._ready: list[Part] = []
        """Of those that are settled and next in order, until `write_ready`."""
        self._answered_bytes = 0
        """Of the requests that these answer."""

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def are_too_many(self) -> bool:
        """Whether the client is to take some before it asks more."""
        return bool(self._slots) and (
            len(self._slots) >= limits.REQUESTS_IN_FLIGHT
            or self.request_bytes >= limits.REQUEST_BYTES_IN_FLIGHT
            or self.waiting_bytes >= limits.WRITE_BUFFER_BYTES
        )

    def reserve(self, request_bytes: int) -> Slot:
        """Keep a place for an answer to come."""
        slot = Slot(request_bytes)
        self._slots.append(slot)
        self.request_bytes += request_bytes
        self._memory.receiving.take(request_bytes)
        return slot

    def settle(self, slot: Slot, parts: Buffers | None) -> None:
        """Give the answer for a place; it is written with the next `write_ready`."""
        slot.done = True
        if parts is not None:
            slot.parts = parts
        slots = self._slots
        if slot is not slots[0]:
            self._hold(slot)
            return
        slots.popleft()
        self._answered_bytes += slot.request_bytes
        self._ready += slot.parts
        while slots and slots[0].done:
            slot = slots.popleft()
            self._answered_bytes += slot.request_bytes
            if slot.answer_bytes:
                self._count_answer(-slot.answer_bytes)
            self._ready += slot.parts

    def write_ready(self) -> None:
        """Write those that were settled and are next in order: all that are, in one step."""
        if self._answered_bytes:
            self._count_request(-self._answered_bytes)
            self._answered_bytes = 0
        if self._ready:
            ready, self._ready = self._ready, []
            self._write(ready)

    def add(self, parts: Buffers) -> None:
        """Give an answer that needed no waiting."""
        if not self._slots:
            self._write(parts)
            return
        slot = self.reserve(0)
        slot.parts = parts
        slot.done = True
        self._hold(slot)

    def discard(self) -> None:
        """Nobody takes answers any more; requests run on and are settled."""
        for slot in self._slots:
            slot.parts = ()
            self._count_answer(-slot.answer_bytes)
            slot.answer_bytes = 0

    def abandon(self) -> None:
        """The requests that are not settled yet need not be: some never will."""
        for slot in self._slots:
            self._count_request(-slot.request_bytes)
            slot.request_bytes = 0

    def _hold(self, slot: Slot) -> None:
        slot.answer_bytes = in_memory(slot.parts)
        self._count_answer(slot.answer_bytes)

    def _count_request(self, size: int) -> None:
        self.request_bytes += size
        self._memory.receiving.take(size)

    def _count_answer(self, size: int) -> None:
        self.waiting_bytes += size
        self._memory.answers.take(size)
