"""Reads what goes out next: what came back first, in order of offset, then what waits and may go
now, then what was never out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import wall_clock
from penstock.broker.reading.entries import ONE_BATCH, READ_BYTES, EntryReader
from penstock.broker.subscriptions.delayed import TICK_MS, tick_of
from penstock.broker.subscriptions.slots import NO_SLOT
from penstock.log.batches import StoredBatch
from penstock.log.header import ATTRIBUTE_DELAYED
from penstock.pace import Pace
from penstock.records.pulsar.delays import deliver_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.broker.reading.entries import AnyEntry
    from penstock.broker.subscriptions.engine import Engine
    from penstock.broker.subscriptions.returned import Returned
    from penstock.broker.topics.partition import Partition
    from penstock.log.header import Magic


class Upcoming:
    """The batches that the engine can hand out, in the encoding of `magic`.

    With `delays`, those that say from when on they are to be delivered wait for it.
    """

    def __init__(
        self, partition: Partition, engine: Engine, magic: Magic, *, delays: bool = False
    ) -> None:
        self._partition = partition
        self._engine = engine
        self._delays = delays
        # Two places in the log, so that what comes back does not cost what was read ahead.
        self._fresh = EntryReader(partition, engine.fresh, magic, engine.skip)
        self._again = EntryReader(partition, engine.fresh, magic, engine.skip)

    @property
    def has_more(self) -> bool:
        """Whether there is anything to hand out."""
        if self._engine.next_returned() is not None:
            return True
        is_there = self._engine.fresh < self._partition.readable_end()
        return is_there and self._engine.may_put_off()

    def set_from_file(self, wanted: bool) -> None:
        """Say whether large batches may come as ranges of a file, from the next one on."""
        for reader in (self._fresh, self._again):
            if reader.from_file != wanted:
                reader.from_file = wanted
                reader.rewind(reader.position)

    async def entries(
        self, next_waiting: Callable[[], Returned | None] = lambda: None
    ) -> Iterator[AnyEntry | None]:
        """Return batches to be acquired in their order, as many as are wanted, before anything else
        is awaited. There may be none, although there is more, when the state changed meanwhile.

        None among them says that all before has to be acquired before more is taken.

        What came back goes before what `next_waiting` says, and that before all else.
        """
        reader, engine = self._fresh, self._engine
        if engine.next_returned() is not None:
            return await self._entries_again(engine.next_returned)
        if next_waiting() is not None:
            return await self._entries_again(next_waiting)
        if reader.position != engine.fresh:
            reader.rewind(engine.fresh)
        await reader.fill()
        if reader.position != engine.fresh or engine.next_returned() is not None:
            return iter(())
        return self._those_not_delayed() if self._delays else iter(reader.take, None)

    def available(self, entry: AnyEntry) -> tuple[int, int]:
        """Return which offsets of a batch from `entries` can be acquired."""
        base, end = entry.header.base_offset, entry.header.next_offset
        returned = self._engine.next_returned()
        if returned is not None:
            first, last = returned.extent(returned.start) or (returned.start, returned.end)
            return max(first, base), min(last, end)
        return max(self._engine.fresh, base), end

    async def _entries_again(
        self, following: Callable[[], Returned | None]
    ) -> Iterator[AnyEntry | None]:
        first, engine = following(), self._engine
        assert first is not None, "something goes out again"
        self._again.go_on_at(first.start)
        followed = first.begins != 1 or engine.has_returned(first.end) or len(engine.waiting) > 1
        followed = followed or engine.has_returned_many(near=first.start)
        await self._again.fill(READ_BYTES if followed else ONE_BATCH)
        return self._as_they_follow(following)

    def _as_they_follow(
        self, following: Callable[[], Returned | None]
    ) -> Iterator[AnyEntry | None]:
        first = following()
        while first is not None and (entry := self._again.take()) is not None:
            if entry.header.next_offset <= first.start:
                continue
            base = entry.header.base_offset
            if self._engine.open_count(first.start, min(base, first.end)):
                return
            # What waits for its key's consumer was due before.
            if first.slot != NO_SLOT or not self._is_put_off(entry):
                yield entry
                yield None
            first = following()

    def _those_not_delayed(self) -> Iterator[AnyEntry | None]:
        pace = Pace()
        while (entry := self._fresh.take()) is not None:
            if entry.header.attributes & ATTRIBUTE_DELAYED:
                yield None
            if not self._is_put_off(entry):
                yield entry
            elif pace.is_over() or not self._engine.may_put_off():
                return

    def _is_put_off(self, entry: AnyEntry) -> bool:
        """Keep a batch that is not due; also one that came back, as from a transaction in which it
        was acknowledged before it was delivered.
        """
        header = entry.header
        if not header.attributes & ATTRIBUTE_DELAYED or not self._delays:
            return False
        assert not isinstance(entry, StoredBatch), "what is delayed is read"
        due_ms = deliver_at(entry.body)
        if tick_of(due_ms) <= wall_clock.now_ms() // TICK_MS:
            return False
        self._engine.put_off(header.base_offset, header.next_offset, due_ms)
        return True
