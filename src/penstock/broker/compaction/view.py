"""What a compacted view of a log leaves out, while ordinary readers still find it there.

That is what compaction on request has to keep for a subscription: Pulsar writes a second, compacted
ledger, and here is one bit for each message.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.bitmaps import span

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD: Final = struct.Struct(">Bqq")
_VERSION: Final = 1
_STEP: Final = 65_536
"""Offsets of which it is known whether anything is left: one look at each would take too long."""
_STEP_BYTES: Final = _STEP // 8
_ALL_LEFT_OUT: Final = b"\xff" * _STEP_BYTES


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
        places = range(_HEAD.size, len(self.state), _STEP_BYTES)
        self._steps = [
            number
            for number, place in enumerate(places)
            if not self.state.startswith(_ALL_LEFT_OUT, place)
        ]
        """Those of which something is left, and the last one, where it is no whole one."""

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
        if not self.start < end <= self.end:
            return end
        behind = bisect_left(self._steps, -(-(end - self.start) // _STEP))
        # What the first of them has left may lie at `end` or behind it, and not so the next one's.
        for number in reversed(self._steps[max(0, behind - 2) : behind]):
            start = self.start + number * _STEP
            stop = min(end, start + _STEP)
            left = ~self.left_out(start, stop) & span(0, stop - start)
            if left:
                return start + left.bit_length()
        return self.start

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
