"""What open transactions acknowledged of one subscription: it takes effect with their end.

Until then such messages are neither acknowledged nor handed out to anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.broker.subscriptions.bitmaps import BLOCK, blocks_between, runs, span
from penstock.pace import drop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.broker.subscriptions.cursor import Cursor

_BLOCK_BYTES: Final = BLOCK // 8
_USED_BYTES: Final = 400
"""About what a block takes of memory."""


class Pending:
    """Offsets as bits in blocks, of each producer and of all; no offset is of two producers.

    A transaction is known by the id of its producer.
    """

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, int]] = {}
        self.blocks: dict[int, int] = {}
        """What is pending in any transaction; empty mostly, which the engine asks all the time."""
        self._size = 0
        self._unsaved: dict[int, dict[int, int]] = {}
        self._through: dict[int, int] = {}

    def __len__(self) -> int:
        """How many blocks are kept for all producers."""
        return self._size

    @property
    def used_bytes(self) -> int:
        """About how much memory is taken."""
        return self._size * _USED_BYTES

    def blocks_of(self, producer_id: int) -> Mapping[int, int]:
        """Return what a transaction has, by numbers of blocks."""
        return self._by_producer.get(producer_id, {})

    def mask(self, start: int, end: int) -> int:
        """Return which offsets of a batch are pending: bit i stands for offset `start` + i."""
        return _mask(self.blocks, start, end)

    def mask_of(self, producer_id: int, start: int, end: int) -> int:
        """Return what `mask` would, of one transaction."""
        return _mask(self.blocks_of(producer_id), start, end)

    def open_count(self, cursor: Cursor, start: int, end: int) -> int:
        """Return how many offsets of a range are pending and not acknowledged otherwise."""
        count = 0
        for number in blocks_between(self.blocks, start, end):
            bits = self.blocks.get(number)
            if bits is not None:
                base = number * BLOCK
                bits &= span(max(start - base, 0), min(end - base, BLOCK))
                count += (bits & cursor.open_mask(base, base + BLOCK)).bit_count()
        return count

    def has_others(self, producer_id: int, start: int, end: int) -> bool:
        """Whether other transactions have anything of a range."""
        mine = self.blocks_of(producer_id)
        for number in blocks_between(self.blocks, start, end):
            base = number * BLOCK
            part = span(max(start - base, 0), max(min(end - base, BLOCK), 0))
            if self.blocks.get(number, 0) & part & ~mine.get(number, 0):
                return True
        return False

    def through(self, producer_id: int) -> int:
        """Return an offset below which nothing is open but what a transaction has, as far as
        `goes_on_through` said.
        """
        return self._through.get(producer_id, 0)

    def goes_on_through(self, producer_id: int, start: int, end: int) -> None:
        """Note that nothing is open from `start` up to `end` but what a transaction has, which
        counts where that holds below `start` too.
        """
        if producer_id in self._by_producer and self.through(producer_id) >= start:
            self._through[producer_id] = max(end, self.through(producer_id))

    def add(self, producer_id: int, start: int, closed: int) -> None:
        """Note the offset `start` + i for each bit i that is set; none is another transaction's."""
        mine = self._by_producer.setdefault(producer_id, {})
        unsaved = self._unsaved.setdefault(producer_id, {})
        for number, bits in _cut(start, closed):
            before = mine.get(number, 0)
            if before | bits == before:
                continue
            self._size += not before
            unsaved[number] = unsaved.get(number, 0) | bits & ~before
            mine[number] = before | bits
            self.blocks[number] = self.blocks.get(number, 0) | bits

    def remove(self, producer_id: int, start: int, end: int) -> None:
        """Forget what a transaction has of a range."""
        mine = self._by_producer.get(producer_id, {})
        unsaved = self._unsaved.get(producer_id, {})
        if producer_id in self._through:
            self._through[producer_id] = min(start, self._through[producer_id])
        for number in blocks_between(mine, start, end):
            if number in mine:
                base = number * BLOCK
                part = span(max(start - base, 0), min(end - base, BLOCK))
                _keep(self.blocks, number, ~(mine[number] & part))
                self._size -= _keep(mine, number, ~part)
                if number in unsaved:
                    _keep(unsaved, number, ~part)
        if not mine:
            for each in (self._by_producer, self._unsaved, self._through):
                each.pop(producer_id, None)

    def changes(self, producer_id: int) -> dict[int, int]:
        """Return the blocks of a transaction of which something is not saved, as they are now."""
        mine = self.blocks_of(producer_id)
        return {number: mine[number] for number in self._unsaved.get(producer_id, ())}

    def saved(self, producer_id: int, blocks: Mapping[int, int]) -> None:
        """Note that blocks are saved, as they were then."""
        unsaved = self._unsaved.get(producer_id, {})
        for number, bits in blocks.items():
            if number in unsaved:
                _keep(unsaved, number, ~bits)

    def cut_off(self, end: int) -> None:
        """Forget what lies at or above an offset; see Cursor.cut_off."""
        for producer_id, mine in tuple(self._by_producer.items()):
            self.remove(producer_id, end, (max(mine) + 1) * BLOCK)

    def runs_of(self, producer_id: int) -> Iterator[tuple[int, int]]:
        """The runs of what a transaction has, ends excluded; as it is when it is asked for."""
        return _runs(self.blocks_of(producer_id))

    def unsaved_runs_of(self, producer_id: int) -> Iterator[tuple[int, int]]:
        """The runs of that of it which is not saved."""
        return _runs(self._unsaved.get(producer_id, {}))

    def clear(self) -> None:
        drop(self._by_producer, self.blocks, self._unsaved, self._through)
        self._by_producer, self.blocks, self._unsaved, self._through = {}, {}, {}, {}
        self._size = 0


def _keep(blocks: dict[int, int], number: int, kept: int) -> bool:
    """Keep these bits of a block; return whether it is gone, for it has none of them."""
    blocks[number] &= kept
    if blocks[number]:
        return False
    del blocks[number]
    return True


def _runs(blocks: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    pending: tuple[int, int] | None = None
    for number, bits in sorted(blocks.items()):
        for low, high in runs(bits):
            start, end = number * BLOCK + low, number * BLOCK + high
            if pending is not None and pending[1] == start:
                start = pending[0]
            elif pending is not None:
                yield pending
            pending = start, end
    if pending is not None:
        yield pending


def _mask(blocks: Mapping[int, int], start: int, end: int) -> int:
    first, last = start // BLOCK, -(-end // BLOCK)
    data = b"".join(
        blocks.get(number, 0).to_bytes(_BLOCK_BYTES, "little") for number in range(first, last)
    )
    return int.from_bytes(data, "little") >> (start - first * BLOCK) & span(0, end - start)


def _cut(start: int, closed: int) -> Iterator[tuple[int, int]]:
    """Cut bits into those of blocks, by way of bytes: one by one would be quadratic."""
    first, low = divmod(start, BLOCK)
    size = -(-(closed.bit_length() + low) // BLOCK) * _BLOCK_BYTES
    data = (closed << low).to_bytes(size, "little")
    for number, at in enumerate(range(0, size, _BLOCK_BYTES), first):
        bits = int.from_bytes(data[at : at + _BLOCK_BYTES], "little")
        if bits:
            yield number, bits
