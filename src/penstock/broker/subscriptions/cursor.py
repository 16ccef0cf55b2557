"""What one subscription has acknowledged of one partition.

A message's position is its offset in the log, so that an acknowledged batch and an acknowledged
message inside a batch are the same thing: a range of offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.broker.subscriptions.bitmaps import (
    BITS,
    BLOCK,
    FULL,
    blocks_between,
    leading_run,
    runs,
    span,
)
from penstock.broker.subscriptions.runs import Runs
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self

_BLOCK_BYTES: Final = BLOCK // 8
_NO_END: Final = 1 << 62
_ONE_BLOCK_BYTES: Final = 320
"""About what a block takes of memory, and its number in a dict and a set."""
_RUN_BYTES: Final = 80


class Changes(NamedTuple):
    """What is to be stored of a cursor's blocks: all that is stored before `from_number` goes, then
    each block of which the number and the bits are here is put in its place. One that is gone has
    no bits.

    A block has `BLOCK` offsets, its first is a multiple of that, and bit i stands for the offset i
    places after it.
    """

    from_number: int
    blocks: Sequence[tuple[int, int]]


class Cursor:
    """Everything below `position` is acknowledged, and so are single offsets above it.

    Those above are bits in blocks, so that memory follows the offsets between the first and the
    last one, an eighth of a byte each, whatever the order that acknowledgements come in. A block
    is never empty, its bits lie above `position`, and the offset at `position` is open. Blocks that
    are full are kept as runs, so that a hole may close below any number of them at once.
    """

    __slots__ = ("_blocks", "_changed", "_full", "_was_reset", "acknowledged_above", "position")

    def __init__(self, position: int) -> None:
        self.position = position
        self.acknowledged_above = 0
        """How many offsets above `position` are acknowledged."""
        self._blocks: dict[int, int] = {}
        """Those of which a part is acknowledged."""
        self._full = Runs()
        self._changed: set[int] = set()
        self._was_reset = False

    @classmethod
    def restored(cls, position: int, blocks: Mapping[int, int]) -> Self:
        """Make the cursor whose position and changes were these."""
        cursor = cls(position)
        for number in sorted(blocks):
            # What the position has passed may be stored for a while.
            if number >= position // BLOCK:
                cursor._set_block(number, blocks[number])
        cursor._changed.clear()
        return cursor

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken by what is acknowledged above `position`."""
        return len(self._blocks) * _ONE_BLOCK_BYTES + len(self._full) * _RUN_BYTES

    @property
    def last_block_end(self) -> int:
        """An offset from which on nothing is acknowledged, at the end of a block; takes a time that
        follows the number of blocks.
        """
        full = self._full.last_end
        return max(self.position, (max(self._blocks, default=-1) + 1) * BLOCK, full * BLOCK)

    @property
    def ranges(self) -> Iterator[tuple[int, int]]:
        """The acknowledged ranges above `position`, ends excluded, each as long as it can be."""
        pending: tuple[int, int] | None = None
        for start, end in self._pieces():
            if pending is not None and pending[1] == start:
                pending = pending[0], end
                continue
            if pending is not None:
                yield pending
            pending = start, end
        if pending is not None:
            yield pending

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """The acknowledged ranges above `position`, cut at the ends of blocks."""
        parts = ((number, number + 1) for number in self._blocks)
        for first, last in sorted([*parts, *self._full]):
            bits = self._blocks.get(first)
            if bits is None:
                yield first * BLOCK, last * BLOCK
            else:
                yield from ((first * BLOCK + low, first * BLOCK + high) for low, high in runs(bits))

    def acknowledge(self, start: int, end: int) -> int:
        """Mark the offsets from `start` up to but not `end`; return how many of them were open."""
        if self.position < start < end and start // BLOCK == (end - 1) // BLOCK:
            return self._acknowledge_in_block(start, end)
        before = self.position + self.acknowledged_above
        if start <= self.position:
            self.acknowledge_below(end)
        else:
            self._set(start, end)
        count = self.position + self.acknowledged_above - before
        assert count <= max(end - start, 0), "what is acknowledged is counted once"
        return count

    def _acknowledge_in_block(self, start: int, end: int) -> int:
        # What clients do most often; the general way takes thrice as long.
        number, low = divmod(start, BLOCK)
        before = self._blocks.get(number, 0)
        bits = before | (BITS[low] if end - start == 1 else span(low, low + end - start))
        if bits == before or (not before and number in self._full):
            return 0
        if bits == FULL:
            self._blocks.pop(number, None)
            self._full.add(number)
        else:
            self._blocks[number] = bits
        self._changed.add(number)
        count = 1 if end - start == 1 else bits.bit_count() - before.bit_count()
        self.acknowledged_above += count
        return count

    def acknowledge_all(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Mark ranges of offsets, ascending, with one change of each block they lie in."""
        number = bits = base = block_end = 0
        lowest = self.position + 1
        for start, end in ranges:
            if not lowest <= start < end <= block_end:
                self._add_to_block(number, bits)
                number, bits = start // BLOCK, 0
                base = number * BLOCK
                block_end = base + BLOCK
                if end > block_end or start <= self.position:
                    self.acknowledge(start, end)
                lowest = max(base, self.position + 1)
                if not lowest <= start < end <= block_end:
                    continue
            bits |= BITS[start - base] if end - start == 1 else span(start - base, end - base)
        self._add_to_block(number, bits)

    def acknowledge_set(self, start: int, closed: int) -> int:
        """Mark the offset `start` + i for each bit i that is set; return how many were open."""
        before = self.position + self.acknowledged_above
        passed = max(self.position - start, 0)
        closed >>= passed
        first, low = divmod(start + passed, BLOCK)
        # By way of bytes: to cut blocks off a long number one by one is quadratic.
        size = -(-(closed.bit_length() + low) // BLOCK) * _BLOCK_BYTES
        data = (closed << low).to_bytes(size, "little")
        for number, at in enumerate(range(0, size, _BLOCK_BYTES), first):
            self._add_to_block(number, int.from_bytes(data[at : at + _BLOCK_BYTES], "little"))
        if not self.open_count(self.position, self.position + 1):
            self.acknowledge_below(self.position + 1)
        return self.position + self.acknowledged_above - before

    def acknowledge_below(self, end: int) -> None:
        """Mark every offset below `end`."""
        if end <= self.position:
            return
        if not self._blocks and not self._full:
            self.position = end
            return
        end = self._first_open(end)
        self._pass(end)
        self.position = end
        assert self.open_count(end, end + 1), "the offset at the position is open"

    def open_mask(self, start: int, end: int) -> int:
        """Return which offsets of a batch are still open: bit i stands for offset `start` + i."""
        first, last = start // BLOCK, -(-end // BLOCK)
        closed = int.from_bytes(
            b"".join(
                self._bits(number).to_bytes(_BLOCK_BYTES, "little") for number in range(first, last)
            ),
            "little",
        )
        closed >>= start - first * BLOCK
        if start < self.position:
            closed |= span(0, min(self.position, end) - start)
        return ~closed & span(0, end - start)

    def open_count(self, start: int, end: int) -> int:
        """Return how many offsets of a range are open."""
        start = max(start, self.position)
        if start >= end:
            return 0
        if not self._blocks and not self._full:
            return end - start
        number, low = divmod(start, BLOCK)
        if low + end - start <= BLOCK:
            # What is asked most often; the general way takes five times as long.
            if end - start == 1:
                return 0 if self._bits(number) & BITS[low] else 1
            bits = self._bits(number) >> low & (1 << (end - start)) - 1
            return end - start - bits.bit_count()
        closed = sum(bits.bit_count() for _, bits in self._parts(start, end))
        for first, last in self._full.between(start // BLOCK, -(-end // BLOCK)):
            closed += min(last * BLOCK, end) - max(first * BLOCK, start)
        return end - start - closed

    def reset(self, position: int) -> None:
        """Go to `position` and forget what was acknowledged above it."""
        self.position = position
        self.acknowledged_above = 0
        self._was_reset = True
        self._changed.clear()
        drop(self._blocks)
        self._blocks = {}
        self._full.clear()

    def cut_off(self, end: int) -> bool:
        """Forget what lies at or above `end`; return whether anything did.

        A crash can take back messages that were delivered and acknowledged but not yet flushed. New
        messages then get their offsets, and must not count as acknowledged.
        """
        before = self.position, self.acknowledged_above
        for number in [number for number, _ in self._parts(end, _NO_END)]:
            self._set_block(number, self._blocks[number] & span(0, max(end - number * BLOCK, 0)))
        for first, last in self._full.between(end // BLOCK, _NO_END // BLOCK):
            for number in range(first, last):
                self._set_block(number, span(0, max(end - number * BLOCK, 0)))
        self.position = min(self.position, end)
        return before != (self.position, self.acknowledged_above)

    def take_changes(self) -> Changes:
        """Return what changed since the last time."""
        passed = self.position // BLOCK
        changed = [number for number in self._changed if number >= passed]
        blocks = [(number, self._blocks.get(number) or self._bits(number)) for number in changed]
        changes = Changes(_NO_END if self._was_reset else passed, blocks)
        self._changed.clear()
        self._was_reset = False
        return changes

    def give_back(self, changes: Changes) -> None:
        """Count changes that were taken as not taken."""
        self._changed.update(number for number, _ in changes.blocks)
        self._was_reset = self._was_reset or changes.from_number == _NO_END

    def _bits(self, number: int) -> int:
        return self._blocks.get(number) or (FULL if number in self._full else 0)

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The bits between two offsets of blocks that are not full, with the blocks' numbers."""
        for number in blocks_between(self._blocks, start, end):
            bits = self._blocks.get(number)
            if bits is not None:
                base = number * BLOCK
                yield number, bits & span(max(start - base, 0), min(end - base, BLOCK))

    def _set(self, start: int, end: int) -> None:
        while start < end:
            number, low = divmod(start, BLOCK)
            high = min(low + end - start, BLOCK)
            self._set_block(number, self._bits(number) | span(low, high))
            start += high - low

    def _first_open(self, offset: int) -> int:
        """Return the first open offset from one on that is above the position."""
        number, low = divmod(offset, BLOCK)
        low += leading_run(self._bits(number) >> low)
        if low < BLOCK:
            return number * BLOCK + low
        number = self._full.end_of(number + 1)
        return number * BLOCK + leading_run(self._blocks.get(number, 0))

    def _pass(self, end: int) -> None:
        """Forget the bits below an offset, which is open."""
        passed = end // BLOCK
        for number in blocks_between(self._blocks, self.position, passed * BLOCK):
            bits = self._blocks.pop(number, None)
            if bits is not None:
                self.acknowledged_above -= bits.bit_count()
        count = self._full.remove(self.position // BLOCK, passed)
        self.acknowledged_above -= count * BLOCK
        bits = self._blocks.get(passed, 0)
        if bits & span(0, end % BLOCK):
            self._set_block(passed, bits & ~span(0, end % BLOCK))

    def _add_to_block(self, number: int, bits: int) -> None:
        if bits:
            before = self._bits(number)
            self._change_block(number, before, before | bits)

    def _set_block(self, number: int, bits: int) -> None:
        self._change_block(number, self._bits(number), bits)

    def _change_block(self, number: int, before: int, bits: int) -> None:
        self._changed.add(number)
        if before == bits:
            return
        self.acknowledged_above += bits.bit_count() - before.bit_count()
        if before == FULL:
            self._full.remove(number, number + 1)
        elif not bits or bits == FULL:
            self._blocks.pop(number, None)
        if bits == FULL:
            self._full.add(number)
        elif bits:
            self._blocks[number] = bits
