"""What a compacted view of a log leaves out, while ordinary readers still find it there.

That is what compaction on request has to keep for a subscription: Pulsar writes a second, compacted
ledger, and here is one bit for each message.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.bitmaps import span

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD: Final = struct.Struct(">Bqq")
_VERSION: Final = 1
_STEP: Final = 65_536
"""Offsets that are looked at together for the last one that is left."""


class CompactedView:
    """Knows the offsets from `start` up to `end`; what lies behind is in the view as it is.

    `state` is all of it, as a checkpoint keeps it. It does not change.
    """

    def __init__(self, state: bytes = b"") -> None:
        is_known = len(state) >= _HEAD.size and state[0] == _VERSION
        self.state = state if is_known else b""
        self.start = self.end = 0
        if is_known:
            _, self.start, self.end = _HEAD.unpack_from(state)
        self._bits = memoryview(self.state)[_HEAD.size :]

    def left_out(self, start: int, end: int) -> int:
        """Return which messages of a batch are left out: bit i stands for offset `start` + i."""
        low, high = max(start, self.start), min(end, self.end)
        if low >= high:
            return 0
        first = (low - self.start) // 8
        stored = self._bits[first : -(-(high - self.start) // 8)]
        bits = int.from_bytes(stored, "little") >> (low - self.start - first * 8)
        return (bits & span(0, high - low)) << (low - start)

    def end_of_what_is_left(self, end: int) -> int:
        """Return the highest end, up to this one, right before which nothing is left out."""
        while self.start < end <= self.end:
            start = max(end - _STEP, self.start)
            left = ~self.left_out(start, end) & span(0, end - start)
            if left:
                return start + left.bit_length()
            end = start
        return end

    def extended(self, start: int, end: int, found: Iterable[tuple[int, bytes]]) -> CompactedView:
        """Return the view from `start` up to `end` that leaves out what was found besides: each the
        offset of its first bit, and bits as of `Cleaner.look_over`.
        """
        bits = self.left_out(start, self.end)
        for first, more in found:
            bits |= int.from_bytes(more, "little") << (first - start)
        bits &= span(0, end - start)
        head = _HEAD.pack(_VERSION, start, end)
        return CompactedView(head + bits.to_bytes(-(-(end - start) // 8), "little"))
